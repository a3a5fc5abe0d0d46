"""The cleaner's native jobs: read a piece of a sealed segment, map its keys or copy its survivors.

Each works on what it is given: an open file, an offset map, an output. The loops over messages are
kernel calls without the GIL, so jobs run in a native thread while the event loop goes on.
Source: kafka.log.Cleaner.buildOffsetMapForSegment and cleanInto 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kafka08 import kernel
from kafka08.errors import CorruptLog
from kafka08.kernel.types import ENTRY_HEADER_BYTES, MAX_NESTING
from kafka08.log.cleaned_segment import CleanedSegment
from kafka08.log.files import storage_errors
from kafka08.log.recovery import entry_bytes
from kafka08.protocol import message_set
from kafka08.runtime.disk import File


class Source(NamedTuple):
    """A sealed segment as jobs see it. The file stays open as long as somebody has this."""

    path: Path
    file: File
    size: int


class MappedChunk(NamedTuple):
    """`position` is where the next chunk starts; `refused` the offset of the first message that
    found no room in the map, -1 if all did."""

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
) -> MappedChunk:
    """Put the keys of a chunk's messages from `from_offset` on into the map.

    StorageError if it cannot be read, CorruptLog if what was read is no sound set.
    """
    chunk, end = _read(source, position, chunk_bytes)
    try:
        for entries in plain_entries(chunk):
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
) -> CleanedChunk:
    """Append the survivors of a chunk to `cleaned`. Errors as map_chunk."""
    chunk, end = _read(source, position, chunk_bytes)
    written = read = kept = unkeyed = 0
    try:
        for entries in plain_entries(chunk):
            output = bytearray(len(entries))
            found = offset_map.retain(entries, output, keep_tombstones)
            cleaned.append(memoryview(output)[: found.written])
            written += found.written
            read += found.read
            kept += found.kept
            unkeyed += found.unkeyed
    except ValueError as error:
        raise _corrupt(source, position, error) from error
    return CleanedChunk(end, written, read, kept, unkeyed)


def plain_entries(entries: memoryview, depth: int = 0) -> Iterator[memoryview]:
    """The uncompressed entries of a set, those in wrappers unpacked, in order, in pieces.

    # 0.8: what comes out of a wrapper is written back as it is, uncompressed.
    ValueError for a wrapper that cannot be unpacked, or whose inner offsets are relative (magic 1).
    """
    if depth > MAX_NESTING:
        raise ValueError(f"more than {MAX_NESTING} levels of compressed messages")
    for run in kernel.runs(entries):
        part = entries[run.start : run.end]
        if not run.codec:
            yield part
            continue
        wrapper = next(kernel.entries(part))
        if wrapper.magic:
            raise ValueError(f"the wrapper at offset {wrapper.offset} is of magic {wrapper.magic}")
        inner = message_set.unpack(run.codec, wrapper.value or b"")
        yield from plain_entries(memoryview(inner), depth + 1)


def _read(source: Source, position: int, chunk_bytes: int) -> tuple[memoryview, int]:
    """The whole entries in about `chunk_bytes` from `position` on, at least one, and where they
    end in the file."""
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
