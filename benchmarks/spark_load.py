"""Topics for the Spark cases, filled alike on any broker, and what a read of them costs.

A cost is counted where it arises: Spark's Java process with all its Python workers, and the broker.
"""

from __future__ import annotations

import random
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import load
from benchmarks.subjects import TICKS_PER_SECOND, cpu_seconds
from kafka08.protocol import message_set
from kafka08.protocol.produce import ProduceRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITIONS = 4
SET_BYTES = 16_384
"""A full batch of the Java producer."""
DISTINCT_BYTES = 8 << 20
"""Of different values in a topic: more than Parquet's dictionary holds."""
SETS_AHEAD = 32


@dataclass(frozen=True, slots=True)
class Filling:
    """The messages of one topic: how many there really are, and how large each value is."""

    topic: str
    value_bytes: int
    count: int


def fill(address: str, topic: str, value_bytes: int, count: int) -> Filling:
    """At least `count` messages of `value_bytes`, evenly over the partitions, which are led."""
    sets = distinct_sets(value_bytes)
    per_set = max(1, SET_BYTES // (value_bytes + load.ENTRY_OVERHEAD))
    sets_each = -(-count // (PARTITIONS * per_set))
    for partition in range(PARTITIONS):
        with load.connect(address) as connection:
            send_all(connection, topic, partition, sets, sets_each)
    return Filling(topic, value_bytes, PARTITIONS * per_set * sets_each)


def distinct_sets(value_bytes: int) -> list[bytes]:
    """Full sets of values that differ; hexadecimal, which halves in a compressed file."""
    digits = random.Random(8).randbytes(DISTINCT_BYTES // 2).hex().encode()
    values = [digits[at : at + value_bytes] for at in range(0, len(digits), value_bytes)]
    per_set = max(1, SET_BYTES // (value_bytes + load.ENTRY_OVERHEAD))
    return [
        message_set.encode([(None, value) for value in values[at : at + per_set]])
        for at in range(0, len(values) - per_set + 1, per_set)
    ]


def send_all(
    connection: socket.socket, topic: str, partition: int, sets: Sequence[bytes], count: int
) -> None:
    """`count` sets, round and round, several on their way at once; each must be acknowledged."""
    frames = [load.produce_frame(topic, partition, data) for data in sets]
    first = load.exchange(connection, frames[0])
    load.check_response(ProduceRequest, first)
    for at in range(1, count, SETS_AHEAD):
        numbers = range(at, min(at + SETS_AHEAD, count))
        connection.sendall(b"".join(frames[number % len(frames)] for number in numbers))
        for _ in numbers:
            load.check_response(ProduceRequest, load.receive_exactly(connection, len(first)))


def fill_large(address: str, topic: str, value_bytes: int) -> Filling:
    """One message of that size in the first partition."""
    data = message_set.encode([(None, bytes(value_bytes))])
    with load.connect(address) as connection:
        response = load.exchange(connection, load.produce_frame(topic, 0, data))
    load.check_response(ProduceRequest, response)
    return Filling(topic, value_bytes, 1)


def read(frame: DataFrame, action: str, filling: Filling, directory: Path) -> None:
    """Run `action` over all of a topic; AssertionError if it did not see every message."""
    seen = wanted = filling.count
    if action == "count":
        seen = frame.count()
    elif action == "sum":
        seen = frame.selectExpr("sum(length(value))").collect()[0][0]
        wanted *= filling.value_bytes
    else:
        frame.write.parquet(str(directory))
        shutil.rmtree(directory)
    assert seen == wanted, f"{action} of {filling.topic}: {seen}, not {wanted}"


def measured(
    frame: DataFrame,
    action: str,
    filling: Filling,
    directory: Path,
    roots: Sequence[int],
    broker: int,
) -> dict[str, float]:
    """`read`, and its figures: million rows a second, and CPU seconds for each million of Spark
    (Java and Python together: all processes below `roots`) and of the broker."""
    before = spark_cpu_seconds(roots), cpu_seconds(broker)
    started = time.perf_counter()
    read(frame, action, filling, directory)
    elapsed = time.perf_counter() - started
    millions = filling.count / 1e6
    return {
        "rate": millions / elapsed,
        "cpu": (spark_cpu_seconds(roots) - before[0]) / millions,
        "broker": (cpu_seconds(broker) - before[1]) / millions,
    }


def tree(root: int) -> Iterator[Path]:
    """/proc directories of a process and of everything below it."""
    parents: dict[int, list[int]] = {}
    for directory in Path("/proc").glob("[0-9]*"):
        if (fields := stat_fields(directory)) is not None:
            parents.setdefault(int(fields[1]), []).append(int(directory.name))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield Path(f"/proc/{pid}")
        waiting += parents.get(pid, ())


def stat_fields(directory: Path) -> list[str] | None:
    """The fields behind the name in `stat`; None if the process is gone."""
    try:
        return (directory / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def spark_cpu_seconds(roots: Sequence[int]) -> float:
    """User and system time of the processes below `roots`, themselves and those that ended
    included."""
    found = [
        fields for root in roots for path in tree(root) if (fields := stat_fields(path)) is not None
    ]
    return sum(int(ticks) for fields in found for ticks in fields[11:15]) / TICKS_PER_SECOND


def peak_python_megabytes(roots: Sequence[int]) -> float:
    """The most memory that any Python process below `roots` that still runs has ever had."""
    peaks = [0.0]
    for path in (path for root in roots for path in tree(root)):
        status = dict(
            line.split(":", 1) for line in (path / "status").read_text().splitlines() if ":" in line
        )
        if status["Name"].strip().startswith("python") and "VmHWM" in status:
            peaks.append(int(status["VmHWM"].split()[0]) / 1024)
    return max(peaks)
