"""The full consistency check of a partition's directory; changes nothing.

Used by `kafka08 log check` and after every test that changes a log. The rules:

1. Files are named after base offsets; no files of an interrupted compaction are left.
2. Every entry is whole, its size and CRC are right, its codec is known.
3. Offsets ascend through a segment, from its base offset on, and from segment to segment.
4. Messages inside a wrapper ascend, and the last has the wrapper's offset (in magic 1, where they
   are relative to it: the first is not below 0). A wrapper of magic 1 with CreateTime has the
   largest timestamp of its messages. Likewise the records of a batch ascend, from its base offset
   to its last one, and are as many as it says.
5. An index has whole, ascending entries; each points to the first entry at or above its offset,
   and only zeros follow the last one.
6. A time index has whole, ascending entries too. No message before the one that an entry names has
   its timestamp or a later one, for a search by time would miss it. 0.10.2.2 itself writes entries
   whose messages have no such timestamp (a topic with an older message.format.version removes it),
   names the last of several messages that were appended at one time, and with LogAppendTime and
   compression.type=uncompressed writes the times of appends while messages keep their own: all of
   that is right.

It goes on behind a problem, as far as the sizes of entries lead.

It reads the files as they are: on a log in use, a concurrent append or delete may show as a
problem.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kafka08 import kernel
from kafka08.config import INT_MAX
from kafka08.errors import CorruptLog
from kafka08.format import (
    HEAD_BYTES_MAX,
    RecordFormat,
    batch_at,
    batches,
    format_of,
)
from kafka08.kernel.types import (
    CREATE_TIME,
    ENTRY_HEADER_BYTES,
    MESSAGE_MAGICS,
    MIN_MESSAGE_BYTES,
    NO_TIMESTAMP,
)
from kafka08.log.dump import TIMESTAMP_TYPES, LogDump
from kafka08.log.files import exists, file_size, files_in, open_file, read_file, storage_errors
from kafka08.log.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    base_offset_of,
)
from kafka08.log.offset_index import INDEX_ENTRY, INDEX_ENTRY_BYTES
from kafka08.log.recovery import CHUNK_BYTES, crc_is_right, entry_bytes
from kafka08.log.time_index import TIME_ENTRY, TIME_ENTRY_BYTES, TimestampOffset
from kafka08.log.time_search import find_entry
from kafka08.protocol import message_set
from kafka08.runtime.disk import Disk, OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK

LEAST_BYTES: Final = ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES
"""Of an entry."""


class Problem(NamedTuple):
    """A violation. `position` is a byte position in the file, -1 if there is none."""

    path: Path
    position: int
    text: str

    def __str__(self) -> str:
        where = f" at byte {self.position}" if self.position >= 0 else ""
        return f"{self.path}{where}: {self.text}"


def check_log(directory: Path, disk: Disk = SYSTEM_DISK) -> list[Problem]:
    """All problems in a partition's directory, in the order of its files; empty for a sound log.
    StorageError if it cannot be read."""
    return list(_problems(Path(directory), disk))


def _problems(directory: Path, disk: Disk) -> Iterator[Problem]:
    next_offset = 0
    for path in files_in(disk, directory):
        if path.name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)):
            yield Problem(path, -1, "left over from an interrupted compaction")
        elif path.suffix in INDEX_SUFFIXES and not exists(disk, path.with_suffix(LOG_SUFFIX)):
            yield Problem(path, -1, "an index without messages")
        elif path.suffix == LOG_SUFFIX and not path.name.endswith(DELETED_SUFFIX):
            segment = _SegmentCheck(path, next_offset, disk)
            yield from segment.problems()
            next_offset = segment.next_offset


class _SegmentCheck:
    """Checks one segment; `next_offset` is the lowest offset that may come next."""

    def __init__(self, path: Path, next_offset: int, disk: Disk) -> None:
        self._disk = disk
        self.path = path
        self.index_path = path.with_suffix(INDEX_SUFFIX)
        self.time_path = path.with_suffix(TIME_INDEX_SUFFIX)
        self.next_offset = next_offset
        self._walkable = 0
        """Where the entries end, as far as their sizes lead from one to the next."""

    def problems(self) -> Iterator[Problem]:
        try:
            base_offset = base_offset_of(self.path)
        except CorruptLog:
            yield Problem(self.path, -1, "is not named after the base offset of a segment")
            return
        if base_offset < self.next_offset:
            yield Problem(
                self.path, -1, f"its base offset is not above offset {self.next_offset - 1} before"
            )
        self.next_offset = max(self.next_offset, base_offset)
        self._file = open_file(self._disk, self.path, OpenMode.READ)
        self._size = file_size(self._file, self.path)
        yield from self._check_messages()
        if exists(self._disk, self.index_path):
            yield from self._check_index(base_offset)
        else:
            yield Problem(self.index_path, -1, "is missing")
        if exists(self._disk, self.time_path):
            yield from self._check_time_index(base_offset)

    def _check_messages(self) -> Iterator[Problem]:
        """Every entry to which the sizes of those before lead."""
        position, chunk_bytes = 0, CHUNK_BYTES
        while position < self._size:
            chunk = memoryview(self._read(position, chunk_bytes))
            chunk_bytes = CHUNK_BYTES
            summary, fault = _validate(chunk)
            if summary.count:
                yield from self._check_offsets(position, chunk[: summary.size], summary)
                position += summary.size
                self._walkable = position
                if fault is None:
                    continue
            needed = entry_bytes(chunk[summary.size :]) or 0
            if needed < LEAST_BYTES or position + needed > self._size:
                reason = fault or "the last entry is not whole"
                left = self._size - position
                yield Problem(self.path, position, f"the last {left} bytes are lost: {reason}")
                return
            if fault is None:
                with storage_errors("read", self.path):
                    is_sound = crc_is_right(self._file, position, needed)
                if is_sound:
                    chunk_bytes = needed
                    continue
                fault = "the crc of a large entry is wrong"
            yield Problem(self.path, position, fault)
            position += needed
            self._walkable = position

    def _check_offsets(
        self, position: int, chunk: memoryview, summary: kernel.SetSummary
    ) -> Iterator[Problem]:
        if not summary.monotonic or summary.first_offset < self.next_offset:
            for place, offset, before in _descents(chunk, self.next_offset - 1):
                text = f"offset {offset} is not above offset {before}, which is before it"
                yield Problem(self.path, position + place, text)
        if summary.codec or summary.magics & ~MESSAGE_MAGICS:
            for run in kernel.runs(chunk):
                problem = None
                if run.has_records:
                    problem = _records_problem(chunk[run.start : run.end])
                elif run.codec:
                    problem = _wrapper_problem(chunk[run.start : run.end])
                if problem is not None:
                    yield Problem(self.path, position + run.start, problem)
        self.next_offset = summary.last_offset + 1

    def _check_index(self, base_offset: int) -> Iterator[Problem]:
        before_offset, before_position = base_offset, 0
        content = read_file(self._disk, self.index_path)
        yield from _size_problems(self.index_path, content, INDEX_ENTRY_BYTES)
        for at in _entry_places(content, INDEX_ENTRY_BYTES):
            relative, position = INDEX_ENTRY.unpack_from(content, at)
            offset = base_offset + relative
            if self._walkable <= position < self._size:
                continue  # among the bytes that are lost
            if offset <= before_offset or position <= before_position:
                text = f"{offset} → {position} is not above the last right entry"
            elif not self._leads_to(before_position, offset, position):
                text = f"{offset} → {position} is not where that message is"
            else:
                before_offset, before_position = offset, position
                continue
            yield Problem(self.index_path, at, text)

    def _check_time_index(self, base_offset: int) -> Iterator[Problem]:
        before, position = TimestampOffset(NO_TIMESTAMP, base_offset), 0
        content = read_file(self._disk, self.time_path)
        yield from _size_problems(self.time_path, content, TIME_ENTRY_BYTES)
        for at in _entry_places(content, TIME_ENTRY_BYTES):
            timestamp_ms, relative = TIME_ENTRY.unpack_from(content, at)
            entry = TimestampOffset(timestamp_ms, base_offset + relative)
            if timestamp_ms <= before.timestamp_ms or entry.offset < before.offset:
                yield Problem(self.time_path, at, f"{entry} is not above the last right entry")
                continue
            if entry.offset >= self.next_offset:
                if self._walkable == self._size:
                    yield Problem(self.time_path, at, f"{entry} is above the last message")
                continue
            try:
                found = find_entry(self._file, self.path, position, self._walkable, timestamp_ms)
            except CorruptLog:
                return  # already reported
            if (
                found is not None
                and found[1] < entry.offset
                and not self._was_appended_at(found[0], timestamp_ms)
            ):
                if self._is_of_append_times(content, base_offset):
                    return
                text = f"{entry}: offset {found[1]} has that timestamp or a later one"
                yield Problem(self.time_path, at, text)
                continue
            before, position = entry, self._walkable if found is None else found[0]

    def _is_of_append_times(self, content: bytes, base_offset: int) -> bool:
        """Whether a time index has the times of appends, while the messages have their own: most of
        several entries name a message with another time. So it is with LogAppendTime and
        compression.type=uncompressed, as in 0.10.2.2, for producers that compress."""
        entries = {}
        for at in _entry_places(content, TIME_ENTRY_BYTES):
            timestamp_ms, relative = TIME_ENTRY.unpack_from(content, at)
            entries[base_offset + relative] = timestamp_ms
        own = sum(
            entries.get(row["offset"]) == row.get(TIMESTAMP_TYPES[CREATE_TIME], NO_TIMESTAMP)
            for row in LogDump(deep_iteration=True, disk=self._disk).rows(self.path)
            if not isinstance(row, str)
        )
        return len(entries) > 1 and 2 * own < len(entries)

    def _was_appended_at(self, position: int, timestamp_ms: int) -> bool:
        """Whether the entry at `position` has that timestamp from its broker."""
        batch = batch_at(self._read(position, HEAD_BYTES_MAX))
        assert batch is not None, "it was found by its timestamp"
        return batch.has_append_time and batch.max_timestamp_ms == timestamp_ms

    def _leads_to(self, start: int, offset: int, position: int) -> bool:
        """Whether the first entry at or above `offset`, from the entry at `start` on, is at
        `position`."""
        data = self._read(start, position + ENTRY_HEADER_BYTES - start)
        try:
            found = kernel.find_offset(data, offset)
        except kernel.CorruptMessage:
            return False
        return found is not None and found[0] == position - start

    def _read(self, position: int, size: int) -> bytes:
        with storage_errors("read", self.path):
            return self._file.pread(min(size, max(0, self._size - position)), position)


def _validate(chunk: memoryview) -> tuple[kernel.SetSummary, str | None]:
    """The sound entries at the beginning, and what is wrong with the one behind them."""
    try:
        return kernel.validate(chunk, INT_MAX), None
    except kernel.CorruptMessage as error:
        end, fault = error.position, f"{error.reason} (offset {error.offset})"
    except kernel.UnknownCodec as error:
        end, fault = _first_of_codec(chunk, error.codec), str(error)
    return kernel.validate(chunk[:end], INT_MAX, verify_crc=False), fault


def _first_of_codec(chunk: memoryview, codec: int) -> int:
    """The position of the first entry with this codec. There is one."""
    return next(batch.position for batch in batches(chunk) if batch.codec == codec)


def _descents(chunk: memoryview, before: int) -> Iterator[tuple[int, int, int]]:
    """The entries whose offsets are not above the one before: position, offset, the one before."""
    for batch in batches(chunk):
        if batch.base_offset <= before:
            yield batch.position, batch.base_offset, before
        before = batch.last_offset


def _size_problems(path: Path, content: bytes, entry_bytes: int) -> Iterator[Problem]:
    if len(content) % entry_bytes:
        yield Problem(path, len(content), f"not a multiple of {entry_bytes} bytes")


def _entry_places(content: bytes, entry_bytes: int) -> Iterator[int]:
    """The start positions of an index's whole entries, up to the zeros at its end. Of zeros in
    front of others only the first entry: the size of an index is that of a full one."""
    whole = content[: len(content) // entry_bytes * entry_bytes]
    zeros, before = bytes(entry_bytes), b""
    for at in range(0, len(whole.rstrip(b"\0")), entry_bytes):
        entry = whole[at : at + entry_bytes]
        if entry != zeros or before != zeros:
            yield at
        before = entry


def _records_problem(data: memoryview) -> str | None:
    """Why the records of a batch contradict it; None if they do not."""
    (batch,) = batches(data)
    form = format_of(batch.magic)
    assert isinstance(form, RecordFormat)
    where = f"the batch at offset {batch.base_offset}"
    before, newest_ms = batch.base_offset - 1, NO_TIMESTAMP
    try:
        for record in form.records(data, batch, message_set.unpack):
            if not before < record.offset <= batch.last_offset:
                last = batch.last_offset
                return f"{where} ends at {last} and holds {record.offset} after {before}"
            before, newest_ms = record.offset, max(newest_ms, record.timestamp_ms)
    except ValueError as error:
        return f"{where}: {error}"
    if newest_ms != batch.max_timestamp_ms and batch.record_count and not batch.has_append_time:
        return f"{where} has timestamp {batch.max_timestamp_ms}, the largest inside is {newest_ms}"
    return None


def _wrapper_problem(wrapper: memoryview) -> str | None:
    """Why a wrapper's content contradicts its offset or timestamp; None if it does not."""
    try:
        entry = next(kernel.entries(wrapper))
        inner = message_set.unpack(entry.codec, entry.value or b"")
        summary = kernel.validate(inner, INT_MAX)
    except ValueError as error:
        return f"the wrapper at offset {struct.unpack_from('>q', wrapper)[0]}: {error}"
    is_last = summary.last_offset == entry.offset or (entry.magic and summary.first_offset >= 0)
    stamped = entry.magic and entry.timestamp_type == CREATE_TIME
    if stamped and entry.timestamp_ms != summary.max_timestamp_ms:
        return (
            f"the wrapper at offset {entry.offset} has timestamp {entry.timestamp_ms}, the largest "
            f"inside is {summary.max_timestamp_ms}"
        )
    if not summary.monotonic or not is_last or summary.size != len(inner):
        return (
            f"the wrapper at offset {entry.offset} holds offsets {summary.first_offset} to "
            f"{summary.last_offset}"
        )
    return None
