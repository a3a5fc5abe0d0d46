"""The positions of a stream in Spark's checkpoint, and the end of a batch. Pure.

A position is JSON, `{"topic":{"0":23}}`, as Spark's own connector writes it: the next offset of
each partition. Spark keeps the *end* of a batch before it runs, and takes the end of the batch
before as its start; but the checkpoint lacks the starts of batch 0, and of partitions that a later
batch is the first to have. A new look-up after a failure might return other offsets ("latest"
surely does), and messages would be lost or duplicated. So the end of a batch also has the starts
that no earlier end has, under a key that no topic can have:

    {"t":{"0":105},"$starts":{"t":{"0":100}}}

So the ends of two batches suffice to read the later one again exactly.

With ZooKeeper's address, the end of a batch also has the transaction that created each topic, under
another such key, `"$created":{"t":4294967333}`: offsets of a topic that was deleted and recreated
mean other messages.

With brokers from 2.1 on it has the epoch of a leader that had the messages before it, in the form
of the offsets: `"$epochs":{"t":{"0":4}}`. After an unclean election a log may have other messages
there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any, Final

from kafka08.arrow.option_text import numbers_to_json
from kafka08.arrow.plan import rate_limit
from kafka08.arrow.ranges import OffsetRange
from kafka08.errors import ConfigError
from kafka08.structs import NO_LEADER_EPOCH, TopicPartition

Numbers = Mapping[TopicPartition, int]
Creations = Mapping[str, int]
STARTS: Final = "$starts"
CREATED: Final = "$created"
EPOCHS: Final = "$epochs"
OWN_KEYS: Final = (STARTS, CREATED, EPOCHS)


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """ends     the next offset of each partition
    starts   starts of this batch, for partitions that the one before did not have
    created  topic → the transaction that created it, as far as known
    epochs   the epoch of a leader that had the messages before an end, as far as known
    """

    ends: Numbers
    starts: Numbers = field(default_factory=dict)
    created: Creations = field(default_factory=dict)
    epochs: Numbers = field(default_factory=dict)

    @classmethod
    def initial(cls, offsets: Numbers, created: Creations | None = None) -> StreamOffset:
        """The start of a query: batch 0 may also end here, without a message."""
        return cls(offsets, offsets, created or {})

    @classmethod
    def from_json(cls, position: Mapping[str, Any]) -> StreamOffset:
        """ConfigError if it is not a position of this source or of Spark's own."""
        topics = {t: numbers for t, numbers in position.items() if t not in OWN_KEYS}
        starts, created = position.get(STARTS, {}), position.get(CREATED, {})
        epochs = position.get(EPOCHS, {})
        try:
            return cls(_numbers(topics), _numbers(starts), dict(created), _numbers(epochs))
        except (AttributeError, TypeError, ValueError):
            raise ConfigError(
                f"the checkpoint has {json.dumps(position)}, which are no offsets of topics. Give "
                "the query a checkpointLocation of its own"
            ) from None

    def to_json(self) -> dict[str, Any]:
        position: dict[str, Any] = numbers_to_json(self.ends)
        if self.starts:
            position[STARTS] = numbers_to_json(self.starts)
        if self.created:
            position[CREATED] = dict(sorted(self.created.items()))
        if self.epochs:
            position[EPOCHS] = numbers_to_json(self.epochs)
        return position

    @property
    def is_initial(self) -> bool:
        """Whether nothing has been read up to here."""
        return self.starts == self.ends


def offset_in_progress(source: Any, name: str) -> StreamOffset | None:
    """The startOffset, endOffset or latestOffset, by `name`, that Spark reports of a source of a
    query; None for another source. Spark's own connector, `KafkaV2[…]`, has the same JSON."""
    if source.description.startswith("Kafka"):
        return None
    text: str | None = getattr(source, name)
    try:
        position = json.loads(text or "null")
        return StreamOffset.from_json(position) if isinstance(position, dict) else None
    except (ValueError, ConfigError):
        return None


def recreated_topics(position: StreamOffset, created: Creations) -> set[str]:
    """Topics of `position` that were recreated since, according to `created`, the state now."""
    known = position.created
    return {topic for topic in known if created.get(topic, known[topic]) != known[topic]}


def to_compare(
    position: StreamOffset, partitions: Iterable[TopicPartition], now: Numbers | None = None
) -> dict[TopicPartition, tuple[int, int]]:
    """The end and its epoch of those of `partitions` that may have other messages before it since:
    whose epoch `now` is another one; None: all that have one."""
    return {
        tp: (position.ends[tp], epoch)
        for tp in partitions
        if (epoch := position.epochs.get(tp)) is not None
        and (now is None or now.get(tp, epoch) != epoch)
    }


def ranges_between(start: StreamOffset, end: StreamOffset) -> list[OffsetRange]:
    """The ranges of the batch from `start` to `end`, in order, without empty ones."""
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
    epochs: Numbers | None = None,
) -> StreamOffset:
    """The end of the batch from `start`.

    new      starts of partitions that `start` does not have, or that belong to a recreated topic
    latest   log ends of all partitions with which the stream continues; with one below the start
             nothing is read, and the stream continues from there
    limit    approximate maximum number of offsets; None: all
    created  topic → the transaction that created it
    epochs   of leaders that have the messages before these log ends
    """
    begins = {**start.ends, **new}
    begins = {tp: min(begins[tp], end) for tp, end in latest.items()}
    ends = dict(latest) if limit is None else rate_limit(begins, latest, limit)
    starts = {tp: begins[tp] for tp in latest if start.is_initial or tp in new}
    known = {
        tp: epoch for tp, epoch in (epochs or {}).items() if tp in ends and epoch != NO_LEADER_EPOCH
    }
    return StreamOffset(ends, starts, created or {}, known)


def offsets_between(start: StreamOffset, end: StreamOffset) -> int:
    """How many offsets a batch from `start` to `end` spans."""
    return sum(of_partition.size for of_partition in ranges_between(start, end))


def _numbers(topics: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): index(offset)
        for topic, offsets in topics.items()
        for partition, offset in offsets.items()
    }
