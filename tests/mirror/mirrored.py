"""Mirrors between two clusters as processes, what they copy, and what of it must hold.

Each message's value is its key and a number that rises by one within the key, so that what is
missing and what changed its place shows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from kafka08.consumer import SimpleConsumer
from kafka08.embedded import EmbeddedCluster
from kafka08.producer import KafkaProducer, KafkaProducerConfig
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore

DEADLINE_S = 90.0
KEYS = 20
PARTITIONS = 3


class Mirrors:
    """Runs `kafka08 mirror` of one topic, again and again."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, log: Path) -> None:
        self._source = source
        self._target = target
        self._log = log
        self.running: subprocess.Popen[bytes] | None = None

    def start(self, topic: str, *options: str) -> None:
        with self._log.open("ab") as err:
            self.running = subprocess.Popen(
                [
                    *(sys.executable, "-m", "kafka08.cli", "mirror", "--whitelist", topic),
                    *("--source-zookeeper", self._source.zookeeper.connect_string),
                    *("--target-bootstrap", self._target.bootstrap),
                    *("--group", f"mirror-{topic}", "--streams", "2"),
                    *("--consumer-override", "auto.commit.interval.ms=100"),
                    *("--consumer-override", "zookeeper.session.timeout.ms=2000"),
                    *options,
                ],
                stderr=err,
                stdout=subprocess.DEVNULL,
                env={k: v for k, v in os.environ.items() if not k.startswith("KAFKA08_")},
            )

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit code."""
        assert self.running is not None
        running, self.running = self.running, None
        running.send_signal(number)
        return running.wait(DEADLINE_S)

    @property
    def said(self) -> str:
        return self._log.read_text()


class Feed:
    """Writes numbered messages to the source."""

    def __init__(self, cluster: EmbeddedCluster, topic: str) -> None:
        self._config = KafkaProducerConfig(bootstrap_servers=cluster.bootstrap, acks="1", retries=5)
        self._topic = topic
        self.count = 0

    def write(self, count: int) -> None:
        numbers = range(self.count, self.count + count)
        self.count += count
        with KafkaProducer(self._config) as producer:
            keys = [b"k%d" % (n % KEYS) for n in numbers]
            values = [b"%s:%d" % (k, n // KEYS) for k, n in zip(keys, numbers, strict=True)]
            producer.send_many(self._topic, values, keys).result(DEADLINE_S)


def stored(cluster: EmbeddedCluster, topic: str) -> dict[int, list[tuple[bytes, bytes]]]:
    """partition → (key, value) of every message."""
    found = {}
    for number in range(PARTITIONS):
        leader = cluster.leader_of(topic, number)
        with SimpleConsumer(leader.host, leader.port) as consumer:
            messages = consumer.read_range(TopicPartition(topic, number), 0)
            found[number] = [(m.key or b"", m.value or b"") for m in messages]
    return found


def copies(cluster: EmbeddedCluster, topic: str) -> int:
    return sum(len(messages) for messages in stored(cluster, topic).values())


def check(cluster: EmbeddedCluster, topic: str, count: int) -> int:
    """Every message is there, each key in one partition and its last copies in order; how many
    messages there are too many."""
    by_key: dict[bytes, list[tuple[int, int]]] = {}
    total = 0
    for partition, messages in stored(cluster, topic).items():
        total += len(messages)
        for key, value in messages:
            by_key.setdefault(key, []).append((partition, int(value.partition(b":")[2])))
    assert {b"k%d" % n for n in range(KEYS)} == by_key.keys()
    for key, places in by_key.items():
        assert 1 == len({partition for partition, _ in places}), key
        numbers = [number for _, number in places]
        last = {number: index for index, number in enumerate(numbers)}
        assert list(range(count // KEYS)) == sorted(last, key=last.__getitem__), key
    return total - count


def committed(cluster: EmbeddedCluster, topic: str) -> int:
    """How many messages of the source are committed."""
    with ZkClient(cluster.zookeeper.connect_string, name="inspector") as zk:
        partitions = [TopicPartition(topic, n) for n in range(PARTITIONS)]
        return sum(GroupStore(zk).offsets(f"mirror-{topic}", partitions).values())
