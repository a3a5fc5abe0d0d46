"""Exact ranges of offsets: the unit of planning and reading in this package."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from kafka08.errors import ConfigError
from kafka08.structs import TopicPartition


class OffsetRange(NamedTuple):
    """The messages of one partition with from_offset <= offset < until_offset.

    Offsets that compaction removed have no message, but count in `size`.
    """

    topic: str
    partition: int
    from_offset: int
    until_offset: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """Number of offsets; 0 for an empty range."""
        return max(0, self.until_offset - self.from_offset)

    def __str__(self) -> str:
        return f"{self.topic_partition} [{self.from_offset}, {self.until_offset})"


def furthest_ends(ranges: Iterable[OffsetRange]) -> dict[TopicPartition, int]:
    """partition → the largest end of its ranges."""
    ends: dict[TopicPartition, int] = {}
    for of_partition in ranges:
        tp = of_partition.topic_partition
        ends[tp] = max(of_partition.until_offset, ends.get(tp, 0))
    return ends


def ranges_to_json(ranges: Iterable[OffsetRange | tuple[str, int, int, int]]) -> str:
    """The text that the option `offsetRanges` takes: `[["t",0,100,200], …]`."""
    return json.dumps([list(of_partition) for of_partition in ranges])


def ranges_from_json(text: str) -> tuple[OffsetRange, ...]:
    """The ranges of such a text, in its order; a partition may occur more than once.

    ConfigError if it is not a list of [topic, partition, from, until], for a negative number, and
    for from > until.
    """
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"offsetRanges: {text!r} is not JSON: {error}") from error
    if not isinstance(parsed, list):
        raise ConfigError(f'offsetRanges: {text!r} is not a list like [["topic",0,100,200]]')
    return tuple(_range(item) for item in parsed)


def _range(item: Any) -> OffsetRange:
    match item:
        case [str(topic), int(partition), int(start), int(until)] if topic:
            pass
        case _:
            raise ConfigError(f"offsetRanges: {item!r} is not [topic, partition, from, until]")
    if partition < 0 or start < 0:
        raise ConfigError(f"offsetRanges: {item!r} has a negative number")
    if start > until:
        raise ConfigError(f"offsetRanges: {item!r} starts behind its end")
    return OffsetRange(topic, partition, start, until)
