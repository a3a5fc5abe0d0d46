"""Seconds that the steps of a migration of many groups take, by the command itself.

    .venv/bin/python -m benchmarks.migration [--groups 10000] [--partitions 8]
    scripts/bench --only migration                                   # a few groups

Not a comparison: the JVM has no such tool. The groups are stopped, each with an offset in every
partition of one topic in ZooKeeper. One broker of ours, one ZooKeeper, on this machine.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.report import Goal, report
from kafka08.embedded import EmbeddedCluster
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Create

TOPIC = "migration-bench"
TIMEOUT_S = 1800
PARTITIONS = 8
LIMIT_GROUPS = 10_000
LIMITS_S = {
    "plan": 60.0,
    "start": 300.0,
    "status": 60.0,
    "verify": 300.0,
    "finish": 300.0,
    "rollback": 300.0,
}
"""What so many groups may take, in the order of a migration."""
CASE_GROUPS = 500


def fill(connect: str, groups: int, partitions: int) -> None:
    with ZkClient(connect) as zk:
        for first in range(0, groups, 500):
            names = [f"group-{n:05d}" for n in range(first, min(first + 500, groups))]
            zk.pipeline([Create(paths.consumer_ids(name), None) for name in names])
            zk.pipeline(
                [
                    Create(paths.offset(name, TOPIC, partition), "0")
                    for name in names
                    for partition in range(partitions)
                ]
            )


def timed(*words: str) -> tuple[float, float]:
    """(seconds, seconds of processor time) that `kafka08 WORDS` takes, its servers' not counted;
    CalledProcessError if it fails."""
    began, used = time.monotonic(), processor_seconds()
    command = [sys.executable, "-m", "kafka08.cli", *words]
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
    )
    return time.monotonic() - began, processor_seconds() - used


def processor_seconds() -> float:
    """Processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(groups: int, partitions: int) -> Iterator[tuple[str, float, float]]:
    """(verb, seconds, processor seconds) for that many stopped groups."""
    with EmbeddedCluster(brokers=1, level="0.8.2") as cluster:
        connect = cluster.zookeeper.connect_string
        cluster.create_topic(TOPIC, partitions)
        fill(connect, groups, partitions)
        for verb in LIMITS_S:
            yield verb, *timed("migrate", verb, "--all", "--zookeeper", connect)


def migration_case(only: str) -> list[dict[str, object]]:
    """A few groups, each verb beside its share of the limit for 10,000 groups. The start of the
    command counts, so many groups come out better."""
    if only not in "migration":
        return []
    goal = Goal("seconds", "s", 1.0, higher=False)
    share = CASE_GROUPS / LIMIT_GROUPS
    return [
        report(f"migration {verb}", goal, jvm=LIMITS_S[verb] * share, ours=seconds, other="limit")
        for verb, seconds, _ in run(CASE_GROUPS, PARTITIONS)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.migration", description=__doc__)
    parser.add_argument("--groups", type=int, default=LIMIT_GROUPS)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    options = parser.parse_args()
    print(f"{options.groups} groups x {options.partitions} partitions", flush=True)
    for verb, seconds, used in run(options.groups, options.partitions):
        print(
            f"migrate {verb:8} --all {seconds:7.1f} s {options.groups / seconds:7.0f} groups/s "
            f"{used:7.1f} s of its own processor time",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
