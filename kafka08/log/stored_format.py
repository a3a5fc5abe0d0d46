"""The message format of a stored log: whether it contains magic 1. Needed at a broker's start.

Only brokers from 0.10.1 on write time indexes, so a segment without one has magic 0. In others the
first message and the time index are checked: an entry is the timestamp of a message. A segment that
starts with magic 0 and continues with magic 1 without timestamps is not found.
"""

from __future__ import annotations

from pathlib import Path

from kafka08.kernel.types import MAGIC_POSITION
from kafka08.log.files import files_in, open_file, storage_errors
from kafka08.log.names import LOG_SUFFIX, TIME_INDEX_SUFFIX
from kafka08.log.time_index import TIME_ENTRY_BYTES
from kafka08.runtime.disk import Disk, OpenMode


def segment_of_magic_1(directory: Path, disk: Disk) -> Path | None:
    """The message file of the first segment with magic 1 in a partition's directory; None if there
    is none. StorageError."""
    files = set(files_in(disk, directory))
    for path in sorted(files):
        if path.suffix != TIME_INDEX_SUFFIX or path.with_suffix(LOG_SUFFIX) not in files:
            continue
        messages = path.with_suffix(LOG_SUFFIX)
        head = _start_of(disk, messages, MAGIC_POSITION + 1)
        begins_so = len(head) > MAGIC_POSITION and head[MAGIC_POSITION] > 0
        if begins_so or any(_start_of(disk, path, TIME_ENTRY_BYTES)):
            return messages
    return None


def _start_of(disk: Disk, path: Path, size: int) -> bytes:
    file = open_file(disk, path, OpenMode.READ)
    with storage_errors("read", path):
        return file.pread(size, 0)
