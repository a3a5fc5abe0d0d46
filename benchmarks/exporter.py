"""The cost of `kafka08 metrics` on a cluster of many groups: a thousand of a hundred partitions.

Half of the groups commit to ZooKeeper, half to Kafka. A read is quiet if no group has committed
since the one before, busy if each has in each partition. Another process scrapes all the time.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from benchmarks import scratch
from benchmarks.subjects import OurSubject, await_leaders, cpu_seconds, resident_megabytes
from kafka08.admin import AdminClient
from kafka08.cli.http_server import serve_http
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.requests import commit_request
from kafka08.exporter import ClusterReader, Exporter
from kafka08.exporter.exporter import COLLECTIONS
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.runtime.threads import THREADS
from kafka08.structs import OffsetAndMetadata, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Create, Set
from tests.interop.jvm import JvmZooKeeper

TOPIC: Final = "t"
MESSAGES: Final = 50
"""In each partition; offsets of groups stay below it, so each has a lag."""
SCRAPE_S: Final = 1.0
"""A scrape may take so long."""
SCRAPER: Final = """
import sys, time, urllib.request
print(flush=True)
while True:
    began = time.monotonic()
    asked = urllib.request.Request(sys.argv[1], headers={"Accept-Encoding": "gzip"})
    size = len(urllib.request.urlopen(asked).read())
    print(size, time.monotonic() - began, flush=True)
    time.sleep(0.2)
"""


class Groups:
    """The groups of the cluster; `commit_all` moves each of them one message on."""

    def __init__(self, zookeeper: str, bootstrap: str, groups: int, partitions: int) -> None:
        self._zk = ZkClient(zookeeper)
        self._cluster = ClusterClient(parse_bootstrap(bootstrap))
        names = [f"group-{number:04}" for number in range(groups)]
        self._in_zookeeper, self._in_kafka = names[: groups // 2], names[groups // 2 :]
        self._partitions = [TopicPartition(TOPIC, number) for number in range(partitions)]
        self._offset = 0

    def __enter__(self) -> Groups:
        self._zk.start()
        for name in self._in_kafka:  # a member of 0.8 leaves this behind
            self._zk.ensure(paths.consumer_ids(name))
        for name in self._in_zookeeper:
            self._zk.ensure(paths.offsets(name, TOPIC))
        self._zk.pipeline([Create(path, "0") for path in self._offset_paths()])
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()
        self._zk.close()

    def _offset_paths(self) -> list[str]:
        return [paths.offset(name, *tp) for name in self._in_zookeeper for tp in self._partitions]

    def commit_all(self) -> None:
        self._offset += 1
        writes = [Set(path, str(self._offset)) for path in self._offset_paths()]
        for start in range(0, len(writes), 5000):
            self._zk.pipeline(writes[start : start + 5000])
        offsets = dict.fromkeys(self._partitions, OffsetAndMetadata(self._offset))
        for name in self._in_kafka:
            request = commit_request(name, offsets, "kafka")
            self._cluster.send(self._cluster.coordinator(name), request)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench exporter", description=__doc__)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--reads", type=int, default=3, help="reads of each kind (default 3)")
    parser.add_argument("--level", default="0.10.2", help="api.level of the broker")
    scratch.add_option(parser)
    options = parser.parse_args()
    with (
        scratch.scratch(options) as directory,
        JvmZooKeeper(directory / "zk") as zookeeper,
    ):
        broker = OurSubject(
            directory / "ours", zookeeper.connect_string, {"api.level": options.level}
        )
        broker.start()
        try:
            return measure(zookeeper, broker, options)
        finally:
            broker.kill()


def measure(zookeeper: JvmZooKeeper, broker: OurSubject, options: argparse.Namespace) -> int:
    gc.set_threshold(*COLLECTIONS)
    fill(zookeeper.connect_string, broker, options.partitions)
    connect = zookeeper.connect_string
    with (
        Groups(connect, broker.address, options.groups, options.partitions) as groups,
        ClusterReader(connect) as reader,
    ):
        groups.commit_all()
        exporter = Exporter(reader, THREADS)
        pids = {"broker": broker.pid, "ZooKeeper": zookeeper.pid}
        row = Row(reader, pids)
        print(f"{options.groups} groups of {options.partitions} partitions, {options.level}")
        row.print("first read", exporter.refresh)
        address = serve_http(exporter.app, "127.0.0.1", 0, "--listen")
        with scraping(address) as lines:
            for _ in range(options.reads):
                row.print("quiet read", exporter.refresh)
            for _ in range(options.reads):
                groups.commit_all()
                row.print("busy read", exporter.refresh)
        size = int(lines[-1].split()[0])
        took = sorted(float(line.split()[1]) for line in lines)
        slowest = took[-1]
        print(
            f"{len(exporter.body) / 1e6:.1f} MB of text, {size / 1e6:.1f} MB compressed, "
            f"{len(took)} scrapes, median {statistics.median(took):.3f} s, "
            f"99 % below {took[len(took) * 99 // 100]:.2f} s, slowest {slowest:.2f} s"
        )
        print(f"{resident_megabytes(os.getpid()):.0f} MB of memory")
    return int(slowest > SCRAPE_S)


def fill(connect: str, broker: OurSubject, partitions: int) -> None:
    with AdminClient(connect) as admin:
        admin.create_topic(TOPIC, partitions, 1)
    await_leaders(broker, TOPIC, partitions)
    config = KafkaProducerConfig({"bootstrap.servers": broker.address, "retries": "10"})
    with KafkaProducer(config) as producer:
        for number in range(partitions):
            for _ in range(MESSAGES):
                producer.send(ProducerRecord(TOPIC, b"x", partition=number))


class Row:
    """The cost of one read: seconds, CPU seconds here and in the servers, requests."""

    def __init__(self, reader: ClusterReader, pids: dict[str, int | None]) -> None:
        self._reader = reader
        self._pids = pids

    def _figures(self) -> dict[str, float]:
        return {
            "s": time.monotonic(),
            "s CPU": time.process_time(),
            **{f"s CPU {name}": cpu_seconds(pid) for name, pid in self._pids.items()},
            "requests to ZooKeeper": self._reader.requests_sent,
            "OffsetFetches": self._reader.offset_fetches_sent,
        }

    def print(self, name: str, read: Callable[[], object]) -> None:
        before = self._figures()
        read()
        after = self._figures()
        said = ", ".join(f"{after[what] - before[what]:.4g} {what}" for what in before)
        print(f"{name:12} {said}", flush=True)


@contextmanager
def scraping(address: str) -> Iterator[Sequence[str]]:
    """A process that scrapes; the list grows by a line for each scrape: bytes and seconds."""
    command = [sys.executable, "-c", SCRAPER, address]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as scraper:
        assert scraper.stdout is not None
        scraper.stdout.readline()
        collector = threading.Thread(target=lambda: lines.extend(scraper.stdout or ()))
        collector.start()
        try:
            yield lines
        finally:
            scraper.terminate()
            collector.join()


if __name__ == "__main__":
    sys.exit(main())
