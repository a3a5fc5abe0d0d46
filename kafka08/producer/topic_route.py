"""TopicRoute: the way from a topic to its partitions' queues, as the last metadata has it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from kafka08.client.metadata import PartitionInfo
from kafka08.producer.accumulator import PartitionQueue
from kafka08.structs import NO_LEADER


class TopicRoute:
    """Replaced by a new one at each metadata update; the queues stay the same objects. Only `turns`
    changes.

    partitions  all of the topic, by number
    queues      theirs, in the same order
    turns       the queues records without a key go to, in turn and without end: those of
                partitions that have a leader, or all if none has
    """

    __slots__ = ("partitions", "queues", "turns")

    def __init__(
        self, partitions: Sequence[PartitionInfo], queues: Sequence[PartitionQueue]
    ) -> None:
        assert partitions, "a topic without partitions has no route"
        self.partitions = partitions
        self.queues = queues
        led = [
            queue
            for info, queue in zip(partitions, queues, strict=True)
            if info.leader != NO_LEADER
        ]
        self.turns: Iterator[PartitionQueue] = itertools.cycle(led or queues)
