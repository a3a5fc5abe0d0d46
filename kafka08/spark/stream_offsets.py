"""Positions of a stream as Spark keeps them in its checkpoint, and where a batch ends. Pure.

A position is JSON, `{"topic":{"0":23}}`, as Spark's own connector writes it: the next offset of
each partition. Spark keeps the *end* of a batch before it runs, and takes the end of the batch
before as its start; but the start of batch 0, and of partitions that a later batch is the first to
see, is nowhere in the checkpoint. Were it asked for again after a failure, the answer might be
another one ("latest" surely is), and messages would be lost or come twice. So the end of a batch
also carries the starts that no earlier end has, under a key that no topic can have:

    {"t":{"0":105},"$starts":{"t":{"0":100}}}

With it the ends of two batches are all it takes to read the later one again exactly.

Where ZooKeeper is known the end of a batch also has the transaction that made each topic, under
another such key, `"$created":{"t":4294967333}`: offsets of a topic that was deleted and made again
mean other messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kafka08.arrow.option_text import numbers_to_json
from kafka08.arrow.plan import rate_limit
from kafka08.arrow.ranges import OffsetRange
from kafka08.structs import TopicPartition

Numbers = Mapping[TopicPartition, int]
Creations = Mapping[str, int]
STARTS: Final = "$starts"
CREATED: Final = "$created"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """ends     the next offset of each partition
    starts   where the batch that ends here began, for partitions the one before did not have
    created  topic → the transaction that made it, as far as known
    """

    ends: Numbers
    starts: Numbers = field(default_factory=dict)
    created: Creations = field(default_factory=dict)

    @classmethod
    def initial(cls, offsets: Numbers, created: Creations | None = None) -> StreamOffset:
        """Where a query begins: batch 0 may end here too, without a message."""
        return cls(offsets, offsets, created or {})

    @classmethod
    def from_json(cls, position: Mapping[str, Any]) -> StreamOffset:
        topics = {t: numbers for t, numbers in position.items() if t not in (STARTS, CREATED)}
        starts, created = position.get(STARTS, {}), position.get(CREATED, {})
        return cls(_numbers(topics), _numbers(starts), created)

    def to_json(self) -> dict[str, Any]:
        position: dict[str, Any] = numbers_to_json(self.ends)
        if self.starts:
            position[STARTS] = numbers_to_json(self.starts)
        if self.created:
            position[CREATED] = dict(sorted(self.created.items()))
        return position

    @property
    def is_initial(self) -> bool:
        """Whether nothing has been read up to here."""
        return self.starts == self.ends


def recreated_topics(position: StreamOffset, created: Creations) -> set[str]:
    """Topics of `position` that were deleted and made again since, by what is `created` now."""
    known = position.created
    return {topic for topic in known if created.get(topic, known[topic]) != known[topic]}


def ranges_between(start: StreamOffset, end: StreamOffset) -> list[OffsetRange]:
    """What the batch from `start` to `end` reads, in order; empty ranges are left out."""
    ranges = []
    for tp, until in sorted(end.ends.items()):
        begin = end.starts.get(tp, start.ends.get(tp, until))
        if begin < until:
            ranges.append(OffsetRange(*tp, begin, until))
    return ranges


def end_of_batch(
    start: StreamOffset,
    new: Numbers,
    latest: Numbers,
    limit: int | None,
    created: Creations | None = None,
) -> StreamOffset:
    """Where the batch from `start` ends.

    new      where partitions begin that `start` does not have, or has of a recreated topic
    latest   where the log ends, of all partitions to go on with; below the start nothing is read,
             and the stream goes on from there
    limit    about so many offsets at most; None: all there are
    created  topic → the transaction that made it
    """
    begins = {**start.ends, **new}
    begins = {tp: min(begins[tp], end) for tp, end in latest.items()}
    ends = dict(latest) if limit is None else rate_limit(begins, latest, limit)
    starts = {tp: begins[tp] for tp in latest if start.is_initial or tp in new}
    return StreamOffset(ends, starts, created or {})


def offsets_between(start: StreamOffset, end: StreamOffset) -> int:
    """How many offsets a batch from `start` to `end` spans."""
    return sum(of_partition.size for of_partition in ranges_between(start, end))


def _numbers(topics: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, offsets in topics.items()
        for partition, offset in offsets.items()
    }
