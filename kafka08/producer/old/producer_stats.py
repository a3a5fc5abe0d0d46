"""ProducerStats: what became of the old producer's messages, by the names of 0.8.

Batches and requests are counted, never single messages. Sources: kafka.producer.ProducerTopicStats,
ProducerStats and ProducerRequestStats 0.8.2.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from kafka08.client.yammer_metrics import RequestMetrics, Values, meter_values
from kafka08.metrics import Rate
from kafka08.runtime import ClientRuntime

TOPIC_GROUP: Final = "ProducerTopicMetrics"
REQUEST_GROUP: Final = "ProducerRequestMetrics"


class TopicStats:
    """Counters of one topic, or of all."""

    __slots__ = ("bytes", "dropped", "messages")

    def __init__(self) -> None:
        self.messages, self.bytes, self.dropped = Rate(), Rate(), Rate()

    def values(self, now: float) -> Values:
        """Counts and rates by the names of the meters in JMX."""
        return {
            **meter_values("MessagesPerSec", self.messages, now),
            **meter_values("BytesPerSec", self.bytes, now),
            **meter_values("DroppedMessagesPerSec", self.dropped, now),
        }


class ProducerStats:
    """Written by the thread that sends, `dropped` by those that enqueue; read by any."""

    def __init__(self, runtime: ClientRuntime) -> None:
        self._runtime = runtime
        self._all = TopicStats()
        self._topics: dict[str, TopicStats] = {}
        self._serialization_errors, self._resends, self._failed_sends = Rate(), Rate(), Rate()
        self._all_requests = new_request_metrics()
        self._requests: dict[str, RequestMetrics] = {}

    def now(self) -> float:
        """For `requested`: monotonic seconds."""
        return self._runtime.monotonic()

    def taken(self, topics: Sequence[str], distinct: int) -> None:
        """Messages of these topics, of which `distinct` differ, are to be sent."""
        now = self.now()
        counts = {topics[0]: len(topics)} if distinct == 1 else Counter(topics)
        for topic, count in counts.items():
            for stats in self._of(topic):
                stats.messages.add(count, now)

    def dropped(self, topic: str) -> None:
        """The queue had no room for a message."""
        now = self.now()
        for stats in self._of(topic):
            stats.dropped.add(1, now)

    def built(self, topic: str, size: int) -> None:
        """A message set of this size is about to be sent; counts again for a retry."""
        now = self.now()
        for stats in self._of(topic):
            stats.bytes.add(size, now)

    def requested(self, broker: str, size: int, began: float) -> None:
        """A request with `size` bytes of message sets, which began at `began`, was answered (with
        acks=0: written)."""
        now = self.now()
        of_broker = self._requests.setdefault(broker, new_request_metrics())
        for metrics in (self._all_requests, of_broker):
            metrics.add(now - began, size, now)

    def not_serialized(self) -> None:
        """An encoder refused a message."""
        self._serialization_errors.add(1, self.now())

    def resent(self) -> None:
        """Some of a batch is tried again."""
        self._resends.add(1, self.now())

    def failed(self) -> None:
        """Some of a batch was given up."""
        self._failed_sends.add(1, self.now())

    def forget_others(self, topics: Collection[str]) -> None:
        """All but these have no counts of their own until they are used again."""
        for topic in [topic for topic in list(self._topics) if topic not in topics]:
            self._topics.pop(topic, None)

    def _of(self, topic: str) -> tuple[TopicStats, TopicStats]:
        return self._all, self._topics.setdefault(topic, TopicStats())

    def values(self) -> dict[str, Values]:
        """Values by group and name; groups are also `<group>.<topic>`, `<group>.<host>:<port>`."""
        now = self.now()
        found = {
            TOPIC_GROUP: self._all.values(now),
            "ProducerStats": {
                **meter_values("SerializationErrorsPerSec", self._serialization_errors, now),
                **meter_values("ResendsPerSec", self._resends, now),
                **meter_values("FailedSendsPerSec", self._failed_sends, now),
            },
            REQUEST_GROUP: self._all_requests.values(now),
        }
        for topic, stats in list(self._topics.items()):
            found[f"{TOPIC_GROUP}.{topic}"] = stats.values(now)
        for broker, requests in list(self._requests.items()):
            found[f"{REQUEST_GROUP}.{broker}"] = requests.values(now)
        return found


def new_request_metrics() -> RequestMetrics:
    return RequestMetrics("ProducerRequestRateAndTimeMs", "ProducerRequestSize")
