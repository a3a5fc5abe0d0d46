"""`kafka08 metrics` on a real cluster with groups of both stores."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafka08.admin import AdminClient
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.requests import commit_request
from kafka08.consumer import ConsumerConfig, ConsumerConnector
from kafka08.embedded import EmbeddedCluster
from kafka08.exporter import ClusterReader, Exporter, Probe
from kafka08.network.connection import Connection
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.protocol import compression, message_set
from kafka08.protocol.produce import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from kafka08.runtime.threads import THREADS
from kafka08.structs import OffsetAndMetadata, TopicPartition
from kafka08.zk.client import ZkClient
from tests.scrape import Scrape
from tests.waiting import until

MESSAGES, READ = 40, 25
MAGIC_1_PRODUCE = 2
"""The version of Produce that may have messages with timestamps."""
SHIPPED = Path(__file__).parent.parent.parent / "docs" / "monitoring"
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(scope="module", params=["0.8.2", "0.10.2"])
def cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2, level=request.param) as cluster:
        connect = cluster.zookeeper.connect_string
        with AdminClient(connect) as admin:
            admin.create_topic("t", 2, 2)
            admin.await_leaders("t")
        config = KafkaProducerConfig(
            {"bootstrap.servers": cluster.bootstrap, "acks": "-1", "retries": "100"}
        )
        with KafkaProducer(config) as producer:
            for number in range(MESSAGES):
                producer.send(ProducerRecord("t", b"x", partition=number % 2)).result(10)
        for storage in ("zookeeper", "kafka"):
            read(connect, storage)
        yield cluster


def read_whole(exporter: Exporter) -> None:
    """Refresh until the view has all messages. On a busy machine a broker may be silent for the two
    seconds that a view waits; and after another test a leader may be new, whose HW, which is a
    log's end to clients, has not come back yet."""

    def is_whole() -> bool:
        exporter.refresh()
        view = exporter.view
        assert view is not None
        ends = [state.end or 0 for tp, state in view.partitions.items() if tp.topic == "t"]
        return not view.failed_requests and sum(ends) >= MESSAGES

    until(is_whole, "a whole view")


def read(connect: str, storage: str) -> None:
    """A group that is named after its store reads READ messages and leaves."""
    keys = {
        "group.id": f"in-{storage}",
        "zookeeper.connect": connect,
        "auto.offset.reset": "smallest",
        "offsets.storage": storage,
        "dual.commit.enabled": "false",
        "auto.commit.enable": "false",
    }
    with ConsumerConnector(ConsumerConfig(keys)) as connector:
        [stream] = connector.create_message_streams({"t": 1})["t"]
        for _ in range(READ):
            next(stream)
        connector.commit_offsets()


def parsed(text: str) -> Values:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(values: Values, name: str, **labels: str) -> float:
    return values[name, tuple(sorted(labels.items()))]


def test_groups_of_both_stores_have_their_lag(cluster: EmbeddedCluster) -> None:
    """One group commits to ZooKeeper, the other to Kafka."""
    with ClusterReader(cluster.zookeeper.connect_string) as reader:
        exporter = Exporter(reader, THREADS)
        read_whole(exporter)
    values = parsed(exporter.text)
    assert 2 == of(values, "kafka_brokers")
    assert 1 == of(values, "kafka08_controllers")
    assert 20 == of(values, "kafka_topic_partition_current_offset", topic="t", partition="1")
    assert 2 == of(values, "kafka_topic_partition_in_sync_replica", topic="t", partition="0")
    for storage in ("zookeeper", "kafka"):
        group = f"in-{storage}"
        lag = of(values, "kafka_consumergroup_lag_sum", consumergroup=group, topic="t")
        assert MESSAGES - READ == lag, group
        assert 4 == of(values, "kafka_consumergroup_status", consumergroup=group), "no members"
    in_zookeeper = {
        dict(labels)["consumergroup"]
        for name, labels in values
        if name == "kafka_consumergroupzookeeper_lag_zookeeper"
    }
    assert {"in-zookeeper"} == in_zookeeper
    assert 0 == of(values, "kafka08_exporter_failed_requests")


HOUR_MS = 3_600_000


