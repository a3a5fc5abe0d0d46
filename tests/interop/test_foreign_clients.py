"""Clients of others with their defaults on brokers of ours at 0.9.0, 0.10.2 and 0.11.0."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest

from kafka08.consumer import SimpleConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.structs import TopicPartition
from tests.interop.client_matrix import ACTS, BEFORE_0_11, Tried
from tests.interop.foreign_clients import (
    ALL,
    CLIENTS,
    CONFLUENT,
    JAVA_0_9_0,
    JAVA_0_10_2,
    JAVA_3_9_1,
    JAVA_IDEMPOTENT,
    KAFKA_PYTHON,
    KAFKAJS,
    ForeignClient,
    Program,
    delivered,
)
from tests.interop.jvm import run_tool
from tests.waiting import until

COUNT = 20
"""Messages of each Produce request, or so."""
MANY = 600
"""Messages of some Produce requests."""


LEVELS = ("0.9.0", "0.10.2", "0.11.0")
SPEAKING = [(level, client) for level in LEVELS for client in CLIENTS if level in client.settings]
ADMINISTERING = [client for client in CLIENTS if client.has_admin]


@pytest.fixture(scope="module", params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def cluster(level: str) -> Iterator[EmbeddedCluster]:
    keys = {"offsets.topic.num.partitions": 4}
    with EmbeddedCluster(brokers=2, level=level, config=keys) as cluster:
        yield cluster


@pytest.mark.parametrize(("level", "client"), SPEAKING, ids=str, indirect=["level"])
def test_a_client_produces_and_its_group_reads(
    cluster: EmbeddedCluster, level: str, client: ForeignClient
) -> None:
    """With each of a client's codecs every message arrives once, with the producer's timestamp
    where client and broker support timestamps."""
    topic = f"own-{client}"
    cluster.create_topic(topic, 3)
    began = time.time() * 1000
    for number, codec in enumerate(client.codecs):
        first = str(number * COUNT)
        sent = client.run(level, "produce", cluster.bootstrap, topic, codec, first, str(COUNT))
        assert f"sent {COUNT}" in sent
    total = len(client.codecs) * COUNT
    said = client.run(level, "consume", cluster.bootstrap, topic, topic, str(total))
    messages = delivered(said)
    assert sorted(int(m.value) for m in messages) == list(range(total))
    assert all(m.key == f"k{m.value}" for m in messages)
    if level != "0.9.0" and client is not JAVA_0_9_0:
        now = time.time() * 1000
        assert all(m.timestamp is not None and began <= m.timestamp <= now for m in messages)
    assert "left" in said


@pytest.mark.parametrize("level", ["0.10.2", "0.11.0"], indirect=True)
@pytest.mark.parametrize("client", ADMINISTERING, ids=str)
def test_an_admin_client(cluster: EmbeddedCluster, level: str, client: ForeignClient) -> None:
    """An admin client creates, lists and deletes topics, and lists and describes a group. (A broker
    of 0.9.0 has no CreateTopics.)"""
    group = f"admin-{client}"
    cluster.create_topic(group)
    client.run(level, "produce", cluster.bootstrap, group, "none", "0", "1")
    client.run(level, "consume", cluster.bootstrap, group, group, "1")
    topic = f"made-by-{client}"
    said = client.run(level, "admin", cluster.bootstrap, topic, group)
    assert said == [
        f"created {topic}",
        f"listed {topic}",
        f"group {group}",
        "state Empty 0",
        f"deleted {topic}",
    ]


@pytest.mark.parametrize("level", ["0.11.0"], indirect=True)
@pytest.mark.parametrize("client", [one for one in ALL if one.idempotent is not None], ids=str)
def test_a_client_has_transactions(
    cluster: EmbeddedCluster, level: str, client: ForeignClient
) -> None:
    """It produces with idempotence, aborts a transaction and commits another one, and reads the
    second alone. Clients that are in no other test do the rest, too."""
    where = (cluster.bootstrap, cluster.zookeeper.connect_string)
    tried = Tried(client, level, *where, "ours")
    for act in ACTS:
        if client not in CLIENTS or act not in BEFORE_0_11:
            assert tried.act(act)


@pytest.mark.parametrize("level", ["0.11.0"], indirect=True)
@pytest.mark.parametrize("client", [one for one in ALL if one.idempotent is not None], ids=str)
def test_lost_responses_store_nothing_twice(
    cluster: EmbeddedCluster, level: str, client: ForeignClient
) -> None:
    """Connections close on batches that were stored, and with them the responses to all that were
    in flight. 0.11.0.3 remembers one batch of a producer, and stores five of Java's twice."""
    topic = f"lost-{client}"
    cluster.create_topic(topic)
    rule = cluster.faults.add("Produce", topic=topic, close="after", times=3)
    settings = client.idempotent or ()
    if settings == JAVA_IDEMPOTENT:
        settings = (*settings, "batch.size=300")  # so that several are in flight
    words = (cluster.bootstrap, topic, "none", "0", str(MANY), *settings)
    said = client.run(level, "produce", *words)
    assert f"sent {MANY}" in said
    assert rule.hits
    rule.remove()
    leader = cluster.leader_of(topic, 0)
    with SimpleConsumer(leader.host, leader.port) as consumer:
        read = [one.value for one in consumer.read_range(TopicPartition(topic, 0), 0)]
    assert read == [b"%d" % number for number in range(MANY)]


