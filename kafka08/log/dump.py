"""Dumps segment files, line for line as `kafka.tools.DumpLogSegments`: that of 0.11.0.3 for record
batches, for messages that of 0.10.2.2 in a segment with a time index, that of 0.8.2.2 in others.

    dump = LogDump(deep_iteration=True)
    for line in dump.lines(path): print(line)                            # stdout, file by file
    for line in dump.complaints(): print(line, file=sys.stderr)          # once, at the end

It changes nothing: unlike the original it does not open indexes for writing. It goes on behind
damage as long as the size of an entry leads to the next one: a message that cannot be read is a
line with `isvalid: false`, and the complaints say how much of the file is sound.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from kafka08 import kernel
from kafka08.config import INT_MAX
from kafka08.format import Batch, Message, RecordFormat, batches, control, format_of
from kafka08.kernel.types import (
    CRC_END,
    CREATE_TIME,
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    LOG_APPEND_TIME,
    MIN_MESSAGE_BYTES,
    NO_TIMESTAMP,
    NO_TIMESTAMP_TYPE,
)
from kafka08.log import aborted_transactions, producer_snapshot
from kafka08.log.files import exists, file_size, open_file, read_file, storage_errors
from kafka08.log.names import (
    DUMPED_SUFFIXES,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    base_offset_of,
)
from kafka08.log.offset_index import INDEX_ENTRY, INDEX_ENTRY_BYTES, IndexEntry
from kafka08.log.recovery import CHUNK_BYTES, crc_is_right
from kafka08.log.time_index import TIME_ENTRY, TIME_ENTRY_BYTES
from kafka08.protocol import message_set
from kafka08.protocol.compression import GZIP, LZ4, NONE, SNAPPY
from kafka08.runtime.disk import Disk, File, OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK

CODEC_NAMES: Final = {
    NONE: "NoCompressionCodec",
    GZIP: "GZIPCompressionCodec",
    SNAPPY: "SnappyCompressionCodec",
    LZ4: "LZ4CompressionCodec",
}
SHORT_CODEC_NAMES: Final = {NONE: "NONE", GZIP: "GZIP", SNAPPY: "SNAPPY", LZ4: "LZ4"}
"""In the words of 0.10.2.2."""
TIMESTAMP_TYPES: Final = {
    NO_TIMESTAMP_TYPE: "NoTimestampType",
    CREATE_TIME: "CreateTime",
    LOG_APPEND_TIME: "LogAppendTime",
}
MARKERS: Final = {control.ABORT: "ABORT", control.COMMIT: "COMMIT"}
OPEN_TRANSACTION: Final = "currentTxnFirstOffset"
ABORTED: Final = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
PRODUCER: Final = (
    *("producerId", "producerEpoch", "lastSequence", "lastOffset", "offsetDelta"),
    *("lastTimestamp", "coordinatorEpoch", OPEN_TRANSACTION),
)
Row = dict[str, int | str | None]
"""A message or index entry, in the order of its columns."""


class _Found(NamedTuple):
    """A message, whether its CRC is right, the position of its outermost entry, its offset in the
    log, and its timestamp as a consumer sees it."""

    position: int
    message: kernel.MessageAndOffset
    is_valid: bool
    offset: int
    timestamp_ms: int
    timestamp_type: int


class _Damage(Exception):
    """Why a message, or one inside of it, cannot be read."""


class _Entry(NamedTuple):
    """An entry of a file: its position there, its offset and size, its message, and the bytes to
    which `message.position` refers. Without a message it is damaged."""

    position: int
    offset: int
    size: int
    message: kernel.MessageAndOffset | None
    data: memoryview
    damage: str = ""
    batch: Batch | None = None
    """Of records; then there is no message."""

    @property
    def last_offset(self) -> int:
        return self.offset if self.batch is None else self.batch.last_offset

    def records(self) -> Iterator[Message]:
        """The records of its batch; _Damage behind the last one that can be read."""
        assert self.batch is not None
        form = format_of(self.batch.magic)
        assert isinstance(form, RecordFormat)
        try:
            yield from form.records(self.data, self.batch, message_set.unpack)
        except ValueError as error:
            raise _Damage(str(error)) from error

    def times(self) -> Iterator[tuple[int, int]]:
        """Offset and timestamp of each message inside; _Damage."""
        if self.batch is not None:
            for record in self.records():
                yield record.offset, record.timestamp_ms
        else:
            for found in self.messages(deep=True):
                yield found.offset, found.timestamp_ms

    def messages(self, *, deep: bool) -> Iterator[_Found]:
        """Its message or, with `deep`, those inside; _Damage behind the last one that can be
        read."""
        if self.message is None:
            raise _Damage(self.damage)
        yield from _messages(self.position, self.data, self.message, deep)


class _Sound(NamedTuple):
    """How much of a file is sound."""

    entries: int
    of_entries: int
    bytes: int
    of_bytes: int


class _Error(NamedTuple):
    """A kind of error: the line about a file, and that about a pair of numbers in it."""

    heading: str
    line: str
    is_reversed: bool = False
    """The last one of a file comes first."""


MISMATCH: Final = _Error("Mismatches in :{}", "  Index offset: {}, log offset: {}", True)
WRONG_TIME: Final = _Error(
    "Found timestamp mismatch in :{}", "  Index timestamp: {}, log timestamp: {}"
)
FALLING_TIME: Final = _Error(
    "Found out of order timestamp in :{}",
    "  Index timestamp: {}, Previously indexed timestamp: {}",
)
LOST_OFFSET: Final = _Error(
    "The following indexed offsets are not found in the log.",
    "Indexed offset: {}, found log offset: {}",
)
GAP: Final = _Error("Non-secutive offsets in :{}", "  {} is followed by {}", True)
LEADING_NOWHERE: Final = _Error(
    "The following index entries lead to no message that can be read in :{}",
    "  Index offset: {}, position: {}",
)
ERRORS: Final = (MISMATCH, WRONG_TIME, FALLING_TIME, LOST_OFFSET, GAP, LEADING_NOWHERE)
"""In the order of their lines."""


def _text(data: bytes) -> str:
    """Keys and values as StringDecoder prints them: as UTF-8."""
    return data.decode("utf-8", "replace")


def _column(item: tuple[str, int | str | None]) -> str:
    """The text of DumpLogSegments."""
    name, value = item
    if name == OPEN_TRANSACTION:
        return f"{name}: {'None' if value is None else f'Some({value})'}"
    if isinstance(value, bool):
        value = str(value).lower()
    return f"{name}: {'null' if value is None else value}"


class LogDump:
    """Dumps the files of partitions (DUMPED_SUFFIXES) with one set of options, and collects their
    errors.

    print_data_log      keys and values too, as UTF-8
    deep_iteration      the messages inside wrappers instead of the wrappers
    verify_index_only   compare index entries with the messages, print none
    """

    def __init__(
        self,
        *,
        print_data_log: bool = False,
        deep_iteration: bool = False,
        verify_index_only: bool = False,
        disk: Disk = SYSTEM_DISK,
    ) -> None:
        self._disk = disk
        self._print_data_log = print_data_log
        self._deep_iteration = deep_iteration
        self._verify_index_only = verify_index_only
        self._errors: dict[_Error, dict[Path, list[tuple[int, ...]]]] = {
            kind: {} for kind in ERRORS
        }
        self._damaged: dict[Path, _Sound] = {}

    @property
    def found_damage(self) -> bool:
        """Whether there were messages that cannot be read, or index entries that lead to none."""
        return bool(self._damaged or self._errors[LEADING_NOWHERE])

    def lines(self, path: Path) -> Iterator[str]:
        """The dump of one file; empty for other types of files. CorruptLog for a name that is none
        of a segment; StorageError, FileRefused."""
        if path.suffix in DUMPED_SUFFIXES:
            yield f"Dumping {path}"
        if path.suffix == LOG_SUFFIX:
            yield f"Starting offset: {base_offset_of(path)}"
        for row in self.rows(path):
            yield row if isinstance(row, str) else " ".join(map(_column, row.items()))

    def rows(self, path: Path) -> Iterator[Row | str]:
        """The dump of one file as values: name → value for each message or index entry, and text
        for other lines. Raises what `lines` raises."""
        if path.suffix == LOG_SUFFIX:
            yield from self._log_rows(path)
        elif path.suffix == INDEX_SUFFIX:
            yield from self._index_rows(path)
        elif path.suffix == TIME_INDEX_SUFFIX:
            yield from self._time_index_rows(path)
        elif path.suffix == TRANSACTION_INDEX_SUFFIX:
            for one in aborted_transactions.decode(read_file(self._disk, path)):
                row: Row = {"version": aborted_transactions.VERSION}
                yield row | dict(zip(ABORTED, one, strict=True))
        elif path.suffix == SNAPSHOT_SUFFIX:
            for entry in producer_snapshot.decode(read_file(self._disk, path))[0]:
                first = None if entry.first_offset < 0 else entry.first_offset
                yield dict(zip(PRODUCER, (*entry[:-1], first), strict=True))

    def complaints(self) -> Iterator[str]:
        """The errors in the files dumped so far."""
        for kind, found in self._errors.items():
            for path, pairs in found.items():
                yield kind.heading.format(path.absolute())
                for pair in reversed(pairs) if kind.is_reversed else pairs:
                    yield kind.line.format(*pair)
        for path, sound in self._damaged.items():
            yield (
                f"Damaged :{path.absolute()}: {sound.entries} of {sound.of_entries} entries are "
                f"sound, {sound.bytes} of {sound.of_bytes} bytes"
            )

    def _note(self, kind: _Error, path: Path, *pair: int) -> None:
        self._errors[kind].setdefault(path, []).append(pair)

    def _log_rows(self, path: Path) -> Iterator[Row | str]:
        file = open_file(self._disk, path, OpenMode.READ)
        size = file_size(file, path)
        end = count = sound = sound_bytes = 0
        last_offset = -1
        timed = exists(self._disk, path.with_suffix(TIME_INDEX_SUFFIX))
        for entry in self._entries(file, path, 0, size):
            is_sound = True
            try:
                for first, last, is_valid, row in self._entry_rows(entry, timed=timed):
                    if first is not None and last_offset not in (-1, first - 1):
                        self._note(GAP, path, last_offset, first)
                    last_offset = last
                    is_sound &= is_valid
                    yield row
            except _Damage as damage:
                is_sound, last_offset = False, entry.offset
                yield {
                    "offset": entry.offset,
                    "position": entry.position,
                    "isvalid": False,
                    "problem": str(damage),
                }
            count, end = count + 1, entry.position + entry.size
            sound, sound_bytes = sound + is_sound, sound_bytes + is_sound * entry.size
        if size > end:
            yield f"Found {size - end} invalid bytes at the end of {path.name}"
        if size > sound_bytes:
            self._damaged[path] = _Sound(sound, count, sound_bytes, size)

    def _entry_rows(
        self, entry: _Entry, *, timed: bool
    ) -> Iterator[tuple[int | None, int, bool, Row]]:
        """For each row of an entry: its first offset (None: a wrapper does not say), its last one,
        whether its CRC is right, the row. _Damage."""
        if entry.batch is None:
            for found in entry.messages(deep=self._deep_iteration):
                row = self._message_row(found, timed=timed)
                first = None if found.message.codec else found.offset
                yield first, found.offset, found.is_valid, row
            return
        batch = entry.batch
        form = format_of(batch.magic)
        covered = entry.data[batch.position + form.crc_start : batch.end]
        is_valid = getattr(kernel, form.crc)(covered) == batch.crc
        if not self._deep_iteration:
            row = self._batch_row(entry, batch, is_valid)
            yield batch.base_offset, batch.last_offset, is_valid, row
            return
        for record in entry.records():
            row = self._record_row(entry.position, batch, record, is_valid)
            yield record.offset, record.offset, is_valid, row

    def _batch_row(self, entry: _Entry, batch: Batch, is_valid: bool) -> Row:
        """The text of 0.11.0.3."""
        last_delta = batch.last_offset - batch.base_offset
        return {
            "baseOffset": batch.base_offset,
            "lastOffset": batch.last_offset,
            "baseSequence": batch.base_sequence,
            "lastSequence": _sequence(batch, last_delta),
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "partitionLeaderEpoch": batch.leader_epoch,
            "isTransactional": batch.is_transactional,
            "position": entry.position,
            TIMESTAMP_TYPES[batch.timestamp_type]: batch.max_timestamp_ms,
            "isvalid": is_valid,
            "size": batch.size,
            "magic": batch.magic,
            "compresscodec": SHORT_CODEC_NAMES.get(batch.codec, str(batch.codec)),
            "crc": batch.crc,
        }

    def _record_row(self, position: int, batch: Batch, record: Message, is_valid: bool) -> Row:
        """The text of 0.11.0.3 for a record."""
        row: Row = {
            "offset": record.offset,
            "position": position,
            TIMESTAMP_TYPES[record.timestamp_type]: record.timestamp_ms,
            "isvalid": is_valid,
            "keysize": -1 if record.key is None else len(record.key),
            "valuesize": -1 if record.value is None else len(record.value),
            "magic": batch.magic,
            "compresscodec": SHORT_CODEC_NAMES[batch.codec],
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "sequence": _sequence(batch, record.offset - batch.base_offset),
            "isTransactional": batch.is_transactional,
            "headerKeys": f"[{','.join(name for name, _ in record.headers)}]",
        }
        if batch.is_control:
            row |= _marker(record)
        elif self._print_data_log:
            if record.key is not None:
                row["key"] = _text(bytes(record.key))
            if record.value is not None:
                row["payload"] = _text(bytes(record.value))
        return row

    def _message_row(self, found: _Found, *, timed: bool) -> Row:
        """`timed`: the text of 0.10.2.2, with neither key nor payload of a message without a
        value."""
        message = found.message
        row: Row = {
            "offset": found.offset if timed else message.offset,
            "position": found.position,
        }
        if timed:
            row[TIMESTAMP_TYPES[found.timestamp_type]] = found.timestamp_ms
        row |= {
            "isvalid": found.is_valid,
            "payloadsize": -1 if message.value is None else len(message.value),
            "magic": message.magic,
            "compresscodec": (SHORT_CODEC_NAMES if timed else CODEC_NAMES)[message.codec],
            "crc": message.crc,
        }
        if message.key is not None:
            row["keysize"] = len(message.key)
        if self._print_data_log and not (timed and message.value is None):
            if message.key is not None:
                row["key"] = _text(message.key)
            row["payload"] = None if message.value is None else _text(message.value)
        return row

    def _index_rows(self, path: Path) -> Iterator[Row]:
        base_offset = base_offset_of(path)
        log_path = path.with_suffix(LOG_SUFFIX)
        file = open_file(self._disk, log_path, OpenMode.READ)
        size = file_size(file, log_path)
        content = read_file(self._disk, path)
        for number in range(len(content) // INDEX_ENTRY_BYTES):
            relative, position = INDEX_ENTRY.unpack_from(content, number * INDEX_ENTRY_BYTES)
            first = self._first_offset(file, log_path, position, size)
            if first is None and not relative and not position:
                return  # a pre-allocated index of an empty segment
            offset = base_offset + relative
            if first is None:
                self._note(LEADING_NOWHERE, path, offset, position)
            elif first != offset:
                self._note(MISMATCH, path, offset, first)
            if relative == 0 and number > 0:
                return  # zeros after the last entry
            if not self._verify_index_only:
                yield {"offset": offset, "position": position}

    def _first_offset(self, file: File, path: Path, position: int, size: int) -> int | None:
        """The offset of the first message at `position`, decompressed; None without one that can be
        read."""
        for entry in self._entries(file, path, position, size):
            with suppress(_Damage):
                return next((offset for offset, _ in entry.times()), None)
            return None
        return None

    def _time_index_rows(self, path: Path) -> Iterator[Row]:
        """Looks for each entry from the position in the index on; its timestamp must be the largest
        of the messages there. Zeros after the last entry are left out, where 0.10.2.2 reports
        errors."""
        base_offset = base_offset_of(path)
        log_path = path.with_suffix(LOG_SUFFIX)
        file = open_file(self._disk, log_path, OpenMode.READ)
        size = file_size(file, log_path)
        places = self._places(path.with_suffix(INDEX_SUFFIX), base_offset)
        content = read_file(self._disk, path)
        before_ms = NO_TIMESTAMP
        for at in range(0, len(content) - TIME_ENTRY_BYTES + 1, TIME_ENTRY_BYTES):
            timestamp_ms, relative = TIME_ENTRY.unpack_from(content, at)
            offset = base_offset + relative
            if not timestamp_ms and not relative and len(content) > TIME_ENTRY_BYTES:
                return
            place = places[bisect_right(places, offset, key=lambda entry: entry.offset) - 1]
            found_offset, found_ms = self._largest_at(file, log_path, place, size, offset)
            if found_offset != offset:
                self._note(LOST_OFFSET, path, offset, found_offset)
            elif found_ms != timestamp_ms:
                self._note(WRONG_TIME, path, timestamp_ms, found_ms)
            if found_offset == offset and before_ms >= timestamp_ms:
                self._note(FALLING_TIME, path, timestamp_ms, before_ms)
            if not self._verify_index_only:
                yield {"timestamp": timestamp_ms, "offset": offset}
            before_ms = timestamp_ms

    def _places(self, path: Path, base_offset: int) -> list[IndexEntry]:
        """The entries of the index, if there is one."""
        content = read_file(self._disk, path) if exists(self._disk, path) else b""
        whole = content[: len(content) // INDEX_ENTRY_BYTES * INDEX_ENTRY_BYTES]
        entries = INDEX_ENTRY.iter_unpack(whole)
        return [
            IndexEntry(base_offset, 0),
            *(IndexEntry(base_offset + relative, at) for relative, at in entries if at),
        ]

    def _largest_at(
        self, file: File, path: Path, place: IndexEntry, size: int, offset: int
    ) -> tuple[int, int]:
        """Offset and largest timestamp of the first entry at or above `offset`; -1 if there is
        none, or it cannot be read."""
        for entry in self._entries(file, path, place.position, size):
            if entry.last_offset >= offset:
                with suppress(_Damage):
                    times = [timestamp_ms for _, timestamp_ms in entry.times()]
                    return entry.last_offset, max(times, default=NO_TIMESTAMP)
                break
        return -1, NO_TIMESTAMP

    def _entries(self, file: File, path: Path, start: int, size: int) -> Iterator[_Entry]:
        """Each entry from `start` on, up to one with an impossible size."""
        chunk_bytes = CHUNK_BYTES
        while start < size:
            with storage_errors("read", path):
                chunk = memoryview(file.pread(min(chunk_bytes, size - start), start))
            end, damage, chunk_bytes = 0, "", CHUNK_BYTES
            try:
                for batch in batches(chunk):
                    data, at = chunk[batch.position : batch.end], start + batch.position
                    entry = _Entry(at, batch.base_offset, batch.size, None, data)
                    if isinstance(format_of(batch.magic), RecordFormat):
                        entry = entry._replace(batch=batch._replace(position=0))
                    else:
                        entry = entry._replace(message=next(kernel.entries(data)))
                    yield entry
                    end = batch.end
            except kernel.CorruptMessage as error:
                damage = error.reason
            start += end
            if end and not damage:
                continue
            if len(chunk) - end < ENTRY_HEADER_BYTES:
                return
            offset, message_size = ENTRY_HEADER.unpack_from(chunk, end)
            entry_size = ENTRY_HEADER_BYTES + message_size
            if message_size < MIN_MESSAGE_BYTES or start + entry_size > size:
                return
            if not damage:  # it is larger than the chunk
                with storage_errors("read", path):
                    is_right = crc_is_right(file, start, entry_size)
                if is_right:
                    chunk_bytes = entry_size
                    continue
                damage = "wrong crc"
            yield _Entry(start, offset, entry_size, None, chunk, damage)
            start += entry_size


def _sequence(batch: Batch, delta: int) -> int:
    """The sequence number of a record; after the largest int comes 0. -1 without a producer."""
    return -1 if batch.base_sequence < 0 else (batch.base_sequence + delta) & INT_MAX


def _marker(record: Message) -> Row:
    """The marker of a transaction; _Damage if it is none."""
    try:
        _, kind = control.KEY.unpack_from(record.key or b"")
        _, coordinator_epoch = control.VALUE.unpack_from(record.value or b"")
    except struct.error as error:
        raise _Damage("the record of a control batch is no marker") from error
    name = MARKERS.get(kind, "UNKNOWN")
    return {"endTxnMarker": name, "coordinatorEpoch": coordinator_epoch}


def _messages(
    position: int,
    data: memoryview,
    entry: kernel.MessageAndOffset,
    deep: bool,
    shift: int = 0,
    wrapper: kernel.MessageAndOffset | None = None,
) -> Iterator[_Found]:
    """The entry itself, or every message inside it; all with the outermost entry's position.
    _Damage.

    shift     is added to the entry's offset
    wrapper   of magic 1, which contains the entry: its timestamp type applies, and with
              LogAppendTime its timestamp
    """
    if entry.codec not in CODEC_NAMES:
        raise _Damage(f"{entry.codec} is an unknown codec")
    if not (deep and entry.codec):
        end = entry.position + entry.entry_size
        crc = kernel.crc32(data[entry.position + CRC_END : end])
        stamped = wrapper if wrapper and wrapper.timestamp_type == LOG_APPEND_TIME else entry
        time, kind = stamped.timestamp_ms, stamped.timestamp_type
        yield _Found(position, entry, crc == entry.crc, entry.offset + shift, time, kind)
        return
    try:
        inner = memoryview(message_set.unpack(entry.codec, entry.value or b""))
        messages: Iterable[kernel.MessageAndOffset] = kernel.entries(inner)
        inner_shift = shift
        if entry.magic:
            messages = list(messages)
            inner_shift = max(0, entry.offset - messages[-1].offset) if messages else 0
        within = entry if entry.magic else None
        for message in messages:
            yield from _messages(position, inner, message, deep, inner_shift, within)
    except ValueError as error:
        raise _Damage(str(error)) from error
