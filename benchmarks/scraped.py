"""The cost of metrics: our broker that is scraped each second of its load beside two without
metrics, one of which is the control: between equal brokers there must be no difference.

Says by how much a request costs more CPU, and by how much the case is slower, with an interval of
95 % and the verdict on 1 %; then the CPU of one scrape. The last row is the mean of all cases,
whose interval is narrower. CPU is what to go by on a machine that has other work. paired.py says
how. A case takes about 12 s for each start of the brokers, all 16 of them 16 minutes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from benchmarks import scratch
from benchmarks.broker_cases import CASES, Case, Play
from benchmarks.paired import Difference, difference, order, over_cases, ratio
from benchmarks.rounds import await_deletion, touch_memory
from benchmarks.subjects import OurSubject, await_leaders, cpu_seconds
from kafka08.admin import AdminClient
from kafka08.embedded.ports import free_ports
from tests.interop.jvm import JvmZooKeeper

LOSS_MAX: Final = 0.01
"""No case may be slower by more than this part."""
PLAIN, SCRAPED, CONTROL = "plain", "scraped", "control"
SIDES: Final = (PLAIN, SCRAPED, CONTROL)
TURN_S: Final = 0.5
"""So in its two turns of a block a broker is under load for the second that has one scrape."""
TOUCHED_BYTES: Final = 4_000_000_000
"""About what the logs of one case take."""
IDLE_SCRAPES: Final = 20
SCRAPER: Final = """
import sys, urllib.request
for line in sys.stdin:
    assert urllib.request.urlopen(sys.argv[1]).read()
    print(flush=True)
"""


class Scraper:
    """Another process that reads all metrics of a broker when it is told to."""

    def __init__(self, port: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SCRAPER, f"http://127.0.0.1:{port}/metrics"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Wait until it has all of them."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "the scraper failed"

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Load:
    """One case on one broker: turns of about TURN_S, after one to warm up."""

    def __init__(self, subject: OurSubject, play: Play, case: Case) -> None:
        self._subject = subject
        self._play = play
        self._main = case.goals[0]
        began = time.perf_counter()
        play(TURN_S)
        # Some cases take a number of requests for a second.
        self._length = TURN_S**2 / (time.perf_counter() - began)

    def turn(self, scraper: Scraper | None = None) -> tuple[float, float]:
        """(CPU seconds for a request, the case's main figure so that more is slower). With a
        `scraper`, the metrics are read meanwhile."""
        before = cpu_seconds(self._subject.pid)
        if scraper is not None:
            scraper.begin()
        figures = self._play(self._length)
        if scraper is not None:
            scraper.end()
        used = cpu_seconds(self._subject.pid) - before
        main = figures[self._main.figure]
        return used / figures["done"], 1 / main if self._main.higher else main


class Differences:
    """(case, cpu or time, side) → the ratios of each start's blocks."""

    def __init__(self) -> None:
        self._starts: dict[tuple[str, str, str], list[list[float]]] = defaultdict(list)
        self.scrape_ms: dict[str, list[float]] = defaultdict(list)
        """case → CPU of a scrape at each start"""

    def add(self, case: str, figure: str, blocks: Sequence[Mapping[str, Sequence[float]]]) -> None:
        """The blocks of one start."""
        others = {SCRAPED: (PLAIN, CONTROL), CONTROL: (PLAIN,)}
        for side, of in others.items():
            ratios = [ratio(block, side, of) for block in blocks]
            self._starts[case, figure, side].append(ratios)

    def of(self, case: str, figure: str, side: str) -> Difference:
        return difference(self._starts[case, figure, side])

    def of_all(self, figure: str, side: str) -> Difference:
        """The ratios of all cases together."""
        return over_cases(
            [found for (_, *key), found in self._starts.items() if key == [figure, side]]
        )

    def print(self, cases: Sequence[Case]) -> bool:
        """One row for each case; whether none has missed by its CPU."""
        met = True
        print(
            f"{'scraped beside plain':29} {'CPU of a request':38} {'time':38} "
            f"{'control: CPU of a request':28} a scrape"
        )
        for case in cases:
            cpu, slower = (self.of(case.name, figure, SCRAPED) for figure in ("cpu", "time"))
            verdicts = [found.verdict(LOSS_MAX) for found in (cpu, slower)]
            met = met and verdicts[0] != "MISSED"
            control = self.of(case.name, "cpu", CONTROL)
            print(
                f"{case.name:29} {cpu!s:28} {verdicts[0]:9} {slower!s:28} {verdicts[1]:9} "
                f"{control!s:28} {statistics.median(self.scrape_ms[case.name]):.1f} ms",
                flush=True,
            )
        cpu, slower = (self.of_all(figure, SCRAPED) for figure in ("cpu", "time"))
        print(
            f"{'all cases':29} {cpu!s:28} {cpu.verdict(LOSS_MAX):9} {slower!s:28} "
            f"{slower.verdict(LOSS_MAX):9} {self.of_all('cpu', CONTROL)!s:28}",
            flush=True,
        )
        return met


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/bench scraped",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--starts", type=int, default=5, help="starts of the brokers (default 5)")
    parser.add_argument("--blocks", type=int, default=3, help="blocks of a case (default 3)")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    scratch.add_option(parser)
    options = parser.parse_args()
    cases = [case for case in CASES if case.needs_topic and options.only in case.name]
    found = Differences()
    met = True
    with (
        scratch.scratch(options) as directory,
        JvmZooKeeper(directory / "zk") as zookeeper,
    ):
        for start in range(options.starts):
            began = time.monotonic()
            measure_start(start, cases, directory, zookeeper.connect_string, options, found)
            took = time.monotonic() - began
            print(f"start {start + 1} of {options.starts}, {took:.0f} s", flush=True)
            met = found.print(cases)
    return int(not met)


