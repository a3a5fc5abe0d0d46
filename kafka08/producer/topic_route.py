"""TopicRoute: the queues of a topic's partitions, by current metadata."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from kafka08.client.metadata import PartitionInfo
from kafka08.producer.accumulator import PartitionQueue
from kafka08.structs import NO_LEADER


class TopicRoute:
    """A metadata update creates a new one; the queues stay the same objects. Only `turns` changes.

    partitions  all of the topic, by number
    queues      theirs, in the same order
    turns       an endless cycle of queues for records without a key: those of partitions with a
                leader, or all if none has one
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
