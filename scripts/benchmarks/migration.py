"""How long it takes to plan and to start the migration of many groups, by the command itself.

    .venv/bin/python -m scripts.benchmarks.migration [--groups 10000] [--partitions 8]

Not a comparison: the JVM has no such tool. The groups are stopped, each with an offset in every
partition of one topic in ZooKeeper. One broker of ours, one ZooKeeper, on this machine.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

from kafka08.embedded import EmbeddedCluster
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Create

TOPIC = "migration-bench"
PATIENCE_S = 1800


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
        timeout=PATIENCE_S,
    )
    return time.monotonic() - began, processor_seconds() - used


def processor_seconds() -> float:
    """Of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts.benchmarks.migration", description=__doc__)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=8)
    options = parser.parse_args()
    with EmbeddedCluster(brokers=1) as cluster:
        connect = cluster.zookeeper.connect_string
        cluster.create_topic(TOPIC, options.partitions)
        fill(connect, options.groups, options.partitions)
        print(f"{options.groups} groups x {options.partitions} partitions", flush=True)
        for words in (["plan", "--all"], ["start", "--all"], ["status", "--all"]):
            seconds, used = timed("migrate", *words, "--zookeeper", connect)
            rate = options.groups / seconds
            print(
                f"migrate {' '.join(words):14} {seconds:7.1f} s {rate:7.0f} groups/s "
                f"{used:7.1f} s of its own processor time",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