def measure_start(
    number: int,
    cases: Sequence[Case],
    directory: Path,
    zookeeper: str,
    options: argparse.Namespace,
    found: Differences,
) -> None:
    """Start the brokers, in another order each time, and measure every case."""
    touch_memory(directory, TOUCHED_BYTES)
    [port] = free_ports(1)
    subjects: dict[str, OurSubject] = {}
    with ExitStack() as stack:
        for side in rotated(SIDES, number):
            keys = {"metrics.port": str(port)} if side == SCRAPED else {}
            connect = f"{zookeeper}/{side}-{number}"
            subject = subjects[side] = OurSubject(directory / f"{side}-{number}", connect, keys)
            subject.start()
            stack.callback(subject.kill)
        scraper = Scraper(port)
        stack.callback(scraper.close)
        for case in cases:
            loads: dict[str, Load] = {}
            with ExitStack() as topics:
                for side, subject in subjects.items():
                    topic = topics.enter_context(
                        topic_of(case, subject, f"{zookeeper}/{side}-{number}")
                    )
                    loads[side] = Load(subject, case.prepare(subject, topic), case)
                for figure, blocks in play_blocks(loads, scraper, options.blocks).items():
                    found.add(case.name, figure, blocks)
                found.scrape_ms[case.name].append(scrape_ms(subjects[SCRAPED], scraper))


def rotated(sides: Sequence[str], number: int) -> list[str]:
    shift = number % len(sides)
    return [*sides[shift:], *sides[:shift]]


def play_blocks(
    loads: Mapping[str, Load], scraper: Scraper, count: int
) -> dict[str, list[dict[str, list[float]]]]:
    """cpu and time → the blocks. The metrics are read in the first and the second turn of a block
    by turns."""
    blocks: dict[str, list[dict[str, list[float]]]] = {"cpu": [], "time": []}
    for number in range(count):
        played: dict[str, list[tuple[float, float]]] = {side: [] for side in SIDES}
        for side in order(rotated(SIDES, number)):
            is_read = side == SCRAPED and len(played[side]) == number % 2
            played[side].append(loads[side].turn(scraper if is_read else None))
        for index, figure in enumerate(blocks):
            blocks[figure].append({s: [turn[index] for turn in of] for s, of in played.items()})
    return blocks


def scrape_ms(subject: OurSubject, scraper: Scraper) -> float:
    """CPU of one of many scrapes of a broker that does nothing else."""
    before = cpu_seconds(subject.pid)
    for _ in range(IDLE_SCRAPES):
        scraper.begin()
        scraper.end()
    return (cpu_seconds(subject.pid) - before) / IDLE_SCRAPES * 1000


@contextmanager
def topic_of(case: Case, subject: OurSubject, zookeeper: str) -> Iterator[str]:
    """A new topic on the broker, which is gone with its files afterwards."""
    name = "".join(c if c.isalnum() else "-" for c in case.name)
    with AdminClient(zookeeper=zookeeper) as admin:
        admin.create_topic(name, case.partitions, 1)
        await_leaders(subject, name, case.partitions)
        yield name
        admin.delete_topic(name)
    await_deletion(subject, name)


if __name__ == "__main__":
    sys.exit(main())
