"""TopicWaits: waits until this broker's metadata has new topics, or no longer has deleted ones.

Source: kafka.server.DelayedCreateTopics, DelayedDeleteTopics 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from kafka08.broker.cluster.metadata_cache import MetadataCache
from kafka08.broker.purgatory.purgatory import DelayedOperation, KeyedPurgatory, WhenClosed
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.timer import Timer
from kafka08.structs import TopicPartition

IsDone = Callable[[str], bool]


class TopicWait(DelayedOperation):
    """Completes when `is_done` holds for each of its topics."""

    __slots__ = ("_is_done", "_topics")

    def __init__(self, topics: Sequence[str], is_done: IsDone, done: Callable[[], object]) -> None:
        self._topics = topics
        self._is_done = is_done
        self.complete = done

    def is_satisfied(self) -> bool:
        return all(map(self._is_done, self._topics))


class TopicWaits:
    """The waits of one broker, by topic."""

    def __init__(self, runtime: BrokerRuntime, timer: Timer, cache: MetadataCache) -> None:
        self._runtime = runtime
        self._waits = KeyedPurgatory(timer)
        self._cache = cache

    def topic_updated(self, topic: str) -> None:
        """The controller sent an update of a topic. Never switches."""
        if topic in self._waits:
            self._waits.check_and_complete(topic)

    def await_leaders(
        self, partitions: Mapping[str, Collection[int]], timeout_ms: int, when_closed: WhenClosed
    ) -> set[str]:
        """Wait until each of these partitions has a live leader, or the client is gone; returns the
        topics without one after `timeout_ms`. Switches."""

        def has_leaders(topic: str) -> bool:
            return all(
                (state := self._cache.partition_state(TopicPartition(topic, number))) is not None
                and self._cache.is_alive(state.leader)
                for number in partitions[topic]
            )

        return self._await(list(partitions), has_leaders, timeout_ms, when_closed)

    def await_absence(
        self, topics: Sequence[str], timeout_ms: int, when_closed: WhenClosed
    ) -> set[str]:
        """Wait until the controller has removed them from the metadata, or the client is gone;
        returns those that still exist after `timeout_ms`. Switches."""
        return self._await(topics, lambda topic: topic not in self._cache, timeout_ms, when_closed)

    def _await(
        self, topics: Sequence[str], is_done: IsDone, timeout_ms: int, when_closed: WhenClosed
    ) -> set[str]:
        if topics and timeout_ms > 0:
            over = self._runtime.event()
            wait = TopicWait(topics, is_done, over.set)
            if not self._waits.add(wait, topics, timeout_ms):
                when_closed(over.set)
            over.wait()
            self._waits.abandon(wait)
        # 0.10: with a timeout of 0 all topics are reported, done or not.
        return {topic for topic in topics if timeout_ms <= 0 or not is_done(topic)}
