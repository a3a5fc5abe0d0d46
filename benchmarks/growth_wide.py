"""The rows of `scripts/bench growth` that need more than a broker: a mirror, followers, ZooKeeper's
memory and watches, Spark, the log cleaner, and very many topics."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from benchmarks.growth_place import PARTITIONS, SMALL, Dimension, Place, topic_of
from benchmarks.subjects import cpu_seconds, resident_megabytes
from kafka08.admin import AdminClient
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.log_offsets import log_ends
from kafka08.client.metadata import ClusterMetadata
from kafka08.embedded import EmbeddedCluster
from kafka08.log.cleaner import LogCleaner
from kafka08.log.cleaner_plan import CleanerConfig
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.protocol import message_set
from kafka08.structs import TopicPartition, split_host_port

DEADLINE_S: Final = 600.0
IDLE_S: Final = 10.0
MIRRORED: Final = 20_000
"""Messages of a round."""
INDEX: Final = {"log.index.size.max.bytes": "4096"}
SPARK_ROWS_EACH: Final = 20
CLEANED_EACH: Final = 2
"""Messages of each key."""
BATCH: Final = 1000


def await_true(what: str, is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_true():
        assert time.monotonic() < deadline, f"not in {DEADLINE_S:g} s: {what}"
        time.sleep(0.05)


def messages_in(bootstrap: str, topic: str, partitions: int) -> int:
    """The sum of all log ends."""
    tps = [TopicPartition(topic, number) for number in range(partitions)]
    with closing(ClusterClient(parse_bootstrap(bootstrap))) as client:
        return sum(log_ends(client, tps).values())


def create_led(cluster: EmbeddedCluster, topic: str, partitions: int, replicas: int) -> None:
    """Make a topic, until brokers name the leaders of its partitions."""
    with AdminClient(cluster.zookeeper.connect_string) as admin:
        admin.create_topic(topic, partitions, replicas)
        admin.await_leaders(topic, int(DEADLINE_S * 1000))
    with closing(ClusterClient(parse_bootstrap(cluster.bootstrap))) as client:
        await_true(f"{topic} is led", lambda: is_led(client.refresh(), topic))


# A mirror


class Copies(NamedTuple):
    """A running mirror of a topic, and its target."""

    pid: int
    target: str


@contextmanager
def mirror_of(place: Place, partitions: int) -> Iterator[Copies]:
    """A mirror in a process of its own that has copied something."""
    topic = topic_of(partitions)
    target = place.keep("target of a mirror", lambda: EmbeddedCluster(1, config=INDEX))
    create_led(target, topic, partitions, 1)
    command = [
        *(sys.executable, "-m", "kafka08.cli", "mirror", "--whitelist", topic),
        *("--source-zookeeper", place.zookeeper, "--target-bootstrap", target.bootstrap),
        *("--group", f"mirror-{topic}", "--keep-partitions"),
    ]
    mirror = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        with KafkaProducer(bootstrap_servers=place.bootstrap) as producer:

            def has_copied() -> bool:
                producer.send(ProducerRecord(topic, b"x", partition=0)).result()
                return messages_in(target.bootstrap, topic, 1) > 0

            await_true("the mirror copies", has_copied)
        yield Copies(mirror.pid, target.bootstrap)
    finally:
        mirror.terminate()
        mirror.wait()


def mirrored(place: Place, partitions: int) -> float:
    """Microseconds of a mirror for a message of 100 bytes, evenly over so many partitions."""
    topic = topic_of(partitions)
    mirror = place.keep(("mirror", partitions), lambda: mirror_of(place, partitions))
    before = messages_in(mirror.target, topic, partitions)
    began = cpu_seconds(mirror.pid)
    with KafkaProducer(bootstrap_servers=place.bootstrap, buffer_memory=1 << 28) as producer:
        for number in range(MIRRORED):
            producer.send(ProducerRecord(topic, bytes(100), partition=number % partitions))
    await_true(
        "all messages are copied",
        lambda: messages_in(mirror.target, topic, partitions) >= before + MIRRORED,
    )
    return (cpu_seconds(mirror.pid) - began) / MIRRORED * 1e6


def idle_mirror(place: Place, partitions: int) -> float:
    """Thousandths of a core of a mirror of so many partitions without messages."""
    mirror = place.keep(("mirror", partitions), lambda: mirror_of(place, partitions))
    time.sleep(1)
    return of_a_core(lambda: cpu_seconds(mirror.pid))


def of_a_core(spent: Callable[[], float]) -> float:
    """Thousandths of a core, from a function that returns CPU seconds."""
    began, cpu_began = time.monotonic(), spent()
    time.sleep(IDLE_S)
    return (spent() - cpu_began) / (time.monotonic() - began) * 1e3


# Followers, and ZooKeeper


class Followed(NamedTuple):
    """Two brokers with a topic of two replicas, and the memory that it took of ZooKeeper."""

    cluster: Any
    topic: str
    zookeeper_kb: float

    def cpu(self) -> float:
        pids: list[int] = [broker.process.pid for broker in self.cluster.brokers]
        return sum(map(cpu_seconds, pids))


@contextmanager
def followed(partitions: int) -> Iterator[Followed]:
    with EmbeddedCluster(2, config=INDEX, zookeeper="embedded") as cluster:
        zookeeper = cluster.zookeeper.process.pid
        before = resident_megabytes(zookeeper)
        topic = topic_of(partitions)
        create_led(cluster, topic, partitions, 2)
        time.sleep(2)
        yield Followed(cluster, topic, (resident_megabytes(zookeeper) - before) * 1024)


def followed_of(place: Place, partitions: int) -> Followed:
    found: Followed = place.keep(("followed", partitions), lambda: followed(partitions))
    return found


def followed_record(place: Place, partitions: int) -> float:
    """Microseconds of leader and follower for a record with acks=all, one after the other, to one
    of so many partitions."""
    records = 300
    one = followed_of(place, partitions)
    with KafkaProducer(bootstrap_servers=one.cluster.bootstrap, acks="all") as producer:
        record = ProducerRecord(one.topic, b"x", partition=partitions // 2)
        producer.send(record).result()
        began = one.cpu()
        for _ in range(records):
            producer.send(record).result()
        return (one.cpu() - began) / records * 1e6


def followed_records(place: Place, partitions: int) -> float:
    """Microseconds of leaders and followers for a record with acks=all, one to each of so many
    partitions."""
    rounds = max(1, 2000 // partitions)
    one = followed_of(place, partitions)
    with KafkaProducer(
        bootstrap_servers=one.cluster.bootstrap, acks="all", buffer_memory=1 << 28
    ) as producer:
        producer.partitions_for(one.topic)
        began = one.cpu()
        for _ in range(rounds):
            for number in range(partitions):
                producer.send(ProducerRecord(one.topic, b"x", partition=number))
            producer.flush()
        return (one.cpu() - began) / rounds / partitions * 1e6


def idle_followers(place: Place, partitions: int) -> float:
    """Thousandths of a core of two brokers with so many partitions, which follow each other."""
    one = followed_of(place, partitions)
    time.sleep(1)
    return of_a_core(one.cpu)


def zookeeper_memory(place: Place, partitions: int) -> float:
    """Kilobytes of our ZooKeeper server for a partition of two replicas."""
    return max(0.01, followed_of(place, partitions).zookeeper_kb / partitions)


def zookeeper_watches(place: Place, partitions: int) -> float:
    """Watches that two brokers have in ZooKeeper for so many partitions."""
    cluster = followed_of(place, partitions).cluster
    return watches(cluster.zookeeper.connect_string)


def watches(connect: str) -> float:
    """The number of watches of all sessions, from `mntr`."""
    address = split_host_port(connect.partition("/")[0])
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(b"mntr")
        text = b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()
    [count] = [line.split()[1] for line in text.splitlines() if line.startswith("zk_watch_count")]
    return float(count)


# Spark, the log cleaner, topics


@contextmanager
def spark_session(directory: Path) -> Iterator[Any]:
    from kafka08.embedded.java import find_java
    from kafka08.embedded.spark_java import make_java_home
    from kafka08.spark.session import FULL_SPEED, local_session

    log_file = directory / "spark.log"
    home = make_java_home(directory / "java", find_java(), log_file)
    with local_session("growth", home, log_file, conf=FULL_SPEED) as spark:
        yield spark


def spark_partitions(place: Place, partitions: int) -> float:
    """Milliseconds of Spark, Java and Python together, for each partition of a topic that it
    counts, with twenty rows in each."""
    from benchmarks.spark_load import spark_cpu_seconds

    topic = topic_of(partitions)
    spark = place.keep("spark", lambda: spark_session(place.directory))
    key = ("rows for Spark", partitions)
    place.keep(key, lambda: filled(place, partitions))

    def count() -> int:
        options = {"kafka.bootstrap.servers": place.bootstrap, "subscribe": topic}
        read = spark.read.format("kafka08").options(**options)
        return int(read.option("startingOffsets", "earliest").load().count())

    if partitions == SMALL:
        count()  # Java is warm then
    began = spark_cpu_seconds([os.getpid()])
    assert count() >= SPARK_ROWS_EACH * partitions
    return (spark_cpu_seconds([os.getpid()]) - began) / partitions * 1e3


@contextmanager
def filled(place: Place, partitions: int) -> Iterator[None]:
    with AdminClient(place.zookeeper) as admin:
        if topic_of(partitions) not in {one.name for one in admin.describe_topics()}:
            admin.create_topic(topic_of(partitions), partitions, 1)
            admin.await_leaders(topic_of(partitions), int(DEADLINE_S * 1000))
    with KafkaProducer(bootstrap_servers=place.bootstrap, buffer_memory=1 << 28) as producer:
        producer.partitions_for(topic_of(partitions))
        for _ in range(SPARK_ROWS_EACH):
            for number in range(partitions):
                producer.send(ProducerRecord(topic_of(partitions), b"x", partition=number))
    yield


def cleaned_keys(place: Place, keys: int) -> float:
    """Microseconds of the cleaner for a message, in a log of so many keys, each written twice. The
    offset map has its usual memory, so ten million keys take two passes or more."""
    tp = TopicPartition("compacted", 0)
    with TemporaryDirectory(dir=place.directory) as name:
        manager = LogManager([Path(name)], LogConfig(cleanup_policy="compact"))
        manager.load()
        log = manager.get_or_create(tp)
        fill_compacted(log, keys)
        cleaner = LogCleaner(manager, CleanerConfig())
        began = time.process_time()
        while cleaner.clean_one():
            pass
        spent = time.process_time() - began
        manager.shutdown()
    return spent / keys / CLEANED_EACH * 1e6


def fill_compacted(log: Log, keys: int) -> None:
    for _ in range(CLEANED_EACH):
        for start in range(0, keys, BATCH):
            pairs = [(b"%d" % key, b"v" * 8) for key in range(start, start + BATCH)]
            log.append(bytearray(message_set.encode(pairs)))
    log.roll()


def created_topics(place: Place, topics: int) -> float:
    """Milliseconds of a broker for each of so many topics of one partition that are created."""
    with (
        EmbeddedCluster(1, config=INDEX) as cluster,
        AdminClient(cluster.zookeeper.connect_string) as admin,
    ):
        pid = cluster.brokers[0].process.pid
        began = cpu_seconds(pid)
        for number in range(topics):
            admin.create_topic(f"t{number}", 1, 1)
        admin.await_leaders(f"t{topics - 1}", int(DEADLINE_S * 1000))
        with closing(ClusterClient(parse_bootstrap(cluster.bootstrap))) as client:
            await_true("all topics are led", lambda: led_topics(client) >= topics)
        return (cpu_seconds(pid) - began) / topics * 1e3


def is_led(metadata: ClusterMetadata, topic: str) -> bool:
    found = metadata.topics.get(topic)
    return found is not None and all(one.leader >= 0 for one in found.partitions)


def led_topics(client: ClusterClient) -> int:
    metadata = client.refresh()
    return sum(is_led(metadata, topic) for topic in metadata.topics)


DIMENSIONS: Final = (
    Dimension("partitions of a mirror", "us", PARTITIONS, mirrored),
    Dimension("idle partitions of a mirror", "mcore", PARTITIONS, idle_mirror),
    Dimension("partitions with a follower, one", "us", PARTITIONS, followed_record),
    Dimension("partitions with a follower, all", "us", PARTITIONS, followed_records),
    Dimension("idle partitions with a follower", "mcore", PARTITIONS, idle_followers),
    Dimension("partitions, ZooKeeper's memory", "kB", PARTITIONS, zookeeper_memory, rounds=1),
    Dimension("partitions, ZooKeeper's watches", "all", PARTITIONS, zookeeper_watches, rounds=1),
    Dimension("partitions that Spark reads", "ms", (SMALL, 200, 1000), spark_partitions),
    Dimension("keys of a log that is cleaned", "us", (10**5, 10**6, 10**7), cleaned_keys, rounds=1),
    Dimension("topics that are created", "ms", (100, 1000, 10_000), created_topics, rounds=1),
)
