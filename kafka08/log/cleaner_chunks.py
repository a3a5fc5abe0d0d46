"""The cleaner's native jobs: read a chunk of a sealed segment, map its keys or copy its survivors.

Each works only on its arguments: an open file, an offset map, an output. The loops over messages
are kernel calls without the GIL, so jobs run in a native thread beside the event loop.
Source: kafka.log.Cleaner.buildOffsetMapForSegment and cleanInto 0.8.2.2, 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kafka08 import kernel
from kafka08.config import INT_MAX
from kafka08.errors import CorruptLog
from kafka08.format import Batch, Message, RecordFormat, batches, format_of
from kafka08.kernel.types import ENTRY_HEADER_BYTES, LOG_APPEND_TIME, MAX_NESTING, Buffer
from kafka08.log.cleaned_segment import CleanedSegment
from kafka08.log.cleaned_transactions import CleanedTransactions
from kafka08.log.files import storage_errors
from kafka08.log.recovery import entry_bytes
from kafka08.protocol import message_set
from kafka08.protocol.conversion import convert_plain
from kafka08.protocol.record_batches import compress
from kafka08.runtime.disk import File


class Source(NamedTuple):
    """A sealed segment, as jobs see it. The file stays open as long as this object lives."""

    path: Path
    file: File
    size: int


class MappedChunk(NamedTuple):
    """`position` is where the next chunk starts; `refused` the offset of the first message for
    which the map had no room, -1 if all fit."""

    position: int
    refused: int


class CleanedChunk(NamedTuple):
    """`position` is where the next chunk starts; the rest counts messages and bytes written."""

    position: int
    written: int
    read: int
    kept: int
    unkeyed: int


def map_chunk(
    source: Source,
    position: int,
    chunk_bytes: int,
    offset_map: kernel.OffsetMap,
    from_offset: int,
    transactions: CleanedTransactions,
) -> MappedChunk:
    """Put the keys of a chunk's messages from `from_offset` on into the map, but for those of
    aborted transactions.

    StorageError if it cannot be read, CorruptLog if it is not a valid message set.
    """
    chunk, end = _read(source, position, chunk_bytes)
    try:
        for entries in _mapped_entries(chunk, transactions):
            refused = offset_map.add(entries, from_offset)
            if refused >= 0:
                return MappedChunk(end, refused)
    except ValueError as error:
        raise _corrupt(source, position, error) from error
    return MappedChunk(end, -1)


def clean_chunk(
    source: Source,
    position: int,
    chunk_bytes: int,
    offset_map: kernel.OffsetMap,
    cleaned: CleanedSegment,
    keep_tombstones: bool,
    keep_wrappers: bool,
    transactions: CleanedTransactions,
) -> CleanedChunk:
    """Append the survivors of a chunk to `cleaned`. Errors as map_chunk.

    keep_wrappers   the survivors of a wrapper are compressed again, and a wrapper whose messages
                    all survive is copied (from 0.9 on)
    """
    chunk, end = _read(source, position, chunk_bytes)
    written = read = kept = unkeyed = 0
    survivors: Buffer
    try:
        last_of_producer = {
            batch.producer_id: batch.position for batch in batches(chunk) if not batch.is_control
        }
        for run in kernel.runs(chunk):
            part = chunk[run.start : run.end]
            if run.has_records:
                is_last = run.start in last_of_producer.values()
                found, survivors = _clean_batch(
                    part, offset_map, keep_tombstones, transactions, is_last=is_last
                )
                cleaned.append(survivors)
                written += len(survivors)
                read += found.read
                kept += found.kept
                unkeyed += found.unkeyed
                continue
            for entries in _whole_pieces(part, run.codec, keep_wrappers):
                output = memoryview(bytearray(len(entries)))
                found = offset_map.retain(entries, output, keep_tombstones)
                survivors = output[: found.written]
                if keep_wrappers and run.codec:
                    kept_all = found.kept == found.read
                    survivors = part if kept_all else _packed(part, output[: found.written])
                cleaned.append(survivors)
                written += len(survivors)
                read += found.read
                kept += found.kept
                unkeyed += found.unkeyed
    except ValueError as error:
        raise _corrupt(source, position, error) from error
    return CleanedChunk(end, written, read, kept, unkeyed)


def _mapped_entries(chunk: memoryview, transactions: CleanedTransactions) -> Iterator[Buffer]:
    """The messages of a chunk whose keys count, as plain entries."""
    for run in kernel.runs(chunk):
        part = chunk[run.start : run.end]
        if not run.has_records:
            yield from plain_entries(part)
            continue
        (batch,) = batches(part)
        if not batch.is_control and not transactions.is_aborted(batch):
            yield _as_entries(_records(part, batch))


def _clean_batch(
    part: memoryview,
    offset_map: kernel.OffsetMap,
    keep_tombstones: bool,
    transactions: CleanedTransactions,
    *,
    is_last: bool,
) -> tuple[kernel.Retained, Buffer]:
    """The survivors of a batch of records, with its offsets and its producer. A batch without
    survivors stays too, empty, if it may be the last of an idempotent producer: its sequence number
    is in no other place. `is_last`: of its producer in the chunk. Source: MemoryRecords.filterTo
    0.11.0.3."""
    (batch,) = batches(part)
    count = batch.record_count
    if batch.is_control:
        if transactions.keeps_marker(batch, keep_tombstones=keep_tombstones):
            return kernel.Retained(len(part), count, count, 0), part
        return kernel.Retained(0, count, 0, 0), b""
    transactions.meet(batch)
    keeps_head = is_last and transactions.has_last_sequence(batch)
    if transactions.is_aborted(batch):
        return kernel.Retained(0, count, 0, 0), _without(batch, []) if keeps_head else b""
    records = _records(part, batch)
    entries = _as_entries(records)
    output = memoryview(bytearray(len(entries)))
    found = offset_map.retain(entries, output, keep_tombstones)
    if found.kept == found.read and found.read:
        return found, part
    offsets = {entry.base_offset for entry in batches(output[: found.written])}
    stays = [record for record in records if record.offset in offsets]
    if not stays and not keeps_head:
        return found, b""
    return found, _without(batch, stays)


def _without(batch: Batch, stays: list[Message]) -> Buffer:
    """The batch with these of its records alone."""
    form = format_of(batch.magic)
    assert isinstance(form, RecordFormat)
    checksum = getattr(kernel, form.crc)
    return form.build(stays, batch.codec if stays else 0, compress, like=batch, checksum=checksum)


def _records(part: memoryview, batch: Batch) -> list[Message]:
    form = format_of(batch.magic)
    assert isinstance(form, RecordFormat)
    return list(form.records(part, batch, message_set.unpack))


def _as_entries(records: list[Message]) -> bytearray:
    """Plain messages of these keys and offsets, as the map reads them; of values it asks only
    whether they are null."""
    return bytearray().join(
        kernel.build_set([(record.key, None if record.value is None else b"")], record.offset)
        for record in records
    )


def _whole_pieces(part: memoryview, codec: int, keep_wrappers: bool) -> Iterator[memoryview]:
    """The plain entries of a run; with `keep_wrappers` those of one wrapper together."""
    if codec and keep_wrappers:
        yield memoryview(bytearray().join(plain_entries(part)))
    else:
        yield from plain_entries(part)


def _packed(entry: memoryview, survivors: memoryview) -> Buffer:
    """A wrapper like `entry` around `survivors`, plain entries with absolute offsets. Source:
    MemoryRecords.filterTo 0.10.2.2."""
    if not survivors:
        return b""
    wrapper = next(kernel.entries(entry))
    summary = kernel.validate(survivors, INT_MAX, verify_crc=False)
    by_broker = wrapper.timestamp_type == LOG_APPEND_TIME
    timestamp_ms = wrapper.timestamp_ms if by_broker else summary.max_timestamp_ms
    messages: Buffer = survivors
    if wrapper.magic:
        messages = convert_plain(survivors, summary.count, wrapper.magic, -summary.first_offset)
    return message_set.pack(
        messages, wrapper.codec, summary.last_offset, wrapper.magic, timestamp_ms, by_broker
    )


def plain_entries(entries: memoryview, depth: int = 0) -> Iterator[memoryview]:
    """The uncompressed entries of a set, those in wrappers decompressed, in order, in pieces; all
    with absolute offsets.

    # 0.8: messages of a wrapper are written back uncompressed.
    A message with a wrong CRC stays as it is. ValueError for a wrapper that cannot be decompressed.
    """
    if depth > MAX_NESTING:
        raise ValueError(f"more than {MAX_NESTING} levels of compressed messages")
    for run in kernel.runs(entries):
        part = entries[run.start : run.end]
        if not run.codec:
            yield part
            continue
        wrapper = next(kernel.entries(part))
        inner = memoryview(message_set.unpack(run.codec, wrapper.value or b""))
        if wrapper.magic:
            summary = kernel.validate(inner, INT_MAX, verify_crc=False)
            if summary.codec:
                raise ValueError(f"compressed inside the wrapper at offset {wrapper.offset}")
            # In magic 1 the last message inside has the wrapper's offset; those inside are
            # relative.
            shift = max(0, wrapper.offset - summary.last_offset)
            inner = convert_plain(inner, summary.count, wrapper.magic, shift)
        yield from plain_entries(inner, depth + 1)


def _read(source: Source, position: int, chunk_bytes: int) -> tuple[memoryview, int]:
    """The whole entries in about `chunk_bytes` from `position` on, at least one, and their end
    position in the file."""
    chunk = _pread(source, position, max(chunk_bytes, ENTRY_HEADER_BYTES))
    first = entry_bytes(chunk)
    if first is not None and first > len(chunk):
        chunk = _pread(source, position, first)
    try:
        runs = kernel.runs(chunk)
    except ValueError as error:
        raise _corrupt(source, position, error) from error
    if not runs:
        raise _corrupt(source, position, "ends within an entry")
    size = runs[-1].end
    return chunk[:size], position + size


def _pread(source: Source, position: int, size: int) -> memoryview:
    with storage_errors("read", source.path):
        return memoryview(source.file.pread(min(size, source.size - position), position))


def _corrupt(source: Source, position: int, reason: object) -> CorruptLog:
    return CorruptLog(f"{source.path}, from byte {position} on: {reason}")
