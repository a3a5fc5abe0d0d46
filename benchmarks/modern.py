"""Our clients beside confluent-kafka and aiokafka, at an Apache Kafka of today, with and without
TLS. All subjects take turns; medians of their rates.

Example: scripts/bench modern; scripts/bench modern --release 3.9.1 --only tls
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import scratch
from benchmarks.modern_client import FILL, PARTITIONS, SENDERS
from benchmarks.report import Goal, report
from benchmarks.subjects import server_flags
from kafka08.admin import BrokerAdmin
from kafka08.client import parse_bootstrap
from tests.interop.jvm import POM_3_9
from tests.interop.kraft_broker import KraftBroker
from tests.interop.secured_broker import Secured, secured_broker

COUNT: Final = 1_000_000
FEWER: Final = 10
"""By how much aiokafka's subjects, and ours beside them, have fewer messages."""
RELEASES: Final = ("4.4.0", "3.9.1")
RUN_S: Final = 300


class Case(NamedTuple):
    """Two subjects, and what our rate must be of the other's, which may be ours in threads."""

    ours: str
    other: str
    bound: float
    listener: str = "PLAINTEXT"

    @property
    def name(self) -> str:
        way = " tls" if self.listener == "SSL" else ""
        return f"{self.ours}{way} / {self.other}"

    @property
    def is_async(self) -> bool:
        return "async" in self.ours


CASES: Final = (
    Case("our iteration", "their consume", 4),
    Case("our Arrow batches", "their consume", 8),
    Case("our iteration", "their consume", 2, "SSL"),
    Case("our send", "their produce", 1.2),
    Case("our send_many", "their produce", 2),
    Case("our send", "their produce", 1, "SSL"),
    Case("our async iteration", "their async iteration", 5),
    Case("our async send", "their async send", 5),
    Case("our async iteration", "our iteration", 0.5),
    Case("our async send", "our send", 0.5),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench modern", description=__doc__)
    parser.add_argument("--release", choices=RELEASES, default=RELEASES[0])
    parser.add_argument("--rounds", type=int, default=5, help="of each subject (default 5)")
    parser.add_argument("--count", type=int, default=COUNT, help="messages of 100 bytes in a run")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--json", dest="json_file", help="write the medians to this file")
    scratch.add_option(parser)
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.name]
    with (
        scratch.scratch(options) as directory,
        broker_of(options.release, directory) as broker,
    ):
        rows = run(broker, cases, options.rounds, options.count)
    if options.json_file:
        Path(options.json_file).write_text(json.dumps(rows, indent=1))
    return 0


@contextmanager
def broker_of(release: str, directory: Path) -> Iterator[Secured]:
    if release == "4.4.0":
        with KraftBroker(directory, server_flags()) as running:
            yield running.secured
        return
    with secured_broker(directory, POM_3_9, server_flags()) as secured:
        yield secured


def run(broker: Secured, cases: list[Case], rounds: int, count: int) -> list[dict[str, object]]:
    with BrokerAdmin(parse_bootstrap(broker.address["PLAINTEXT"])) as admin:
        for topic in ("read", "sent"):
            admin.create_topic(topic, PARTITIONS)
        measure(broker, FILL, "PLAINTEXT", "read", count)
        subjects = {
            (name, case.listener, case.is_async): list[dict[str, float]]()
            for case in cases
            for name in (case.other, case.ours)
        }
        for _ in range(rounds + 1):  # the first one warms the broker
            for (name, listener, is_async), runs in subjects.items():
                topic = "sent" if name in SENDERS else "read"
                some = count // FEWER if is_async else count
                runs.append(measure(broker, name, listener, topic, some))
                if topic == "sent":  # its log is in memory
                    admin.alter_topic(topic, config={"retention.bytes": "100000000"})
    medians = {
        subject: {figure: statistics.median(run[figure] for run in runs[1:]) for figure in runs[0]}
        for subject, runs in subjects.items()
    }
    for (name, listener, _), figures in medians.items():
        shown = "  ".join(f"{figure} {value:.2f}" for figure, value in figures.items())
        print(f"{name:24} {listener:>10}  {shown}")
    return [
        report(
            case.name,
            Goal("rate", "k/s", case.bound, True),
            jvm=medians[case.other, case.listener, case.is_async]["rate"],
            ours=medians[case.ours, case.listener, case.is_async]["rate"],
            other="other",
        )
        for case in cases
    ]


def measure(broker: Secured, name: str, listener: str, topic: str, count: int) -> dict[str, float]:
    keys = json.dumps(broker.keys(listener))
    line = [sys.executable, "-m", "benchmarks.modern_client", name, keys, topic, str(count)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=RUN_S, check=False)
    if done.returncode:
        raise AssertionError(f"{name} failed: {done.stdout[-500:]} {done.stderr[-1000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    sys.exit(main())