def test_clients_of_all_releases_share_a_topic(cluster: EmbeddedCluster, level: str) -> None:
    """Each client, the console clients of 0.8.2.2 included, reads the messages of all: magic 0 and
    1 share a log, or become record batches, and each Fetch returns the format of its version."""
    topic = "shared"
    cluster.create_topic(topic, 2)
    clients = [client for client in CLIENTS if level in client.settings]
    for number, client in enumerate(clients):
        codec = KAFKAJS.codecs[number % len(KAFKAJS.codecs)]  # what all of them can read
        first = str(number * COUNT)
        client.run(level, "produce", cluster.bootstrap, topic, codec, first, str(COUNT))
    ours = range(len(clients) * COUNT, (len(clients) + 1) * COUNT)
    console = run_tool(
        "kafka.tools.ConsoleProducer",
        *("--broker-list", cluster.bootstrap, "--topic", topic, "--sync"),
        *("--property", "parse.key=true", "--compression-codec", "gzip"),
        stdin="".join(f"k{n}\t{n}\n" for n in ours),
    )
    assert console.rc == 0, console
    everything = [str(n) for n in range(ours.stop)]
    for client in clients:
        said = client.run(
            level, "consume", cluster.bootstrap, topic, f"of-{client}", str(ours.stop)
        )
        assert sorted(everything) == sorted(m.value for m in delivered(said)), client
    read = run_tool(
        "kafka.tools.ConsoleConsumer",
        *("--zookeeper", cluster.zookeeper.connect_string, "--topic", topic, "--from-beginning"),
        *("--max-messages", str(ours.stop)),
    )
    assert sorted(everything) == sorted(read.stdout.splitlines())


PART = 300
PARTITIONS = 6
GROUPS = {
    "0.9.0": (CONFLUENT, KAFKA_PYTHON, JAVA_0_9_0),
    "0.10.2": (CONFLUENT, KAFKA_PYTHON, JAVA_0_10_2, JAVA_3_9_1),
    "0.11.0": (CONFLUENT, KAFKA_PYTHON, JAVA_0_10_2, JAVA_3_9_1),
}


def test_members_of_several_clients_share_a_group(cluster: EmbeddedCluster, level: str) -> None:
    """Members of several clients agree on an assignor and divide the partitions; each message goes
    to one of them. One that leaves gives its partitions to the others."""
    topic = group = "mixed"
    members = GROUPS[level]
    cluster.create_topic(topic, PARTITIONS)

    def produce(first: int) -> None:
        words = (cluster.bootstrap, topic, "none", str(first), str(PART))
        CONFLUENT.run(level, "produce", *words)

    with ExitStack() as stack:
        words = (cluster.bootstrap, topic, group, "0")
        running = [
            stack.enter_context(client.start(level, "consume", *words)) for client in members
        ]
        until(lambda: divided(running), "each member has partitions")
        produce(0)
        until(lambda: PART == count(running), "the group has read the first part")
        leaving, *staying = running
        leaving.terminate()
        leaving.finished()
        until(lambda: divided(staying), "the others have all partitions")
        produce(PART)
        until(lambda: 2 * PART == count(running), "the others have read the second part")
        for program in staying:
            program.terminate()
            program.finished()
        read = [delivered(program.lines()) for program in running]
    values = Counter(int(message.value) for messages in read for message in messages)
    assert values == Counter(range(2 * PART))
    assert all(read), "a member has read nothing"


def divided(programs: Sequence[Program]) -> bool:
    """Whether each has partitions, and none those that another had before."""
    counts = [program.assigned for program in programs]
    return all(counts) and sum(counts) == PARTITIONS


def count(programs: Sequence[Program]) -> int:
    """The messages that they have read so far."""
    return sum(len(delivered(program.lines())) for program in programs)
