"""Run the cases on a JVM 0.8.2.2 broker and on ours in turn, and print figures and ratios."""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys
from pathlib import Path

from benchmarks import scratch
from benchmarks.broker_cases import CASES, Case
from benchmarks.consumer_cases import consumer_cases
from benchmarks.failovers import failover_cases
from benchmarks.group_cases import group_cases
from benchmarks.level_cases import level_cases
from benchmarks.migration import migration_case
from benchmarks.producers import producer_cases
from benchmarks.records_cases import records_cases
from benchmarks.recovery import recovery_case, start_case
from benchmarks.replicated import replicated_cases
from benchmarks.rounds import run_case
from benchmarks.subjects import JvmSubject, OurSubject, Subject
from benchmarks.tails import tail_cases
from kafka08 import kernel
from tests.interop.jvm import JvmZooKeeper


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="counted rounds of each case, once both sides are warm (default 5)",
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a round (default 2)")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--json", dest="json_file", help="write the medians to this file")
    scratch.add_option(parser)
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.name]
    rows: list[dict[str, object]] = []
    with (
        scratch.scratch(options) as directory,
        JvmZooKeeper(directory / "zk") as zookeeper,
    ):
        print(f"kernel: {kernel.NAME}; {options.rounds} rounds of {options.seconds} s")
        if cases or options.only in "start":
            rows += one_broker_cases(cases, directory, zookeeper, options)
        connect_string, rounds = zookeeper.connect_string, options.rounds
        rows += tail_cases(directory, connect_string, options.only, rounds)
        rows += recovery_case(directory, connect_string, options.only)
        rows += producer_cases(directory, connect_string, options.only, rounds)
        rows += replicated_cases(directory, connect_string, options.only, rounds, options.seconds)
        rows += failover_cases(directory, connect_string, options.only, rounds)
        rows += consumer_cases(directory, connect_string, options.only, rounds)
        rows += group_cases(directory, connect_string, options.only, rounds, options.seconds)
        rows += level_cases(directory, connect_string, options.only, rounds, options.seconds)
        rows += records_cases(directory, connect_string, options.only, rounds, options.seconds)
        rows += migration_case(options.only)
    if options.json_file:
        Path(options.json_file).write_text(json.dumps(rows, indent=1))
    return 0


def one_broker_cases(
    cases: list[Case], directory: Path, zookeeper: JvmZooKeeper, options: argparse.Namespace
) -> list[dict[str, object]]:
    """One broker of each kind, side by side."""
    subjects: list[Subject] = [
        JvmSubject(directory / "jvm", f"{zookeeper.connect_string}/jvm"),
        OurSubject(directory / "ours", f"{zookeeper.connect_string}/ours"),
    ]
    rows = start_case(subjects, options.only)
    try:
        for case in cases:
            rows += run_case(
                case,
                subjects,
                zookeeper.connect_string,
                directory=directory,
                rounds=options.rounds,
                seconds=options.seconds,
            )
    finally:
        for subject in subjects:
            subject.kill()
    return rows


if __name__ == "__main__":
    # Stopped, it still stops its servers and frees the memory that their logs take.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    socket.setdefaulttimeout(60)
    sys.exit(main())
