"""Purgatories: the Fetch and Produce requests that wait at one broker, and which of them an event
of a partition completes.

    wake, wake_all       a change of the HW or of the leadership
    wake_fetches         an append, which alone completes no delayed produce
    wake_followers       an append, for the fetches of followers alone
    follower_fetched     the fetch offsets of a follower

Source: ReplicaManager.tryCompleteDelayedFetch and tryCompleteDelayedProduce 0.10.2.2, where one
purgatory has the fetches of consumers and followers, and one all produces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kafka08.broker.purgatory.purgatory import KeyedPurgatory, Purgatory, SmallPurgatory
from kafka08.broker.replica.partition import Partition
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.timer import Timer
from kafka08.structs import TopicPartition


class Purgatories:
    """All delayed operations of one broker, by partition. Nothing here switches.

    fetches            of consumers: a move of the HW completes them
    follower_fetches   of followers: an append completes them, at the end of its turn
    produces           with acks -1: a move of the HW completes them
    counted_produces   with acks above 1: a follower's fetch completes them
    deletions          of records: followers' fetches with a new log start complete them
    """

    def __init__(self, runtime: BrokerRuntime, timer: Timer) -> None:
        self.fetches: Purgatory = KeyedPurgatory(timer)
        self.follower_fetches: Purgatory = SmallPurgatory(timer)
        self.produces: Purgatory = KeyedPurgatory(timer)
        self.counted_produces: Purgatory = KeyedPurgatory(timer)
        self.deletions: Purgatory = KeyedPurgatory(timer)
        self._runtime = runtime
        self._grown: dict[TopicPartition, None] = {}
        """Partitions that changed in this turn, for `_complete_follower_fetches`."""

    def for_fetch(self, *, from_follower: bool) -> Purgatory:
        """Where a Fetch request waits."""
        return self.follower_fetches if from_follower else self.fetches

    def for_produce(self, required_acks: int) -> Purgatory:
        """Where a Produce request waits, with acks -1 or above 1."""
        return self.produces if required_acks < 0 else self.counted_produces

    def wake(self, topic_partition: TopicPartition) -> None:
        """Complete the operations that are satisfied after an append, or after a change of the HW
        or of the leadership; those of followers at the end of this turn."""
        self.wake_all((topic_partition,))

    def wake_all(self, topic_partitions: Collection[TopicPartition]) -> None:
        """`wake` for all of these."""
        self.wake_fetches(topic_partitions)
        for waits in (self.produces, self.counted_produces, self.deletions):
            if waits.count:
                waits.check_and_complete_all(topic_partitions)

    def wake_fetches(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Complete the fetches that are satisfied after an append, which alone completes no delayed
        produce."""
        if self.follower_fetches.count:
            self.wake_followers(topic_partitions)
        if self.fetches.count:
            self.fetches.check_and_complete_all(topic_partitions)

    def wake_deletions(self, partitions: Iterable[Partition]) -> None:
        """Complete the deletions that are satisfied after a fetch of a follower of these, or after
        a change of the live brokers."""
        if self.deletions.count:
            self.deletions.check_and_complete_all(one.topic_partition for one in partitions)

    def wake_followers(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Complete the fetches of followers that are satisfied, at the end of this turn."""
        if not self._grown:
            self._runtime.call_soon(self._complete_follower_fetches)
        self._grown.update(dict.fromkeys(topic_partitions))

    def _complete_follower_fetches(self) -> None:
        """At the end of a turn of the event loop. Each response has what all connections appended
        in that turn; a response for each append would cost three brokers a whole Fetch each."""
        grown, self._grown = self._grown, {}
        self.follower_fetches.check_and_complete_all(grown)

    def follower_fetched(
        self, moved: Collection[TopicPartition], raised: Collection[TopicPartition]
    ) -> bool:
        """After a follower's fetch that moved its log end in the partitions `moved`, and the HW of
        those in `raised`. True if it completed a delayed produce."""
        acknowledged = 0
        if raised:
            if self.fetches.count:
                self.fetches.check_and_complete_all(raised)
            acknowledged = self.produces.check_and_complete_all(raised)
        if moved and self.counted_produces.count:
            acknowledged += self.counted_produces.check_and_complete_all(moved)
        return acknowledged > 0
