"""Compares what a move has copied with its source, message by message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafka08.mirror.move import Move
from kafka08.mirror.offset_map import OffsetMap
from kafka08.mirror.sources import NO_TIME, Headers, Source
from kafka08.structs import OffsetAndMetadata, TopicPartition

POLL_S = 5.0


class Difference(NamedTuple):
    """offset   of the first message at the source that differs"""

    topic_partition: TopicPartition
    offset: int
    what: str


class Compared(NamedTuple):
    """messages   that are the same on both sides"""

    messages: int
    differences: tuple[Difference, ...]


class Row(NamedTuple):
    """One message."""

    offset: int
    key: bytes | None
    value: bytes | None
    time: int
    headers: Headers


def compare(move: Move, copied: OffsetMap, last: int | None = None) -> Compared:
    """The messages that were copied and are still at the source; `last`: so many of each partition
    at most. Raises KafkaError."""
    count = 0
    differences = []
    starts = move.starts(list(copied))
    with move.open_source() as here, move.open_target() as there:
        for tp in sorted(copied):
            end, first = copied.position(tp), copied.first(tp)
            assert end is not None, f"{tp} is copied"
            assert first is not None, f"{tp} is copied"
            begin = max(first, starts[tp], 0 if last is None else end - last)
            same, difference = _compare(copied, tp, rows(here, tp, begin, end), there)
            count += same
            if difference is not None:
                differences.append(difference)
    return Compared(count, tuple(differences))


def _compare(
    copied: OffsetMap, tp: TopicPartition, found: Iterator[Row], target: Source
) -> tuple[int, Difference | None]:
    """The number of equal messages before the first difference, and that."""
    there: Iterator[Row] | None = None
    count = 0
    for row in found:
        at = copied.translated(tp, row.offset)
        assert at is not None, f"{tp} is copied"
        if there is None:
            there = rows(target, tp, at, None)
        # Compaction may have deleted messages at the source since.
        same = next((one for one in there if one.offset >= at), None)
        if same is None or same.offset != at:
            return count, Difference(tp, row.offset, f"there is no offset {at} at the target")
        if what := differing(row, same):
            return count, Difference(tp, row.offset, f"offset {at} at the target has {what}")
        count += 1
    return count, None


def differing(here: Row, there: Row) -> str:
    """The part that differs; "" if none does. A message without a time got that of its copy."""
    if here.key != there.key:
        return "another key"
    if here.value != there.value:
        return "another value"
    if here.headers != there.headers:
        return "other headers"
    return "another timestamp" if here.time not in (NO_TIME, there.time) else ""


def rows(source: Source, tp: TopicPartition, begin: int, end: int | None) -> Iterator[Row]:
    """The messages of a partition from `begin` up to `end`, or until none come."""
    source.seek({tp: OffsetAndMetadata(begin)})
    while portions := source.poll(POLL_S):
        for portion in portions:
            columns = (
                portion.offsets, portion.keys, portion.values, portion.times, portion.headers
            )  # fmt: skip
            for row in map(Row, *columns):
                if end is not None and row.offset >= end:
                    return
                yield row
            if end is not None and portion.offsets[-1] + 1 >= end:
                return
