"""TopicRoute: the queues of a topic's partitions, by current metadata."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from kafka08 import kernel
from kafka08.client.metadata import PartitionInfo
from kafka08.producer.accumulator import PartitionQueue
from kafka08.structs import NO_LEADER


class TopicRoute(kernel.RecordRoute):
    """A metadata update creates a new one; the queues stay the same objects. Only `turns` changes.

    partitions  all of the topic, by number
    queues      theirs, in the same order
    turns       an endless cycle of queues for records without a key: those of partitions with a
                leader, or all if none has one
    """

    __slots__ = ("partitions",)

    queues: tuple[PartitionQueue, ...]
    turns: Iterator[PartitionQueue]

    def __init__(
        self, partitions: Sequence[PartitionInfo], queues: Sequence[PartitionQueue]
    ) -> None:
        assert partitions, "a topic without partitions has no route"
        led = [
            queue
            for info, queue in zip(partitions, queues, strict=True)
            if info.leader != NO_LEADER
        ]
        numbers = [info.partition for info in partitions]
        super().__init__(
            queues, itertools.cycle(led or queues), is_numbered=numbers == [*range(len(numbers))]
        )
        self.partitions = partitions
