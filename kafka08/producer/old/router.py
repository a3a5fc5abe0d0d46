"""Chooses the partition of a message. Pure, except for the random source.

Source: DefaultEventHandler.getPartition 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka08 import kernel
from kafka08.client.metadata import PartitionInfo
from kafka08.errors import LeaderNotAvailable, UnknownTopicOrPartition
from kafka08.producer.partitioners import DefaultPartitioner, Partitioner
from kafka08.structs import NO_LEADER

if TYPE_CHECKING:
    from random import Random


class Router:
    """The partitioner decides for messages with a key. The others of a topic all go to one
    partition, drawn among those with a leader and kept until `forget`, as in 0.8."""

    def __init__(self, partitioner: Partitioner, rng: Random) -> None:
        self._partitioner = partitioner
        self._rng = rng
        self._kept: dict[str, int] = {}

    def forget(self) -> None:
        """Draw again for messages without a key: metadata was refreshed."""
        self._kept.clear()

    def partition_of(self, topic: str, chosen_by: Any, partitions: Sequence[PartitionInfo]) -> int:
        """The partition of a message for `topic`, which has `partitions` (by ascending number).
        `chosen_by` is its partition key, else its key; None: a random partition.

        UnknownTopicOrPartition: there are none, or the partitioner returned another number.
        LeaderNotAvailable: a partition must be drawn and none has a leader. Errors of the
        partitioner are raised as they are.
        """
        if not partitions:
            raise UnknownTopicOrPartition(f"topic {topic} has no partitions")
        if chosen_by is None:
            partition = self._drawn(topic, partitions)
        else:
            partition = self._partitioner(chosen_by, len(partitions))
        if not 0 <= partition < len(partitions):
            raise UnknownTopicOrPartition(
                f"partition {partition} of topic {topic}, which has 0 to {len(partitions) - 1}"
            )
        return partition

    def partitions_of(
        self, chosen_by: Sequence[Any], partitions: Sequence[PartitionInfo]
    ) -> Sequence[int] | None:
        """`partition_of` for many messages of one topic, without a call for each: for whole numbers
        and the DefaultPartitioner. None otherwise."""
        if type(self._partitioner) is not DefaultPartitioner or not partitions:
            return None
        return kernel.int_partitions(chosen_by, len(partitions))

    def _drawn(self, topic: str, partitions: Sequence[PartitionInfo]) -> int:
        if topic not in self._kept:
            led = [info.partition for info in partitions if info.leader != NO_LEADER]
            if not led:
                raise LeaderNotAvailable(f"no partition of topic {topic} has a leader")
            self._kept[topic] = self._rng.choice(led)
        return self._kept[topic]
