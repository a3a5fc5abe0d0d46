"""CPU of the plan of a Spark read or a scan with 100,000 ranges of 10,000 partitions.

    python -m benchmarks.spark_plan [--partitions 10000] [--ranges 100000]

The brokers are in memory, so all of it is our own: their metadata and offsets, resolving, cutting,
and finding the leaders. With splitBy=bytes no range can be measured (their logs are empty), but all
are asked for.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping

from kafka08.arrow.options import parse_read_options
from kafka08.arrow.ranges import OffsetRange, ranges_to_json
from kafka08.arrow.resolve import Resolver
from kafka08.structs import TopicPartition
from tests.arrow.logs import LogCluster

OFFSETS = 1000
"""Of each partition."""
SECONDS = 3.0
"""The goal for each case."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="spark_plan", description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--ranges", type=int, default=100_000)
    options = parser.parse_args()
    partitions, count = options.partitions, options.ranges
    cluster = LogCluster({"t": {number: 1 + number % 2 for number in range(partitions)}})
    for number in range(partitions):
        cluster.shapes[TopicPartition("t", number)].end = OFFSETS
    size = OFFSETS * partitions // count
    exact = [
        OffsetRange("t", number, start, start + size)
        for number in range(partitions)
        for start in range(0, OFFSETS - size + 1, size)
    ]
    cut = {"subscribe": "t", "minPartitions": str(count)}
    cases = {
        "minPartitions": cut,
        "splitBy=bytes": cut | {"splitBy": "bytes"},
        "offsetRanges": {"offsetRanges": ranges_to_json(exact)},
    }
    met = [planned(cluster, name, given) <= SECONDS for name, given in cases.items()]
    return 0 if all(met) else 1


def planned(cluster: LogCluster, name: str, given: Mapping[str, str]) -> float:
    """The CPU seconds of a plan, which are printed."""
    started = time.process_time()
    options = parse_read_options({"kafka.bootstrap.servers": "b1:9092", **given})
    resolver = Resolver(options, cluster.client)
    tasks = resolver.tasks(resolver.batch())
    located = sum(resolver.leader(task.topic_partition) is not None for task in tasks)
    seconds = time.process_time() - started
    assert located == len(tasks)
    sys.stdout.write(
        f"{name}: {len(tasks)} tasks in {seconds:.1f} CPU seconds (goal <= {SECONDS:.0f}) "
        f"{'ok' if seconds <= SECONDS else 'MISSED'}\n"
    )
    return seconds


if __name__ == "__main__":
    sys.exit(main())
