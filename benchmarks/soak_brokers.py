"""Cycles of legal work on three brokers, and what each cycle leaves behind for good.

A cycle creates topics, writes and reads them with groups of both kinds, asks for what must be
refused, changes overrides, adds partitions, moves replicas, elects leaders, and deletes the topics
of the cycle before; some restart a broker. A moment later, descriptors, files, znodes and memory
are counted. Their growth per cycle is the median slope between any two cycles after the warm-up.
Exits 1 with the names of those that grow.
"""

from __future__ import annotations

import os
import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import Any, Final

from benchmarks.embedded import pss
from benchmarks.soak import announced, say, soak_parser
from benchmarks.soak_embedded import descriptors
from kafka08.admin import AdminClient
from kafka08.client.requests import fetch_request, fetch_results, produce_request, produce_results
from kafka08.consumer import ConsumerConfig, ConsumerConnector, KafkaConsumer, KafkaConsumerConfig
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import NotLeaderForPartition, UnknownTopicOrPartition
from kafka08.levels import LEVELS, NEWEST
from kafka08.network.connection import Connection
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.protocol import message_set
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from tests.waiting import until

BROKERS: Final = 3
TOPICS: Final = 8
PARTITIONS: Final = 2
RECORDS: Final = 100
VALUE_BYTES: Final = 1000
COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4")
REFUSED: Final = 20
"""Refused requests of a cycle to each broker, each on a connection of its own."""
REFUSED_BYTES: Final = 200_000
RESTART_EVERY: Final = 3
QUIET_S: Final = 12.0
"""From the work to the first look: an idle broker collects its garbage every ten seconds."""
LOOKS: Final = 3
TIMEOUT_S: Final = 60.0
KB_MAX: Final = 200.0
"""Growth of a broker's memory per cycle; nothing else may grow. That of the last one, which is
restarted, is not judged, nor that of the clients, here: malloc keeps some for each thread."""
CONFIG: Final = {"log.segment.delete.delay.ms": "500"}

Counts = dict[str, Counter[str]]
"""Kind and place → the names of what is there."""


def run_cycle(cluster: EmbeddedCluster, zk: ZkClient, number: int, rng: random.Random) -> None:
    """Do the work of one cycle; raises if any of it fails."""
    topics = topics_of(number)
    for topic in topics:
        cluster.create_topic(topic, PARTITIONS, BROKERS)
    for compression in COMPRESSIONS:
        with KafkaProducer(
            bootstrap_servers=cluster.bootstrap, compression_type=compression
        ) as producer:
            for record in (ProducerRecord(t, rng.randbytes(VALUE_BYTES)) for t in topics * RECORDS):
                producer.send(record)
            producer.flush(TIMEOUT_S)
    consume(cluster, topics, f"soak-{number}")
    consume_by_zookeeper(cluster, topics[0], f"soak-{number}-zk")
    ask_in_vain(cluster, [TopicPartition(topic, 0) for topic in topics])
    if number > 1:
        change_and_delete(cluster, zk, topics_of(number - 1), rng)
    if number % RESTART_EVERY == 0:
        cluster.restart(BROKERS - 1)
        cluster.wait.led()
    with AdminClient(zk=zk) as admin:
        admin.elect_preferred()
    until(lambda: not zk.exists(paths.PREFERRED_ELECTION), "the election's end")


def topics_of(number: int) -> list[str]:
    return [f"soak-{number}-{n}" for n in range(TOPICS)]


