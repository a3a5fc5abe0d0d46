"""The message format of a stored log: whether it contains magic 1, or record batches (magic 2).
Needed at a broker's start. A log with record batches has the leader epoch of the first.

Only brokers from 0.10.1 on write time indexes, so a segment without one has magic 0. In others the
first message, the time index, whose entries are timestamps of messages, PLACES sets that the offset
index names, and what follows its last entry are checked.

Magic 1 without timestamps between magic 0 in one segment may be between these places. `Log.config`
starts a new segment when a topic's format is lowered, so that our brokers write none; a JVM broker
does, if old producers alone write to a topic whose format is raised and lowered again. To find each
such message, every start of a broker with an old format would have to read its whole logs.
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import Final

from kafka08 import kernel
from kafka08.errors import CorruptLog
from kafka08.format import HEAD_BYTES_MAX, entry_size, magic_of
from kafka08.kernel.types import ENTRY_HEADER_BYTES
from kafka08.log.files import exists, file_size, files_in, open_file, read_file, storage_errors
from kafka08.log.leader_epochs import LeaderEpochs
from kafka08.log.names import (
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
)
from kafka08.log.offset_index import INDEX_ENTRY, INDEX_ENTRY_BYTES
from kafka08.log.time_index import TIME_ENTRY_BYTES
from kafka08.protocol.message_set import NO_LIMIT
from kafka08.runtime.disk import Disk, File, OpenMode

PIECE_BYTES: Final = 256 << 10
PLACES: Final = 64
"""In a segment of 1 GB they are 16 MB apart."""
ONLY_MAGIC_0: Final = 1
"""SetSummary.magics of a set of magic 0."""


def has_record_batches(directory: Path, disk: Disk) -> bool:
    """Whether the log in a partition's directory has record batches. StorageError."""
    path = directory / LEADER_EPOCH_CHECKPOINT
    if not exists(disk, path):
        return False
    try:
        return bool(LeaderEpochs.decode(read_file(disk, path).decode("utf-8", "replace")).entries)
    except CorruptLog:
        return True


def segment_of_magic_1(directory: Path, disk: Disk) -> Path | None:
    """The message file of the first segment with magic 1 in a partition's directory; None if there
    is none. StorageError."""
    files = set(files_in(disk, directory))
    for path in sorted(files):
        messages = path.with_suffix(LOG_SUFFIX)
        if path.suffix != TIME_INDEX_SUFFIX or messages not in files:
            continue
        file = open_file(disk, messages, OpenMode.READ)
        with storage_errors("read", messages):
            magic = magic_of(file.pread(HEAD_BYTES_MAX, 0))
        if magic is None:
            continue
        if magic or any(_start_of(disk, path)):
            return messages
        index = path.with_suffix(INDEX_SUFFIX)
        *places, last = _places(disk, index) if index in files else [0]
        if any(_begins_with_magic_1(file, messages, position) for position in places):
            return messages
        if _has_magic_1(file, messages, last):
            return messages
    return None


def _start_of(disk: Disk, path: Path) -> bytes:
    """The first entry of a time index."""
    file = open_file(disk, path, OpenMode.READ)
    with storage_errors("read", path):
        return file.pread(TIME_ENTRY_BYTES, 0)


def _places(disk: Disk, path: Path) -> list[int]:
    """Positions in at most PLACES entries of an offset index, of which one is the last that is
    used; [0] if there is none. After a crash those that are not used are zeros."""
    file = open_file(disk, path, OpenMode.READ)

    def position(slot: int) -> int:
        with storage_errors("read", path):
            data = file.pread(INDEX_ENTRY_BYTES, slot * INDEX_ENTRY_BYTES)
        found: int = INDEX_ENTRY.unpack(data)[1]
        return found

    entries = file_size(file, path) // INDEX_ENTRY_BYTES
    if entries and not position(entries - 1):
        entries = bisect_left(range(entries), True, key=lambda slot: position(slot) == 0)
    step = max(1, -(-entries // PLACES))
    return [position(slot) for slot in range((entries - 1) % step, entries, step)] or [0]


def _begins_with_magic_1(file: File, path: Path, position: int) -> bool:
    """Whether a sound message of magic 1 is at this position. An index may be wrong after a
    crash."""
    with storage_errors("read", path):
        magic = magic_of(file.pread(HEAD_BYTES_MAX, position))
    return bool(magic) and _has_magic_1(file, path, position)


def _has_magic_1(file: File, path: Path, position: int) -> bool:
    """Whether there is magic 1 in a message file from `position` on, as far as it can be read."""
    size = file_size(file, path)
    if position >= size:
        position = 0
    count = PIECE_BYTES
    while position + ENTRY_HEADER_BYTES <= size:
        with storage_errors("read", path):
            data = file.pread(count, position)
        try:
            summary = kernel.validate(data, NO_LIMIT)
        except kernel.CorruptMessage as error:
            summary = kernel.validate(data[: error.position], NO_LIMIT)
            size = 0
        except kernel.UnknownCodec:
            return False
        if summary.magics & ~ONLY_MAGIC_0:
            return True
        position += summary.size
        count = PIECE_BYTES
        if not summary.size:
            count = entry_size(memoryview(data), 0)
            if position + count > size:
                return False
    return False
