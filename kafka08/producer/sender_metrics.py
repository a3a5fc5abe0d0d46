"""SenderMetrics: a producer's metrics, under Java's names.

The sender counts batches and requests, never single records. Rates and means cover the last 30 to
60 seconds. Source: Sender.SenderMetrics and RecordAccumulator 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka08.metrics import Mean, Rate
from kafka08.producer.batch import RecordBatch

Values = dict[str, float]


class TopicMetrics:
    """The records of one topic."""

    __slots__ = ("byte", "error", "retry", "send")

    def __init__(self) -> None:
        self.send, self.byte, self.error, self.retry = Rate(), Rate(), Rate(), Rate()

    def values(self, now: float) -> Values:
        """A rate per second and a total for each of the four counts, by Java's names."""
        rates = {
            "record-send": self.send,
            "byte": self.byte,
            "record-error": self.error,
            "record-retry": self.retry,
        }
        found: Values = {}
        for name, rate in rates.items():
            found[f"{name}-rate"] = rate.per_second(now)
            found[f"{name}-total"] = rate.total
        return found


class SenderMetrics:
    """Written by the sender's task, read by any. Arguments are monotonic seconds, results are in
    ms, as in Java."""

    def __init__(self) -> None:
        self._all = TopicMetrics()
        self._topics: dict[str, TopicMetrics] = {}
        self._requests = Rate()
        self._records_per_request = Mean()
        self._batch_bytes = Mean()
        self._queue_ms = Mean()
        self._latency_ms = Mean()

    def sent(
        self, drained: Iterable[tuple[Sequence[RecordBatch], Sequence[int]]], now: float
    ) -> None:
        """A request is in flight: for each partition its batches, at least one, with the sizes in
        bytes of their sets."""
        all_records = 0
        all_sizes: list[int] = []
        waits_ms: list[float] = []
        for parts, sizes in drained:
            records = sum([batch.count for batch in parts])
            topic = self._of_topic(parts[0])
            topic.send.add(records, now)
            topic.byte.add(sum(sizes), now)
            all_records += records
            all_sizes += sizes
            waits_ms += [(now - batch.created) * 1000 for batch in parts]
        self._all.send.add(all_records, now)
        self._all.byte.add(sum(all_sizes), now)
        self._batch_bytes.add_all(all_sizes, now)
        self._queue_ms.add_all(waits_ms, now)
        self._requests.add(1, now)
        self._records_per_request.add(all_records, now)

    def on_response(self, seconds: float, now: float) -> None:
        """A response arrived `seconds` after its request."""
        self._latency_ms.add(seconds * 1000, now)

    def retried(self, batches: Iterable[RecordBatch], now: float) -> None:
        """These batches will be sent again."""
        for batch in batches:
            self._all.retry.add(batch.count, now)
            self._of_topic(batch).retry.add(batch.count, now)

    def failed(self, batches: Iterable[RecordBatch], now: float) -> None:
        """These batches were given up."""
        for batch in batches:
            self._all.error.add(batch.count, now)
            self._of_topic(batch).error.add(batch.count, now)

    def _of_topic(self, batch: RecordBatch) -> TopicMetrics:
        topic = batch.tp.topic
        metrics = self._topics.get(topic)
        if metrics is None:
            metrics = self._topics[topic] = TopicMetrics()
        return metrics

    def forget(self, topics: Iterable[str]) -> None:
        """These have no metrics until they are used again."""
        for topic in topics:
            self._topics.pop(topic, None)

    def values(self, now: float) -> Values:
        """The metrics of all topics together."""
        return {
            **self._all.values(now),
            "request-rate": self._requests.per_second(now),
            "request-total": self._requests.total,
            "records-per-request-avg": self._records_per_request.mean(now),
            "batch-size-avg": self._batch_bytes.mean(now),
            "batch-size-max": self._batch_bytes.largest(now),
            "record-queue-time-avg": self._queue_ms.mean(now),
            "record-queue-time-max": self._queue_ms.largest(now),
            "request-latency-avg": self._latency_ms.mean(now),
            "request-latency-max": self._latency_ms.largest(now),
        }

    def topics(self, now: float) -> dict[str, Values]:
        """topic → its values."""
        return {topic: metrics.values(now) for topic, metrics in list(self._topics.items())}
