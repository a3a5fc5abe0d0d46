"""Start-up figures: an empty broker until it responds, and 1 GB of log after kill -9."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks import load
from benchmarks.report import Goal, report
from benchmarks.subjects import (
    JvmSubject,
    OurSubject,
    Subject,
    await_leaders,
    wait_for_port,
)
from kafka08.protocol.produce import ProduceRequest

RECOVERY_BYTES = 1_000_000_000
START_GOAL = 1.0
RECOVERY_GOAL = 1 / 3
SESSION_TIMEOUT_S = 6


def start_case(subjects: list[Subject], only: str) -> list[dict[str, object]]:
    """Start both brokers; seconds until the port responds."""
    seconds = [timed_start(subject) for subject in subjects]
    if only not in "start":
        return []
    goal = Goal("seconds", "s", START_GOAL, higher=False)
    return [report("start", goal, jvm=seconds[0], ours=seconds[1])]


def timed_start(subject: Subject) -> float:
    started = time.perf_counter()
    subject.start()
    wait_for_port(subject.address)
    return time.perf_counter() - started


def recovery_case(directory: Path, zookeeper: str, only: str) -> list[dict[str, object]]:
    """Fill a partition with 1 GB, kill -9, start again; seconds until it responds."""
    if only not in "recovery":
        return []
    keys = {"auto.create.topics.enable": "true", "num.partitions": "1", "log.retention.bytes": "-1"}
    subjects: list[Subject] = [
        JvmSubject(directory / "jvm-recovery", f"{zookeeper}/jvm-recovery", keys),
        OurSubject(directory / "ours-recovery", f"{zookeeper}/ours-recovery", keys),
    ]
    goal = Goal("seconds", "s", RECOVERY_GOAL, higher=False)
    jvm, ours = (timed_recovery(subject) for subject in subjects)
    return [report("recovery of 1 GB", goal, jvm=jvm, ours=ours)]


def timed_recovery(subject: Subject) -> float:
    """Time the recovery alone: it waits for the end of the session first."""
    subject.start()
    try:
        await_leaders(subject, "recovery", 1)
        data = load.plain_set(100, 900_000)
        frame = load.produce_frame("recovery", 0, data)
        with load.connect(subject.address) as connection:
            for _ in range(RECOVERY_BYTES // len(data)):
                load.check_response(ProduceRequest, load.exchange(connection, frame))
        subject.kill()
        time.sleep(SESSION_TIMEOUT_S + 1)
        return timed_start(subject)
    finally:
        subject.kill()
