"""The cleaner's decisions, from numbers alone: which log, which segments to merge, which
tombstones to drop.

    |  clean: cleaned before  |  dirty: sealed since  |  active: never cleaned  |
    log start          first dirty offset         active base                 log end

Source: kafka.log.LogToClean, kafka.log.Cleaner and kafka.log.LogCleanerManager 0.8.2.2.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kafka08.config import INT_MAX
from kafka08.structs import TopicPartition

SLOT_BYTES: Final = 24
"""Bytes of an offset map's slot: an MD5 and an offset."""
MAX_CHUNK_BYTES: Final = 1 << 20
"""The most bytes that one native call reads, unless a single message is larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerConfig:
    """log.cleaner.* of one worker.

    map_bytes         memory of the offset map, at least two slots
    load_factor       how full the map may get, above 0 and at most 1
    chunk_bytes       bytes read at once, 1 to MAX_CHUNK_BYTES; grows for a larger message
    """

    map_bytes: int = 500 << 20
    load_factor: float = 0.9
    chunk_bytes: int = 256 << 10

    @property
    def max_slots(self) -> int:
        """The number of slots of the largest map."""
        return min(self.map_bytes // SLOT_BYTES, INT_MAX)

    @property
    def max_keys(self) -> int:
        """The number of keys in the largest map; at least one slot stays free."""
        return max(1, min(int(self.max_slots * self.load_factor), self.max_slots - 1))

    def map_size(self, messages: int) -> tuple[int, int]:
        """(slots, keys) of the smallest map for at most `messages` messages."""
        keys = max(1, min(messages, self.max_keys))
        slots = math.ceil(keys / self.load_factor) + 1
        return max(keys + 1, min(slots, self.max_slots)), keys


class SealedSegment(NamedTuple):
    """A segment that takes no more appends. `end_offset` is the base offset of the next one."""

    base_offset: int
    end_offset: int
    size: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class DirtyLog:
    """The share of a log's sealed bytes that was not cleaned yet."""

    topic_partition: TopicPartition
    first_dirty_offset: int
    clean_bytes: int
    dirty_bytes: int

    @property
    def dirty_ratio(self) -> float:
        """0.0 (nothing to do) to 1.0 (never cleaned)."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def first_dirty_offset(checkpoint: int | None, log_start_offset: int, active_base: int) -> int:
    """The start of the next cleaning: the checkpoint, if it lies within the sealed part of the log.

    0.8.2.2's cleaner dies of any other checkpoint; here the log is cleaned again from its start.
    """
    if checkpoint is None or not log_start_offset <= checkpoint <= active_base:
        return log_start_offset
    return checkpoint


def measure(
    topic_partition: TopicPartition, sealed: Sequence[SealedSegment], first_dirty: int
) -> DirtyLog:
    """Measure a log. A segment that is partly dirty counts as dirty."""
    clean = sum(segment.size for segment in sealed if segment.end_offset <= first_dirty)
    total = sum(segment.size for segment in sealed)
    return DirtyLog(topic_partition, first_dirty, clean, total - clean)


def filthiest(logs: Iterable[tuple[DirtyLog, float]]) -> DirtyLog | None:
    """The log with the highest dirty ratio among those above their min.cleanable.dirty.ratio (the
    second of each pair); None if there is none. Ties go to the first."""
    cleanable = [log for log, ratio in logs if log.dirty_bytes and log.dirty_ratio > ratio]
    return max(cleanable, key=lambda log: log.dirty_ratio, default=None)


def group_segments(
    segments: Sequence[SealedSegment], max_bytes: int, max_index_bytes: int
) -> list[tuple[int, int]]:
    """The segments to merge: half-open ranges of indexes in `segments`, covering all of them, in
    order.

    The sums of a group stay below `max_bytes` and `max_index_bytes`, so that segments do not
    shrink with each pass, and its offsets within the 32 bits of an index. A segment that exceeds a
    limit by itself is a group of its own.
    """
    groups: list[tuple[int, int]] = []
    start = 0
    while start < len(segments):
        end = start + 1
        size, index_bytes = segments[start].size, segments[start].index_bytes
        while end < len(segments):
            size += segments[end].size
            index_bytes += segments[end].index_bytes
            span = segments[end].end_offset - 1 - segments[start].base_offset
            if size >= max_bytes or index_bytes >= max_index_bytes or span > INT_MAX:
                break
            end += 1
        groups.append((start, end))
        start = end
    return groups


def last_clean(sealed: Sequence[SealedSegment], first_dirty: int) -> int | None:
    """Index in `sealed` of the last segment that starts below `first_dirty`; None if none."""
    count = bisect_right(sealed, first_dirty - 1, key=lambda segment: segment.base_offset)
    return count - 1 if count else None


def delete_horizon_ms(last_clean_modified_ms: int | None, delete_retention_ms: int) -> int:
    """Tombstones may be dropped from segments last written at or before this time: it lies
    delete.retention.ms before the last write to the clean part."""
    if last_clean_modified_ms is None:
        return 0
    return last_clean_modified_ms - delete_retention_ms


def keeps_tombstones(
    segment: SealedSegment, first_dirty: int, modified_ms: int, horizon_ms: int
) -> bool:
    """Whether tombstones in a segment must stay in this pass.

    In the dirty part always: the values of a tombstone's key are dropped only in the pass that maps
    the tombstone, and this pass's map may be too small for it. 0.8.2.2 looks at the time alone.
    """
    return segment.end_offset > first_dirty or modified_ms > horizon_ms