def write(cluster: EmbeddedCluster, topic: str, data: bytes) -> None:
    """A message set, as a producer of 0.10 sends it."""
    request = ProduceRequest(
        1, 5000, [ProduceTopic(topic, [ProducePartition(0, data)])], version=MAGIC_1_PRODUCE
    )
    leader = cluster.leader_of(topic)
    with Connection("127.0.0.1", leader.port) as connection:
        response = connection.send(request)
    assert isinstance(response, ProduceResponse)
    assert 0 == response.topics[0].partitions[0].error_code


def late_by(cluster: EmbeddedCluster, topic: str, offset: int) -> float | None:
    """The first view of a group that committed `offset`; None: nothing."""
    connect = cluster.zookeeper.connect_string
    with ZkClient(connect) as zk:
        zk.put(f"/consumers/late/offsets/{topic}/0", str(offset))
    with ClusterReader(connect) as reader:
        exporter = Exporter(reader, THREADS)
        read_whole(exporter)
    labels = {"consumergroup": "late", "topic": topic, "partition": "0"}
    return parsed(exporter.text).get(
        ("kafka_consumergroup_lag_seconds", tuple(sorted(labels.items())))
    )


@pytest.mark.parametrize("cluster", ["0.10.2"], indirect=True)
@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP])
def test_lateness_uses_timestamps_at_the_first_read(cluster: EmbeddedCluster, codec: int) -> None:
    """The timestamp of a compressed set is that of its newest message; messages without one are
    left to the history."""
    topic = f"timed-{codec}"
    cluster.create_topic(topic, 1, 1)
    now = THREADS.time_ms()
    for hours in (5, 3, 1):
        times = [now - hours * HOUR_MS - 1000, now - hours * HOUR_MS]
        pairs = [(None, b"x" * 100)] * 2
        write(cluster, topic, message_set.encode(pairs, codec, 0, 1, times))
    late = {offset: late_by(cluster, topic, offset) for offset in (0, 1, 2, 5, 6)}
    first = 5 * 3600 if codec else 5 * 3600 + 1
    expected = {0: first, 1: 5 * 3600, 2: first - 2 * 3600, 5: 3600, 6: 0}
    for offset, seconds in expected.items():
        found = late[offset]
        assert found is not None
        assert seconds <= found < seconds + 60 or found == seconds, (offset, late)


def test_unchanged_offsets_are_not_read_again(cluster: EmbeddedCluster) -> None:
    """Offsets of a hundred partitions need requests at the first read alone; changed, new and
    removed ones are seen."""
    connect = cluster.zookeeper.connect_string
    partitions = [TopicPartition("idle", n) for n in range(100)]

    def committed() -> dict[TopicPartition, int]:
        group = reader.read_view(starts=False).groups.get("idle")
        return {} if group is None else {tp: c.offset for tp, c in group.zookeeper.items()}

    with ZkClient(connect) as zk, ClusterReader(connect) as reader:
        path = "/consumers/idle/offsets/idle/{}".format
        for tp in partitions:
            zk.put(path(tp.partition), "5")
        assert dict.fromkeys(partitions, 5) == committed()
        before = reader.requests_sent
        committed()
        assert reader.requests_sent - before < 60
        zk.put(path(7), "6")
        zk.delete(path(8))
        zk.put(path(100), "1")
        expected = dict.fromkeys(partitions, 5) | {partitions[7]: 6, TopicPartition("idle", 100): 1}
        del expected[partitions[8]]
        until(lambda: committed() == expected)
        zk.delete_recursive("/consumers/idle")


def test_offsets_in_kafka_are_requested_only_after_a_commit(cluster: EmbeddedCluster) -> None:
    """Of eighty groups with offsets a commit of one needs few requests."""
    connect = cluster.zookeeper.connect_string
    names = [f"crowd-{number}" for number in range(80)]
    tps = [TopicPartition("t", 0), TopicPartition("t", 1)]

    def commit(name: str, offset: int) -> None:
        offsets = {tps[0]: OffsetAndMetadata(offset), tps[1]: OffsetAndMetadata(2 * offset)}
        client.ask_coordinator(name, lambda c: c.send(commit_request(name, offsets, "kafka")))

    def committed() -> dict[str, tuple[int, int]]:
        groups = reader.read_view(starts=False).groups
        kafka = {name: groups[name].kafka for name in names}
        return {name: (of[tps[0]].offset, of[tps[1]].offset) for name, of in kafka.items()}

    with (
        ZkClient(connect) as zk,
        ClusterReader(connect) as reader,
        closing(ClusterClient(parse_bootstrap(cluster.bootstrap))) as client,
    ):
        for number, name in enumerate(names):
            zk.ensure(f"/consumers/{name}/ids")
            commit(name, number)
        expected = {name: (number, 2 * number) for number, name in enumerate(names)}
        assert expected == committed()
        assert expected == committed()
        before = reader.offset_fetches_sent
        assert before >= 2 * len(names)
        assert expected == committed()
        assert before == reader.offset_fetches_sent
        commit(names[7], 999)
        assert expected | {names[7]: (999, 1998)} == committed()
        assert reader.offset_fetches_sent - before < len(names)
        for name in names:
            zk.delete_recursive(f"/consumers/{name}")


