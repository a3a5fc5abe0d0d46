"""Which partition a message goes to. Pure, but for the dice.

Source: DefaultEventHandler.getPartition 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka08.client.metadata import PartitionInfo
from kafka08.errors import LeaderNotAvailable, UnknownTopicOrPartition
from kafka08.producer.partitioners import Partitioner
from kafka08.structs import NO_LEADER

if TYPE_CHECKING:
    from random import Random


class Router:
    """Keyed messages go where the partitioner says. The others of a topic all go to one partition,
    drawn among those that have a leader and kept until `forget`, as 0.8 does."""

    def __init__(self, partitioner: Partitioner, rng: Random) -> None:
        self._partitioner = partitioner
        self._rng = rng
        self._kept: dict[str, int] = {}

    def forget(self) -> None:
        """Draw anew for messages without a key: metadata was refreshed."""
        self._kept.clear()

    def partition_of(self, topic: str, chosen_by: Any, partitions: Sequence[PartitionInfo]) -> int:
        """The partition of a message for `topic`, which has `partitions` (by ascending number).
        `chosen_by` is its partition key, else its key; None leaves the choice to chance.

        UnknownTopicOrPartition: there are none, or the partitioner's answer is not among them.
        LeaderNotAvailable: a partition must be drawn and none has a leader. What the partitioner
        raises passes through.
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

    def _drawn(self, topic: str, partitions: Sequence[PartitionInfo]) -> int:
        if topic not in self._kept:
            led = [info.partition for info in partitions if info.leader != NO_LEADER]
            if not led:
                raise LeaderNotAvailable(f"no partition of topic {topic}")
            self._kept[topic] = self._rng.choice(led)
        return self._kept[topic]
