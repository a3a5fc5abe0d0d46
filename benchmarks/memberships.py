"""Seconds that a member takes to join and to leave a group of one: our KafkaConsumer beside Java's.

    .venv/bin/python -m benchmarks.memberships [--rounds 20]

Both on one JVM 0.10.2.2 broker, in turns, with the same keys. *Joins*: from before the consumer is
made until both members have half of the partitions. *Leaves*: from before `close` until the other
member has all of them. Each is measured with a heartbeat every 100 ms, since a member hears of a
rebalance by its heartbeat: by the default, 3 s, that takes 1.5 s whoever the client is. The CPU
time is that of both members, for a join and a leave.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks import scratch
from benchmarks.report import Goal, Side, report
from benchmarks.subjects import JvmSubject, await_leaders, cpu_seconds
from kafka08.admin import AdminClient
from tests.interop.jvm import POM_0_10_2, JvmZooKeeper, command, compiled

TOPIC: Final = "shared"
PARTITIONS: Final = 4
WARM_UP: Final = 10
"""Rounds that are not counted: the JVM compiles in them."""
JAVA: Final = Path(__file__).parent / "JoiningMember.java"
JAVA_FLAGS: Final = ("-Xmx256m", "-Dkafka08.log.level=WARN")
"""Both compilers, as a program that lives for long has them."""
GOALS: Final = (
    Goal("join", "s", 1.0, False),
    Goal("leave", "s", 1.0, False),
    Goal("cpu", "s", 1.0, False),
)


class Member:
    """A member process that does as it is told."""

    def __init__(self, line: list[str]) -> None:
        self._process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    @property
    def cpu(self) -> float:
        return cpu_seconds(self._process.pid)

    def tell(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")

    def await_event(self, what: str) -> float:
        """Wait until it says so, and return the time. Skips what it said before."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            at, _, said = line.strip().partition(" ")
            if said == what:
                return float(at)
        raise AssertionError(f"the member ended before it said {what!r}")

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


class Group:
    """A member that stays and one that comes and goes, of one kind."""

    def __init__(self, name: str, start: Callable[[], Member]) -> None:
        self.name = name
        self.rounds: list[dict[str, float]] = []
        self._stays, self._goes = start(), start()
        self._stays.tell("join")
        self._stays.await_event(f"assigned {PARTITIONS}")

    def play(self) -> dict[str, float]:
        """One join and one leave."""
        used = self._cpu
        half, every = f"assigned {PARTITIONS // 2}", f"assigned {PARTITIONS}"
        self._goes.tell("join")
        began = self._goes.await_event("joining")
        joined = max(self._goes.await_event(half), self._stays.await_event(half))
        self._goes.tell("leave")
        leaving = self._goes.await_event("leaving")
        left = max(self._goes.await_event("left"), self._stays.await_event(every))
        return {"join": joined - began, "leave": left - leaving, "cpu": self._cpu - used}

    @property
    def _cpu(self) -> float:
        return self._stays.cpu + self._goes.cpu

    def end(self) -> None:
        self._stays.end()
        self._goes.end()


def starter(kind: str, address: str) -> Callable[[], Member]:
    """A function that starts members of kind `jvm` or `ours`, all in one group."""
    words = [
        TOPIC,
        f"bootstrap.servers={address}",
        f"group.id=memberships-{kind}",
        "heartbeat.interval.ms=100",
        "auto.offset.reset=earliest",
    ]
    if kind == "ours":
        line = [sys.executable, "-m", "benchmarks.joining_member", *words]
    else:
        classes = compiled(JAVA, POM_0_10_2)
        line = command(JAVA.stem, *words, flags=JAVA_FLAGS, classes=classes, pom=POM_0_10_2)
    return lambda: Member(line)


def measure(broker: JvmSubject, connect: str, rounds: int) -> list[dict[str, object]]:
    with AdminClient(connect) as admin:
        admin.create_topic(TOPIC, PARTITIONS, 1)
    await_leaders(broker, TOPIC, PARTITIONS)
    groups = []
    try:
        for kind in ("jvm", "ours"):
            groups.append(Group(kind, starter(kind, broker.address)))
        for number in range(WARM_UP + rounds):
            for group in groups:
                figures = group.play()
                if number >= WARM_UP:
                    group.rounds.append(figures)
    finally:
        for group in groups:
            group.end()
    sides = [{goal.figure: side(group, goal.figure) for goal in GOALS} for group in groups]
    return [
        report("a member of a group", goal, jvm=sides[0][goal.figure], ours=sides[1][goal.figure])
        for goal in GOALS
    ]


def side(group: Group, figure: str) -> Side:
    """The median; of the CPU time, which is counted in hundredths of a second, the mean."""
    found = [one[figure] for one in group.rounds]
    middle = statistics.mean(found) if figure == "cpu" else statistics.median(found)
    return Side(middle, min(found), max(found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    scratch.add_option(parser)
    options = parser.parse_args()
    with (
        scratch.scratch(options) as directory,
        JvmZooKeeper(directory / "zk", pom=POM_0_10_2) as zookeeper,
    ):
        connect = f"{zookeeper.connect_string}/memberships"
        broker = JvmSubject(directory / "broker", connect, pom=POM_0_10_2)
        broker.start()
        try:
            rows = measure(broker, connect, options.rounds)
        finally:
            broker.kill()
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
