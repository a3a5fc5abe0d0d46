"""Message sets that grow message by message: the Python twin of `_builder.pxi`."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from kafka08.format.v2 import V2, record, sent_batch
from kafka08.kernel._python_sets import append_entry, check_magic
from kafka08.kernel.types import (
    ENTRY_HEADER_BYTES,
    MAX_SET_BYTES,
    MIN_MESSAGE_BYTES,
    NO_TIMESTAMP,
    TIMESTAMP_BYTES,
    Buffer,
)


class MessageRef:
    """A reference to message `index` of the set that `owner` is building."""

    __slots__ = ("index", "owner")

    def __init__(self, owner: Any, index: int) -> None:
        self.owner = owner
        self.index = index


class SetBuilder:
    """A set of entries with offsets from 0, of at most `capacity` bytes, all allocated at once; of
    magic 2 one batch, as `sent_batch` makes it.

    Thread-safe: threads may append while another one calls `finish`.

    owner       the `owner` of the references
    ref_type    what `append` returns: a subclass of MessageRef, whose __init__ is not called
    callbacks   by message; shorter than the set if the last messages have none
    count, size the number of messages, and their bytes
    clock       the time in ms of messages that have none; None: the system's clock
    timestamps  from magic 1 on, once finished: i64 of each message, in native byte order; else None
    max_timestamp_ms  the largest of them: the timestamp of a wrapper around the set
    """

    def __init__(
        self,
        capacity: int,
        owner: Any,
        ref_type: type[MessageRef],
        magic: int = 0,
        clock: Callable[[], int] | None = None,
    ) -> None:
        if not issubclass(ref_type, MessageRef):
            raise TypeError("ref_type must be a MessageRef")
        if not 0 <= capacity <= MAX_SET_BYTES:
            raise OverflowError(f"a message set may have at most {MAX_SET_BYTES} bytes")
        self._has_records = magic == V2.magic
        if not self._has_records:
            check_magic(magic)
        elif capacity < V2.head_bytes:
            raise ValueError(f"a batch of {capacity} bytes has no room for its head")
        self.callbacks: list[Any] = []
        self.capacity = capacity
        self.count = 0
        self.max_timestamp_ms = NO_TIMESTAMP
        self.timestamps: bytearray | None = None
        self._clock = _system_time_ms if clock is None else clock
        self._times = array("q")
        self._magic = magic
        self._built: bytearray | None = bytearray()
        self._owner = owner
        self._ref_type = ref_type
        self._lock = threading.Lock()
        self._size = V2.head_bytes if self._has_records else 0
        self._first_ms = NO_TIMESTAMP

    @property
    def size(self) -> int:
        return self._size

    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        callback: Any = None,
        timestamp_ms: int = NO_TIMESTAMP,
        headers: bytes | None = None,
    ) -> Any:
        """Add a message and its callback, and return a reference to it. Returns None, and adds
        nothing, if there is no room or the set is finished. TypeError if key or value is not bytes.
        Magic 0 drops the timestamp; later a message without one gets the clock's, and ValueError
        for another negative one. `headers`, of magic 2: their number and themselves, encoded."""
        if headers is not None and not self._has_records:
            raise ValueError("only records have headers")
        size = ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES + TIMESTAMP_BYTES * self._magic
        size += sum(memoryview(field).nbytes for field in (key, value) if field is not None)
        if self._magic and timestamp_ms < 0:
            if timestamp_ms != NO_TIMESTAMP:
                raise ValueError(f"timestamp {timestamp_ms} is before 1970")
            timestamp_ms = self._clock()
        with self._lock:
            entry = b""
            if self._has_records:
                delta = timestamp_ms - self._first_ms if self.count else 0
                entry = record(delta, self.count, key, value, headers or b"\0")
                size = len(entry)
            if self._built is None or size > self.capacity - self._size:
                return None
            if not self.count:
                self._first_ms = timestamp_ms
            if self._magic:
                self._times.append(timestamp_ms)
                self.max_timestamp_ms = max(self.max_timestamp_ms, timestamp_ms)
            if self._has_records:
                self._built += entry
            else:
                append_entry(self._built, self.count, 0, key, value, self._magic, timestamp_ms)
            if callback is not None:
                self.callbacks.extend([None] * (self.count - len(self.callbacks)))
                self.callbacks.append(callback)
            ref = self._ref_type.__new__(self._ref_type)
            ref.owner, ref.index = self._owner, self.count
            self.count += 1
            self._size += size
            return ref

    def grow(self, capacity: int) -> None:
        """Have room for `capacity` bytes. OverflowError for fewer than before or too many,
        ValueError once it is finished."""
        with self._lock:
            if self._built is None:
                raise ValueError("the set is already finished")
            if not self.capacity <= capacity <= MAX_SET_BYTES:
                raise OverflowError(f"a message set may have at most {MAX_SET_BYTES} bytes")
            self.capacity = capacity

    def finish(self) -> bytearray:
        """Return the set; nothing can be added after that. ValueError the second time."""
        with self._lock:
            built, self._built = self._built, None
            self._owner = None
            self.capacity = 0
            if built is None:
                raise ValueError("the set is already finished")
            if self._has_records and self.count:
                built = sent_batch(built, self.count, self._first_ms, self.max_timestamp_ms)
            if self._magic:
                self.timestamps = bytearray(self._times.tobytes())
        return built


def build_records(
    messages: Sequence[tuple[Buffer | None, Buffer | None]],
    times: Sequence[int],
    headers: Sequence[Buffer] | None = None,
) -> bytearray:
    if not messages:
        raise ValueError("a batch needs a record")
    records = b"".join(
        record(time - times[0], number, key, value, headers[number] if headers else b"\0")
        for number, ((key, value), time) in enumerate(zip(messages, times, strict=True))
    )
    return sent_batch(records, len(messages), times[0], max(times))


def _system_time_ms() -> int:
    return time.time_ns() // 1_000_000
