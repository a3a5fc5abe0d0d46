"""Rounds of one case: the brokers take turns, each turn on a topic and on memory of its own.

A topic is new for every turn and gone, files and all, before the next one begins, so what a broker
keeps does not grow from case to case. Before each turn as much memory as its log may take is
written and freed: on a virtual machine the first use of a page may wait for the host, several times
as long as the copy into it takes, and would fall on whoever comes to it first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.broker_cases import Case
from benchmarks.subjects import Subject, await_leaders
from benchmarks.warm import fair_rounds, report_case
from kafka08.admin import AdminClient

TOUCHED_BYTES_EACH_SECOND: Final = 1_500_000_000
DELETION_S: Final = 30.0


def run_case(
    case: Case,
    subjects: Sequence[Subject],
    zookeeper: str,
    *,
    directory: Path,
    rounds: int,
    seconds: float,
) -> list[dict[str, object]]:
    """Medians of `rounds` counted rounds, after both are warm."""
    by_name = {subject.name: subject for subject in subjects}

    def play(name: str, number: int) -> dict[str, float]:
        return turn(case, number, by_name[name], zookeeper, directory, seconds)

    main = case.goals[0]
    return report_case(
        case.name, case.goals, fair_rounds(list(by_name), play, main, rounds, time.monotonic)
    )


def turn(
    case: Case, number: int, subject: Subject, zookeeper: str, directory: Path, seconds: float
) -> dict[str, float]:
    """One broker's figures in one round."""
    if not case.needs_topic:
        return case.prepare(subject, "")(seconds)
    name = "".join(c if c.isalnum() else "-" for c in f"bench-{case.name}-{number}")
    with AdminClient(zookeeper=f"{zookeeper}/{subject.name}") as admin:
        admin.create_topic(name, case.partitions, 1)
        await_leaders(subject, name, case.partitions)
        touch_memory(directory, int(seconds * TOUCHED_BYTES_EACH_SECOND))
        figures = case.prepare(subject, name)(seconds)
        admin.delete_topic(name)
    await_deletion(subject, name)
    return figures


def touch_memory(directory: Path, size: int) -> None:
    """Write a file of `size` bytes and remove it, so that its pages are the next to be used."""
    path = directory / "touched"
    block = bytes(1 << 20)
    with path.open("wb", buffering=0) as file:
        for _ in range(size // len(block)):
            file.write(block)
    path.unlink()


def await_deletion(subject: Subject, topic: str) -> None:
    """Wait until the broker has no directory of the topic any more."""
    deadline = time.monotonic() + DELETION_S
    while any(subject.log_dir.glob(f"{topic}-*")):
        if time.monotonic() > deadline:
            raise AssertionError(f"{subject.name} does not delete {topic}")
        time.sleep(0.02)
