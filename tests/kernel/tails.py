"""Ends of logs for the kernels, with files that remember what was written."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from kafka08.kernel._python_append import SegmentTail
from kafka08.kernel.types import Buffer

NOW_MS = 5000
FIELDS = tuple(name for name in SegmentTail.__slots__ if name not in ("read", "write"))


class File:
    """The writes, as (position, bytes); none if it `fails`."""

    def __init__(self) -> None:
        self.written: list[tuple[int, bytes]] = []
        self.fails = False

    def read(self, size: int, position: int) -> bytes:
        raise AssertionError("nothing is read")

    def write(self, data: Buffer, position: int) -> None:
        if self.fails:
            raise OSError(28, "No space left on device")
        self.written.append((position, bytes(data)))


def a_tail(kernel: ModuleType, file: File, **fields: Any) -> Any:
    """Counts in `indexed` the index entries that its owner must add."""

    class Tail(kernel.SegmentTail):  # type: ignore[misc, name-defined]
        indexed = 0

        def index_last_set(self) -> None:
            self.index_is_due = False
            self.indexed += 1

    tail = Tail()
    values = {
        "base_offset": 5,
        "size": 1000,
        "end_offset": 40,
        "tail_offset": 30,
        "tail_position": 900,
        "bytes_since_index": 100,
        "created_ms": 1000,
        "first_ms": -1,
        "max_timestamp_ms": -1,
        "max_timestamp_offset": 0,
        "max_entry_bytes": 10_000,
        "segment_bytes": 100_000,
        "index_interval_bytes": 200,
        "age_max_ms": 1_000_000,
        "takes_plain_sets": True,
        "is_full": False,
        "index_is_due": False,
        "rules": None,
        "read": file.read,
        "write": file.write,
        "descriptor": -1,
        "min_in_sync": -1,
        "index_tail": None,
        "time_tail": None,
        "noted_epoch": -1,
        "records": None,
    }
    for name, value in (values | fields).items():
        setattr(tail, name, value)
    return tail


def an_index(kernel: ModuleType, view: Any, **fields: Any) -> Any:
    """The index of a segment from offset 5 on, with one entry for offset 30 at 900."""
    index = kernel.IndexTail()
    values = {
        "base_offset": 5,
        "entries": 1,
        "capacity": 4,
        "allocated": 32,
        "last_offset": 30,
        "last_position": 900,
        "last_ms": -1,
        "view": view,
    }
    for name, value in (values | fields).items():
        setattr(index, name, value)
    return index


def state(tail: Any) -> dict[str, Any]:
    return {name: getattr(tail, name) for name in FIELDS}