def test_a_dead_broker_does_not_hide_the_others(cluster: EmbeddedCluster) -> None:
    """The other broker leads its partitions; failed requests are counted."""
    with ClusterReader(cluster.zookeeper.connect_string) as reader:
        exporter = Exporter(reader, THREADS)
        exporter.refresh()
        cluster.brokers[1].kill()
        exporter.refresh()
        values = parsed(exporter.text)
        cluster.restart(cluster.brokers[1])
    assert exporter.view is not None
    assert len(exporter.view.failed_requests) < 6, "partitions with the same reason share a line"
    assert 1 == of(values, "kafka08_exporter_up")
    assert of(values, "kafka_topic_partition_replicas", topic="t", partition="0") == 2


def test_a_scraper_that_accepts_gzip_gets_it(cluster: EmbeddedCluster) -> None:
    """It does from the next read on; another scraper gets the text of the same read."""

    def scrape(**environ: str) -> tuple[dict[str, str], bytes]:
        headers: dict[str, str] = {}
        request = {"REQUEST_METHOD": "GET", **environ}
        [body] = exporter.app(request, lambda _, found: headers.update(found))
        return headers, body

    with ClusterReader(cluster.zookeeper.connect_string) as reader:
        exporter = Exporter(reader, THREADS)
        exporter.refresh()
        assert "Content-Encoding" not in scrape(HTTP_ACCEPT_ENCODING="gzip")[0]
        exporter.refresh()
    headers, body = scrape(HTTP_ACCEPT_ENCODING="deflate, gzip")
    assert "gzip" == headers["Content-Encoding"]
    headers, text = scrape()
    assert ("Content-Encoding" not in headers, gzip.decompress(body)) == (True, text)


