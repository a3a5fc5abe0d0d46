"""What metrics cost: our broker with a scrape each second beside our broker without metrics."""

from __future__ import annotations

import argparse
import sys
import threading
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Final

from kafka08.embedded.ports import free_ports
from scripts.benchmarks import scratch
from scripts.benchmarks.broker_cases import CASES
from scripts.benchmarks.report import Goal
from scripts.benchmarks.rounds import run_case
from scripts.benchmarks.subjects import OurSubject
from tests.interop.jvm import JvmZooKeeper

SCRAPE_INTERVAL_S: Final = 1.0
LOSS_MAX: Final = 0.01
"""No figure may be worse by more than this part of it."""


class ScrapedSubject(OurSubject):
    """A broker that serves its metrics, and a thread that reads all of them each second."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        [port] = free_ports(1)
        super().__init__(directory, zookeeper, {"metrics.port": str(port)})
        self.scrapes = 0
        self._url = f"http://127.0.0.1:{port}/metrics"
        self._stopped = threading.Event()
        self._scraper = threading.Thread(target=self._scrape, daemon=True)

    def start(self) -> None:
        super().start()
        self._scraper.start()

    def kill(self) -> None:
        self._stopped.set()
        if self._scraper.is_alive():
            self._scraper.join()
        super().kill()

    def _scrape(self) -> None:
        while not self._stopped.wait(SCRAPE_INTERVAL_S):
            with urllib.request.urlopen(self._url) as response:
                assert response.read()
            self.scrapes += 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench scraped", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="counted rounds (default 9)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a round (default 2)")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    scratch.add_option(parser)
    options = parser.parse_args()
    with (
        scratch.scratch(options) as directory,
        JvmZooKeeper(directory / "zk") as zookeeper,
    ):
        plain = OurSubject(directory / "plain", f"{zookeeper.connect_string}/plain")
        plain.name = "plain"
        scraped = ScrapedSubject(directory / "ours", f"{zookeeper.connect_string}/ours")
        subjects = [plain, scraped]
        try:
            for subject in subjects:
                subject.start()
            for case in CASES:
                if not case.needs_topic or options.only not in case.name:
                    continue
                goals = tuple(unchanged(goal) for goal in case.goals)
                run_case(
                    replace(case, goals=goals),
                    subjects,
                    zookeeper.connect_string,
                    directory=directory,
                    rounds=options.rounds,
                    seconds=options.seconds,
                )
            print(f"{scraped.scrapes} scrapes")
        finally:
            for subject in subjects:
                subject.kill()
    return 0


def unchanged(goal: Goal) -> Goal:
    """The same figure, which metrics may not make worse."""
    return replace(goal, bound=1 - LOSS_MAX if goal.higher else 1 + LOSS_MAX)


if __name__ == "__main__":
    sys.exit(main())
