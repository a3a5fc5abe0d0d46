"""Three brokers of each kind, three replicas, acks=-1.

Both clusters run all the time and take turns, so that the machine is equally busy for both. CPU is
that of all three brokers, a gigabyte one that was acknowledged.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from kafka08.admin import AdminClient
from kafka08.protocol.produce import ProduceRequest
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from scripts.benchmarks import load
from scripts.benchmarks.report import Goal, report
from scripts.benchmarks.subjects import JvmSubject, OurSubject, await_leaders, cpu_seconds

NAME = "replicated"
BROKERS = (1, 2, 3)
PARTITIONS = 6
CONNECTIONS_EACH = 2
"""Connections that send to one partition, each with one request under way at the broker."""
ALL_IN_SYNC = -1
SETTINGS = {"log.segment.bytes": str(1 << 28), "log.retention.bytes": str(1 << 27)}

Broker = JvmSubject | OurSubject


class Cluster:
    """Three brokers of one kind below a chroot of their own."""

    def __init__(self, name: str, directory: Path, zookeeper: str) -> None:
        self.name = name
        self._zookeeper = f"{zookeeper}/three-{name}"
        self.brokers = [self._broker(directory / f"three-{name}-{n}", n) for n in BROKERS]

    def _broker(self, directory: Path, number: int) -> Broker:
        if self.name == "jvm":
            return JvmSubject(directory, self._zookeeper, SETTINGS, broker_id=number, heap="512m")
        return OurSubject(directory, self._zookeeper, SETTINGS, broker_id=number)

    def start(self) -> None:
        for broker in self.brokers:
            broker.start()

    def kill(self) -> None:
        for broker in self.brokers:
            broker.kill()

    def create_topic(self, topic: str) -> None:
        with AdminClient(self._zookeeper) as admin:
            admin.create_topic(topic, PARTITIONS, len(BROKERS))
        for broker in self.brokers:
            await_leaders(broker, topic, PARTITIONS)

    def leaders(self, topic: str) -> list[Broker]:
        """The leader of each partition."""
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        with ZkClient(self._zookeeper) as zk:
            states = ClusterStore(zk).leader_and_isr(partitions)
        return [self.brokers[states[tp].leader - 1] for tp in partitions]

    def cpu_seconds(self) -> float:
        return sum(cpu_seconds(broker.pid) for broker in self.brokers)


Run = Callable[[Cluster, str, float], dict[str, float]]


def produce(data: bytes) -> Run:
    """Sets of `data` to all partitions at once."""

    def run(cluster: Cluster, topic: str, seconds: float) -> dict[str, float]:
        streams = []
        for number, leader in enumerate(cluster.leaders(topic)):
            frame = load.produce_frame(topic, number, data, ALL_IN_SYNC)
            with load.connect(leader.address) as connection:
                answer = load.exchange(connection, frame)
            load.check_answer(ProduceRequest, answer)
            streams += [
                load.Stream(leader.address, [frame], len(answer), 2)
                for _ in range(CONNECTIONS_EACH)
            ]
        before = cluster.cpu_seconds()
        requests, elapsed = load.drive(streams, seconds)
        megabytes = requests * len(data) / 1e6
        return {
            "rate": megabytes / elapsed,
            "cpu": (cluster.cpu_seconds() - before) / megabytes * 1000,
        }

    return run


def latency(cluster: Cluster, topic: str, seconds: float) -> dict[str, float]:
    """One message at a time to one partition."""
    frame = load.produce_frame(topic, 0, load.plain_set(100, 1), ALL_IN_SYNC)
    times = load.round_trips(cluster.leaders(topic)[0].address, frame, int(800 * seconds))
    return {"p50": statistics.median(times) * 1e6, "p99": times[int(len(times) * 0.99)] * 1e6}


CASES: Sequence[tuple[str, tuple[Goal, ...], Run]] = (
    (
        f"{NAME} 16 KB sets",
        (Goal("rate", "MB/s", 2, True), Goal("cpu", "s/GB", 0.5, False)),
        produce(load.plain_set(100, 16_384)),
    ),
    (
        f"{NAME} 200 KB sets",
        (Goal("rate", "MB/s", 1.5, True), Goal("cpu", "s/GB", 0.6, False)),
        produce(load.plain_set(1000, 200_000)),
    ),
    (f"{NAME} one in flight", (Goal("p50", "µs", 1, False), Goal("p99", "µs", 1, False)), latency),
)


def replicated_cases(
    directory: Path, zookeeper: str, only: str, rounds: int, seconds: float
) -> list[dict[str, object]]:
    """The rows of the cases whose names contain `only`."""
    wanted = [case for case in CASES if only in case[0]]
    if not wanted:
        return []
    clusters = [Cluster(name, directory, zookeeper) for name in ("jvm", "ours")]
    rows: list[dict[str, object]] = []
    try:
        for cluster in clusters:
            cluster.start()
        for number, (name, goals, run) in enumerate(wanted):
            found = measure(clusters, f"case-{number}", run, rounds, seconds)
            for goal in goals:
                jvm, ours = (
                    statistics.median(figures[goal.figure] for figures in found[cluster.name])
                    for cluster in clusters
                )
                rows.append(report(name, goal, jvm=jvm, ours=ours))
    finally:
        for cluster in clusters:
            cluster.kill()
    return rows


def measure(
    clusters: Sequence[Cluster], topic: str, run: Run, rounds: int, seconds: float
) -> dict[str, list[dict[str, float]]]:
    """Rounds of one case, the clusters taking turns; the first of each only warms it up."""
    found: dict[str, list[dict[str, float]]] = {cluster.name: [] for cluster in clusters}
    for cluster in clusters:
        cluster.create_topic(topic)
    for number in range(rounds + 1):
        for cluster in clusters:
            figures = run(cluster, topic, seconds)
            if number:
                found[cluster.name].append(figures)
    return found