def test_the_command_serves_its_metrics(cluster: EmbeddedCluster) -> None:
    """It serves HTTP until SIGTERM, and prints once without --listen."""
    command = [sys.executable, "-m", "kafka08.cli", "metrics"]
    command += ["--zookeeper", cluster.zookeeper.connect_string]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    process = subprocess.Popen([*command, "--listen", "0"], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = ""  # on a busy machine it says first what it waits for
        while (found := re.search(r"http://127\.0\.0\.1:\d+/metrics", said)) is None:
            said = process.stderr.readline()
            assert said, "it ended"
        with urllib.request.urlopen(found[0], timeout=10) as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            served = response.read().decode()
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert 0 == process.returncode
    assert set(parsed(shown)) == set(parsed(served))


def shipped_queries() -> list[str]:
    """Those of the alert rules and of the board."""
    rules = [
        line.partition("expr:")[2] for line in (SHIPPED / "alerts.yml").read_text().splitlines()
    ]
    board = json.loads((SHIPPED / "board.json").read_text())
    panels = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return [query for query in [*rules, *panels] if query.strip()]


BOARDS: dict[int, dict[str, set[str]]] = {
    7589: {
        "kafka_topic_partition_current_offset": {"topic"},
        "kafka_consumergroup_lag": {"consumergroup", "topic"},
        "kafka_consumergroup_current_offset": {"consumergroup", "topic"},
        "kafka_topic_partitions": {"topic"},
    },
    14012: {
        "kminion_kafka_cluster_info": {"broker_count", "cluster_version", "controller_id"},
        "kminion_kafka_broker_info": {"broker_id", "address", "is_controller"},
        "kminion_kafka_topic_high_water_mark_sum": {"topic_name"},
        "kminion_kafka_consumer_group_offset_commits_total": {"group_id"},
    },
    14013: {
        "kminion_kafka_topic_info": {"topic_name", "partition_count", "replication_factor"},
        "kminion_kafka_topic_high_water_mark_sum": {"topic_name"},
        "kminion_kafka_topic_low_water_mark_sum": {"topic_name"},
        "kminion_kafka_topic_partition_high_water_mark": {"topic_name", "partition_id"},
        "kminion_kafka_topic_partition_low_water_mark": {"topic_name", "partition_id"},
        "kminion_kafka_consumer_group_topic_lag": {"group_id", "topic_name"},
    },
    14014: {
        "kminion_kafka_consumer_group_topic_lag": {"group_id", "topic_name"},
        "kminion_kafka_consumer_group_offset_commits_total": {"group_id"},
        "kminion_kafka_consumer_group_topic_offset_sum": {"group_id", "topic_name"},
        "kminion_kafka_topic_high_water_mark_sum": {"topic_name"},
    },
}
"""Number of a board → the names that its queries and variables ask for → the labels in them, by the
JSON of each. 7589 and 14014 are whole; in 14012 and 14013 sizes of log directories and the rate of
kminion's own consumer have no source here."""
MORE_OF_KMINION = {
    "kminion_kafka_consumer_group_info": {"group_id", "state"},
    "kminion_kafka_consumer_group_members": {"group_id"},
    "kminion_kafka_consumer_group_topic_partition_lag": {"group_id", "topic_name", "partition_id"},
}


def test_dashboards_of_other_exporters_find_their_names(cluster: EmbeddedCluster) -> None:
    """Samples have the names and labels of other exporters, with the same values under both
    names."""
    with ClusterReader(cluster.zookeeper.connect_string) as reader:
        exporter = Exporter(reader, THREADS)
        read_whole(exporter)
    values = parsed(exporter.text)
    known: dict[str, set[str]] = {}
    for name, found in values:
        known.setdefault(name, set()).update(label for label, _ in found)
    for names in (*BOARDS.values(), MORE_OF_KMINION):
        for name, labels in names.items():
            assert labels <= known[name], name
    ours = of(values, "kafka_consumergroup_lag_sum", consumergroup="in-kafka", topic="t")
    group = {"group_id": "in-kafka", "topic_name": "t"}
    assert ours == of(values, "kminion_kafka_consumer_group_topic_lag", **group)
    ends = of(values, "kminion_kafka_topic_high_water_mark_sum", topic_name="t")
    assert MESSAGES == ends


def labels_by_name(text: str) -> dict[str, set[str]]:
    """Name of each sample, or of a family without one → its labels."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        found.setdefault(family.name, set())
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def labels_asked(query: str) -> set[str]:
    """Those that it groups by, and those that it filters by."""
    groupings = re.findall(r"\bby \(([^)]*)\)", query)
    filters = re.findall(r"(\w+)(?:!=|=~|!~|=)\"", query)
    return {name.strip() for names in groupings for name in names.split(",")} | set(filters)


def test_every_shipped_query_uses_existing_metrics() -> None:
    """Names and labels of every query exist in the exporter with a probe and in a broker with
    metrics.port: a misspelt one alerts nobody. Prometheus itself adds `instance`."""
    with EmbeddedCluster(brokers=1, config={"metrics.port": 0}) as cluster:
        connect = cluster.zookeeper.connect_string
        cluster.create_topic("t", 1, 1)
        with ZkClient(connect) as zk:
            zk.put("/consumers/g/offsets/t/0", "0")
        with (
            ClusterReader(connect) as reader,
            Probe(cluster.bootstrap, "t", timeout_s=30, runtime=THREADS) as probe,
        ):
            probe.round()
            probe.settle()
            exporter = Exporter(reader, THREADS, probe.families)
            exporter.refresh()
        of_broker = Scrape(cluster.brokers[0]).text
    known = labels_by_name(exporter.text) | labels_by_name(of_broker)
    queries = shipped_queries()
    assert len(queries) > 30
    for query in queries:
        names = set(re.findall(r"\b(?:kafka|kminion)\w+", query))
        assert names, query
        assert names <= set(known), query
        labels = {"instance"}.union(*(known[name] for name in names))
        assert labels_asked(query) <= labels, query
