"""Opens a partition's directory: finishes interrupted operations, recovers unflushed segments.

Source: kafka.log.Log.loadSegments and recoverLog 0.8.2.2. Where that refuses to start because of an
index that a failed start left pre-allocated, or because of any other wrong index, this rebuilds the
index.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kafka08.config import INT_MAX
from kafka08.errors import CorruptLog
from kafka08.log.files import (
    exists,
    file_size,
    files_in,
    open_file,
    remove,
    rename,
    storage_errors,
    sync_directory,
)
from kafka08.log.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    UNSYNCED_SUFFIX,
    base_offset_of,
    file_of,
    segment_files,
)
from kafka08.log.recovery import Recovered, recover_messages
from kafka08.log.segment import LogSegment
from kafka08.log.time_index import TimestampOffset
from kafka08.log.unsynced import unsynced_marks
from kafka08.runtime.disk import Disk, OpenMode

logger = logging.getLogger(__name__)

OpenSegment = Callable[[int], LogSegment]
"""base offset → the open segment."""


class Loaded(NamedTuple):
    """The segments in order (at least one; none is active yet), the next offset to write, whether
    the directory had no segment, the largest timestamp of the last messages, and the marks of
    UnsyncedChanges."""

    segments: list[LogSegment]
    log_end_offset: int
    is_new: bool
    largest: TimestampOffset
    unsynced_marks: list[int]


def load_segments(
    directory: Path,
    open_segment: OpenSegment,
    *,
    recovery_point: int,
    clean_shutdown: bool,
    index_bytes: int,
    disk: Disk,
) -> Loaded:
    """Open every segment; check and repair those that may be damaged.

    These are: all from the one with `recovery_point` on (none after a clean shutdown), any whose
    index is missing or wrong, and an active one whose tail is not whole. If an unflushed segment is
    truncated, or has lost its end, those after it are deleted. It has lost its end if a mark of
    UnsyncedChanges is above it: offsets may also be missing because the log, or its leader's, was
    compacted once, whatever its configuration says today. 0.8.2.2 keeps each gap.
    """
    marks = unsynced_marks(disk, directory)
    _finish_interrupted(disk, directory)
    bases = _base_offsets(disk, directory)
    without_index = {
        base for base in bases if not exists(disk, file_of(directory, base, INDEX_SUFFIX))
    }
    segments = [open_segment(base) for base in bases] or [open_segment(0)]
    unflushed = max(0, bisect_right(bases, recovery_point) - 1)
    if clean_shutdown or not bases:
        unflushed = len(segments)
    found: Recovered | None = None
    for number, segment in enumerate(segments):
        found = None
        if number >= unflushed:
            logger.info(
                "Recovering unflushed segment %d in log %s.", segment.base_offset, directory.name
            )
        elif segment.base_offset in without_index:
            logger.error(
                "Could not find index file corresponding to log file %s, rebuilding index...",
                segment.log_path,
            )
        elif (problem := segment.index_problem(clean_shutdown=clean_shutdown)) is not None:
            logger.warning("Rebuilding index %s: %s", segment.index.path, problem)
        else:
            continue
        is_last = number + 1 == len(segments)
        next_base = None if is_last else segments[number + 1].base_offset
        found, cut = _recover(segment, index_bytes, next_base)
        # Flushed: only its index was rebuilt, and a gap after it is no loss.
        if number < unflushed:
            continue
        end = _end_of(segment, found)
        if cut or (next_base is not None and any(end < mark <= next_base for mark in marks)):
            logger.warning(
                "Corruption found in segment %d of log %s, truncating to offset %d.",
                segment.base_offset,
                directory.name,
                end,
            )
            _delete_after(segments, number)
            # A power failure must not restore them after messages written later.
            sync_directory(disk, directory)
            break
    active = segments[-1]
    if found is None:
        # After a clean stop.
        found = active.check(from_last_index_entry=True)
        if found.problem is not None or found.fixes:
            found, _ = _recover(active, index_bytes, None)
    return Loaded(segments, _end_of(active, found), not bases, found.largest, marks)


def _end_of(segment: LogSegment, found: Recovered) -> int:
    """The next offset after a segment's valid messages."""
    return max(found.last_offset + 1, segment.base_offset)


