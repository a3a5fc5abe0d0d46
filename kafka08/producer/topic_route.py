"""TopicRoute: the queues of a topic's partitions, by current metadata."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kafka08 import kernel
from kafka08.client.metadata import PartitionInfo
from kafka08.producer.partition_queue import PartitionQueue
from kafka08.producer.sticky_turns import StickyTurns
from kafka08.structs import NO_LEADER

if TYPE_CHECKING:
    from random import Random


class TopicRoute(kernel.RecordRoute):
    """A metadata update creates a new one; the queues stay the same objects. Only `turns` changes.

    partitions  all of the topic, by number
    queues      theirs, in the same order
    by_number   the same by the number of the partition
    available   the queues of partitions with a leader; all if none has one
    turns       the available ones without an end, for records without a key. It begins at a random
                one, so that short-lived producers use all of them
    """

    __slots__ = ("available", "by_number", "partitions")

    available: list[PartitionQueue]
    queues: tuple[PartitionQueue, ...]
    turns: Iterator[PartitionQueue]

    def __init__(
        self,
        partitions: Sequence[PartitionInfo],
        queues: Sequence[PartitionQueue],
        random: Random,
        former: TopicRoute | None = None,
        *,
        sticky_bytes: int | None = None,
    ) -> None:
        """`former`: the route by older metadata, whose turns go on if they have the same queues.
        `sticky_bytes`: batch.size, where a turn is a batch; None: a record."""
        assert partitions, "a topic without partitions has no route"
        led = [
            queue
            for info, queue in zip(partitions, queues, strict=True)
            if info.leader != NO_LEADER
        ]
        self.available = led or list(queues)
        turns: Iterator[PartitionQueue]
        if former is not None and former.available == self.available:
            turns = former.turns
        else:
            first = random.randrange(len(self.available))
            turns = itertools.cycle(self.available[first:] + self.available[:first])
            if sticky_bytes is not None:
                turns = StickyTurns(turns, sticky_bytes)
        self.by_number = {info.partition: q for info, q in zip(partitions, queues, strict=True)}
        numbers = [info.partition for info in partitions]
        super().__init__(queues, turns, is_numbered=numbers == [*range(len(numbers))])
        self.partitions = partitions
