"""Three brokers of each kind, three replicas, acks=-1.

Both clusters run all the time and take turns, so that the machine is equally busy for both. CPU is
that of all three brokers, a gigabyte one that was acknowledged.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import load
from benchmarks.clusters import Cluster
from benchmarks.report import Goal
from benchmarks.warm import Measured, fair_rounds, report_case
from kafka08.protocol.produce import ProduceRequest

NAME = "replicated"
PARTITIONS = 6
CONNECTIONS_EACH = 2
"""Connections that send to one partition, each with one request under way at the broker and the
next one waiting in the socket."""
ALL_IN_SYNC = -1
SETTINGS = {"log.segment.bytes": str(1 << 26), "log.retention.bytes": str(1 << 26)}
"""Small: the logs of both clusters lie in memory, 18 replicas each, beside six brokers."""

Run = Callable[[Cluster, str, float], dict[str, float]]


def produce(data: bytes, connections_each: int = CONNECTIONS_EACH) -> Run:
    """Sets of `data` to all partitions at once."""

    def run(cluster: Cluster, topic: str, seconds: float) -> dict[str, float]:
        streams = []
        for number, leader in enumerate(cluster.leaders(topic)):
            frame = load.produce_frame(topic, number, data, ALL_IN_SYNC)
            with load.connect(leader.address) as connection:
                response = load.exchange(connection, frame)
            load.check_response(ProduceRequest, response)
            streams += [
                load.Stream(leader.address, [frame], len(response), 2)
                for _ in range(connections_each)
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
        f"{NAME} 16 KB, 6 conns",
        (Goal("rate", "MB/s", 2, True), Goal("cpu", "s/GB", 0.5, False)),
        produce(load.plain_set(100, 16_384), 1),
    ),
    (
        f"{NAME} 200 KB sets",
        (Goal("rate", "MB/s", 2, True), Goal("cpu", "s/GB", 0.5, False)),
        produce(load.plain_set(1000, 200_000)),
    ),
    (
        f"{NAME} one in flight",
        (Goal("p50", "µs", 0.8, False), Goal("p99", "µs", 0.8, False)),
        latency,
    ),
)


def replicated_cases(
    directory: Path, zookeeper: str, only: str, rounds: int, seconds: float
) -> list[dict[str, object]]:
    """The rows of the cases whose names contain `only`."""
    wanted = [case for case in CASES if only in case[0]]
    if not wanted:
        return []
    clusters = [
        Cluster(name, directory / NAME, f"{zookeeper}/{NAME}-{name}", SETTINGS)
        for name in ("jvm", "ours")
    ]
    rows: list[dict[str, object]] = []
    try:
        for cluster in clusters:
            cluster.start()
        for number, (name, goals, run) in enumerate(wanted):
            measured = measure(clusters, f"case-{number}", run, goals[0], rounds, seconds)
            rows += report_case(name, goals, measured)
    finally:
        for cluster in clusters:
            cluster.kill()
    return rows


def measure(
    clusters: Sequence[Cluster], topic: str, run: Run, main: Goal, rounds: int, seconds: float
) -> dict[str, Measured]:
    """Rounds of one case, the clusters taking turns once both are warm."""
    by_name = {cluster.name: cluster for cluster in clusters}
    for cluster in clusters:
        cluster.create_topic(topic, PARTITIONS)
    return fair_rounds(
        list(by_name),
        lambda name, _: run(by_name[name], topic, seconds),
        main,
        rounds,
        time.monotonic,
    )