def _recover(segment: LogSegment, index_bytes: int, next_base: int | None) -> tuple[Recovered, int]:
    found = segment.check(end_offset=next_base)
    for position, offset in found.fixes.items():
        logger.warning(
            "A message of log segment %s at byte offset %d has an offset that contradicts its "
            "neighbours, setting it to %d.",
            segment.log_path,
            position,
            offset,
        )
    if found.problem is not None:
        logger.warning(
            "Found invalid messages in log segment %s at byte offset %d: %s.",
            segment.log_path,
            found.valid_bytes,
            found.problem,
        )
    return found, segment.repair(found, index_bytes)


def _delete_after(segments: list[LogSegment], number: int) -> None:
    """Delete the segments after a truncated one: their offsets would leave a gap."""
    while len(segments) > number + 1:
        segment = segments.pop()
        logger.warning("Deleting %s, which follows the corruption.", segment.log_path)
        segment.forget()
        segment.remove_files()


def _finish_interrupted(disk: Disk, directory: Path) -> None:
    """Finish deletes and swaps that a crash interrupted, undo unfinished compactions."""
    for path in files_in(disk, directory):
        if path.name.endswith(UNSYNCED_SUFFIX):
            continue  # the first flush removes it
        if path.name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX)):
            remove(disk, path)
        elif path.name.endswith(SWAP_SUFFIX):
            target = path.with_name(path.name.removesuffix(SWAP_SUFFIX))
            if target.suffix in INDEX_SUFFIXES:
                remove(disk, path)
            elif target.suffix == TRANSACTION_INDEX_SUFFIX:
                rename(disk, path, target)
            elif target.name.endswith(LOG_SUFFIX):
                logger.info("Found log file %s from interrupted swap operation, repairing.", path)
                _remove_replaced(disk, directory, path)
                for suffix in INDEX_SUFFIXES:
                    remove(disk, target.with_suffix(suffix))
                # They must not reappear beside the segment that replaces them.
                sync_directory(disk, directory)
                rename(disk, path, target)


def _remove_replaced(disk: Disk, directory: Path, swap: Path) -> None:
    """Delete the other originals of a cleaned segment: those that start after it and at or below
    its last offset. 0.8.2.2 leaves them, and so two segments with the same offsets."""
    file = open_file(disk, swap, OpenMode.READ)
    size = file_size(file, swap)
    with storage_errors("read", swap):
        last_offset = recover_messages(file, size, index_interval_bytes=INT_MAX).last_offset
    for base_offset in _base_offsets(disk, directory):
        if base_offset_of(swap) < base_offset <= last_offset:
            logger.info("Deleting segment %d, which %s replaces.", base_offset, swap)
            for file_name in segment_files(directory, base_offset):
                remove(disk, file_name)


def _base_offsets(disk: Disk, directory: Path) -> list[int]:
    """Base offsets of the segments, ascending. An index without messages is deleted. Two names may
    be one number, with and without leading zeros. CorruptLog for a copy such as `….bak.log`."""
    bases = []
    for path in files_in(disk, directory):
        if path.name.endswith(LOG_SUFFIX):
            bases.append(base_offset_of(path))
            if "." in path.stem:
                raise CorruptLog(f"{path} is not named after the base offset of a segment alone")
        elif path.suffix in INDEX_SUFFIXES and not exists(disk, path.with_suffix(LOG_SUFFIX)):
            logger.warning(
                "Found an orphaned index file, %s, with no corresponding log file.", path
            )
            remove(disk, path)
    return sorted(set(bases))