def change_and_delete(
    cluster: EmbeddedCluster, zk: ZkClient, topics: list[str], rng: random.Random
) -> None:
    """Change topics that have been there for a cycle: what is old is collected seldom."""
    with AdminClient(zk=zk) as admin:
        for topic in topics[: TOPICS // 2]:
            admin.alter_topic(topic, config={"retention.ms": "3600000"}, partitions=2 * PARTITIONS)
            cluster.wait.topic(topic, partitions=2 * PARTITIONS)
        ids = [broker.id for broker in cluster.brokers]
        moved = [TopicPartition(topic, 0) for topic in topics[-2:]]
        admin.move_partitions({tp: tuple(rng.sample(ids, BROKERS - 1)) for tp in moved})
        until(lambda: not zk.exists(paths.REASSIGN_PARTITIONS), "the moves")
        for topic in topics:
            admin.delete_topic(topic)
        until(lambda: set(topics).isdisjoint(admin.list_topics()), "the deletions")


def consume(cluster: EmbeddedCluster, topics: list[str], group: str) -> None:
    """Read all topics with two members of a group."""
    config = KafkaConsumerConfig(
        bootstrap_servers=cluster.bootstrap, group_id=group, auto_offset_reset="earliest"
    )
    left, stop_at = len(topics) * RECORDS * len(COMPRESSIONS), time.monotonic() + TIMEOUT_S
    with KafkaConsumer(config) as first, KafkaConsumer(config) as second:
        first.subscribe(topics)
        second.subscribe(topics)
        while left > 0:
            assert time.monotonic() < stop_at, f"{left} records were not read"
            left -= sum(len(list(consumer.poll(0.1))) for consumer in (first, second))


def consume_by_zookeeper(cluster: EmbeddedCluster, topic: str, group: str) -> None:
    """Read one topic; another member joins; both leave, and the group is deleted."""
    config = ConsumerConfig(
        zookeeper_connect=cluster.zookeeper.connect_string,
        group_id=group,
        auto_offset_reset="smallest",
        consumer_timeout_ms=int(TIMEOUT_S * 1000),
    )
    with ConsumerConnector(config) as first, ConsumerConnector(config) as second:
        [stream] = first.create_message_streams({topic: 1})[topic]
        assert len(list(islice(stream, RECORDS))) == RECORDS
        second.create_message_streams({topic: 1})
        cluster.wait.group(group, 2)
    second.delete_group()


def ask_in_vain(cluster: EmbeddedCluster, tps: list[TopicPartition]) -> None:
    """Produce to each broker and fetch from it, a partition that there is not, and one that another
    broker leads."""
    absent = TopicPartition("absent", 0)
    data = bytearray(message_set.encode([(None, bytes(REFUSED_BYTES))]))
    for broker in cluster.brokers * REFUSED:
        led_elsewhere = next(tp for tp in tps if cluster.leader_of(*tp).id != broker.id)
        wanted = (absent, led_elsewhere)
        produce = produce_request(dict.fromkeys(wanted, data), required_acks=1, timeout_ms=1000)
        positions = dict.fromkeys(wanted, (0, REFUSED_BYTES))
        fetch = fetch_request(positions, max_wait_ms=0, min_bytes=0)
        with Connection(broker.address.host, broker.address.port, timeout_ms=30_000) as connection:
            written: Any = connection.send(produce)
            read: Any = connection.send(fetch)
        for results in (produce_results(written), fetch_results(read)):
            codes = [results[tp].error_code for tp in wanted]
            assert codes == [UnknownTopicOrPartition.code, NotLeaderForPartition.code], codes


def counts(cluster: EmbeddedCluster, zk: ZkClient) -> Counts:
    """Descriptors, files below the log directories, and znodes. Not the snapshots of producers:
    each clean stop leaves one until its segment is rolled, as Kafka's does."""
    found = {"znodes": named(znodes(zk, "/")), "descriptors of this process": named(descriptors())}
    for broker in cluster.brokers:
        found[f"descriptors of broker {broker.id}"] = named(descriptors(broker.process.pid))
        files = (f"{path}/{name}" for path, _, names in os.walk(broker.log_dirs) for name in names)
        kept = (file for file in files if not file.endswith(".snapshot"))
        found[f"files of broker {broker.id}"] = named(kept)
    return found


def named(things: Iterable[str]) -> Counter[str]:
    """Things by their names, without the numbers that differ from cycle to cycle."""
    return Counter(re.sub(r"^\d+ |\[\d+\]|(?<=soak-)\d+", "", thing) for thing in things)


def znodes(zk: ZkClient, path: str) -> Iterator[str]:
    """Those below a path; without the notifications that brokers keep for a quarter of an hour."""
    for name in zk.children_or_empty(path):
        child = f"{path.rstrip('/')}/{name}"
        yield child
        if child != paths.CONFIG_CHANGES:
            yield from znodes(zk, child)


def settled(cluster: EmbeddedCluster, zk: ZkClient) -> Counts:
    """Counts of what is there at each look after QUIET_S: a file that is being replaced is not."""
    time.sleep(QUIET_S)
    found = counts(cluster, zk)
    for _ in range(LOOKS - 1):
        time.sleep(1)
        again = counts(cluster, zk)
        found = {kind: names & again[kind] for kind, names in found.items()}
    return found


def slope(values: Sequence[float]) -> float:
    """Growth from one to the next: the median over all pairs, so that an outlier is no growth."""
    pairs = combinations(enumerate(values), 2)
    return statistics.median((last - first) / (n - m) for (m, first), (n, last) in pairs)


def growth(looks: Sequence[Counts], memory: Sequence[dict[str, float]]) -> list[str]:
    """Print the growth of each kind and of each process; returns a line for each that is too
    much."""
    problems = []
    for kind, first in looks[0].items():
        per_cycle = slope([look[kind].total() for look in looks])
        say(f"{kind}: {first.total()}, {per_cycle:+.2f} a cycle")
        if per_cycle > 0:
            added = sorted((looks[-1][kind] - first).elements())
            problems.append(f"{kind}: {len(added)} more, as {', '.join(added[-5:])}")
    for name in memory[0]:
        per_cycle = slope([held[name] for held in memory])
        say(f"memory of {name}: {memory[0][name]:,.0f} kB, {per_cycle:+,.0f} a cycle")
        if per_cycle > KB_MAX:
            problems.append(f"memory of {name}: {per_cycle:,.0f} kB a cycle")
    return problems


def main() -> int:
    parser = soak_parser("soak-brokers", __doc__)
    parser.set_defaults(minutes=0.0)
    parser.add_argument("--cycles", type=int, default=10, help="at least so many are judged")
    parser.add_argument("--warm-up", type=int, default=5, help="cycles before those")
    parser.add_argument("--level", choices=[*LEVELS][1:], default=str(NEWEST))
    options = parser.parse_args()
    rng = random.Random(options.seed)
    stop_at = time.monotonic() + options.minutes * 60
    looks: list[Counts] = []
    memory: list[dict[str, float]] = []
    with (
        announced(options),
        EmbeddedCluster(BROKERS, level=options.level, config=CONFIG) as cluster,
        ZkClient(cluster.zookeeper.connect_string) as zk,
    ):
        while len(looks) < options.warm_up + options.cycles or time.monotonic() < stop_at:
            run_cycle(cluster, zk, len(looks) + 1, rng)
            looks.append(settled(cluster, zk))
            memory.append(
                {f"broker {one.id}": pss(one.process.pid) / 1024 for one in cluster.brokers[:-1]}
            )
            totals = ", ".join(f"{kind} {found.total()}" for kind, found in looks[-1].items())
            held = ", ".join(f"{kb:,.0f}" for kb in memory[-1].values())
            say(f"cycle {len(looks)}: {totals}; kB {held}")
        problems = growth(looks[options.warm_up :], memory[options.warm_up :])
        for problem in problems:
            say(f"PROBLEM: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
