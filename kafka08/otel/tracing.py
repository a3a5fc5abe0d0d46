"""Spans of a KafkaProducer and of a KafkaConsumer, with the attributes of OpenTelemetry's semantic
conventions for messaging and Kafka."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, get_tracer

from kafka08.client.metadata import PartitionInfo
from kafka08.consumer.group.committer import Offsets
from kafka08.consumer.group.interceptors import Message
from kafka08.errors import KafkaError
from kafka08.lifecycle import Closeable
from kafka08.producer import KafkaProducer, ProducerRecord, RecordMetadata
from kafka08.producer.batch import Callback
from kafka08.producer.future import BatchFuture, RecordFuture
from kafka08.structs import NO_OFFSET

SCOPE: Final = "kafka08"
SYSTEM: Final = "messaging.system"
TOPIC: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
OFFSET: Final = "messaging.kafka.offset"
COUNT: Final = "messaging.batch.message_count"
OPERATION: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
ERROR: Final = "error.type"


def attributes_of(topic: str, operation: str, operation_type: str) -> dict[str, str]:
    return {
        SYSTEM: "kafka",
        TOPIC: topic,
        OPERATION: operation,
        OPERATION_TYPE: operation_type,
    }


class TracedProducer(Closeable):
    """A KafkaProducer whose sends have spans. It sends through `producer`, and closes it. A span,
    of a record or of all records of one call, lasts from the call to the last acknowledgement or
    error, and is a child of the caller's span. An interceptor cannot do that: an acknowledgement
    does not identify its record.

    tracer   None: from the application's tracer provider
    """

    def __init__(self, producer: KafkaProducer, tracer: Tracer | None = None) -> None:
        self.producer = producer
        self._tracer = tracer or get_tracer(SCOPE)

    def close(self, timeout: float | None = None) -> None:
        """Like KafkaProducer.close."""
        self.producer.close(timeout)

    def flush(self, timeout: float | None = None) -> None:
        """Like KafkaProducer.flush."""
        self.producer.flush(timeout)

    def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """Like KafkaProducer.partitions_for."""
        return self.producer.partitions_for(topic)

    def metrics(self) -> dict[str, dict[str, float]]:
        """Like KafkaProducer.metrics."""
        return self.producer.metrics()

    def send_many(
        self,
        topic: str,
        values: Sequence[Any],
        keys: Sequence[Any] | None = None,
        *,
        partition: int | None = None,
        timestamps: Sequence[int | None] | None = None,
    ) -> BatchFuture:
        """Like KafkaProducer.send_many; one span for all records."""
        return self._sent(
            topic,
            len(values),
            lambda: self.producer.send_many(
                topic, values, keys, partition=partition, timestamps=timestamps
            ),
        )

    def send_columns(self, topic: str, table: Any, *, partition: int | None = None) -> BatchFuture:
        """Like KafkaProducer.send_columns; one span for all records."""
        return self._sent(
            topic,
            table.num_rows,
            lambda: self.producer.send_columns(topic, table, partition=partition),
        )

    def _sent(self, topic: str, count: int, send: Callable[[], BatchFuture]) -> BatchFuture:
        span = self._span(topic)
        span.set_attribute(COUNT, count)
        try:
            future = send()
        except BaseException as error:
            fail(span, error)
            span.end()
            raise
        future.add_done_callback(lambda done: end(span, None, done.exception(0)))
        return future

    def _span(self, topic: str) -> Span:
        return self._tracer.start_span(
            f"send {topic}",
            kind=SpanKind.PRODUCER,
            attributes=attributes_of(topic, "send", "send"),
        )

    def send(self, record: ProducerRecord, callback: Callback | None = None) -> RecordFuture:
        """Like KafkaProducer.send."""
        span = self._span(record.topic)

        def on_completion(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            end(span, metadata, error)
            if callback is not None:
                callback(metadata, error)

        try:
            return self.producer.send(record, on_completion)
        except BaseException as error:
            fail(span, error)
            span.end()
            raise


def end(span: Span, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
    """End the span of a record, or of many (`metadata` None), with its result."""
    if metadata is not None:
        span.set_attribute(PARTITION, str(metadata.partition))
        if metadata.offset != NO_OFFSET:
            span.set_attribute(OFFSET, metadata.offset)
    if error is not None:
        fail(span, error)
    span.end()


def fail(span: Span, error: BaseException) -> None:
    span.set_attribute(ERROR, type(error).__name__)
    span.set_status(Status(StatusCode.ERROR, str(error)))


class TracingInterceptor:
    """An interceptor of a KafkaConsumer: makes a span for each topic of a poll with messages, and
    one for each topic of a commit. The spans tell what arrived and when, but have no duration.

    tracer   None: from the application's tracer provider
    """

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer or get_tracer(SCOPE)

    def on_consume(self, messages: list[Message]) -> list[Message]:
        for topic, count in Counter(message.topic for message in messages).items():
            self._tell(topic, "poll", "receive", {COUNT: count})
        return messages

    def on_commit(self, offsets: Offsets) -> None:
        for topic, count in Counter(tp.topic for tp in offsets).items():
            self._tell(topic, "commit", "settle", {"kafka08.partitions": count})

    def close(self) -> None:
        """Does nothing: the application owns the spans."""

    def _tell(self, topic: str, operation: str, operation_type: str, more: dict[str, Any]) -> None:
        attributes = {**attributes_of(topic, operation, operation_type), **more}
        kind = SpanKind.CONSUMER if operation_type == "receive" else SpanKind.CLIENT
        self._tracer.start_span(f"{operation} {topic}", kind=kind, attributes=attributes).end()
