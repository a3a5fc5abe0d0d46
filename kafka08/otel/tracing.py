"""Spans of a KafkaProducer and of a KafkaConsumer, with the attributes of OpenTelemetry's semantic
conventions for messaging and Kafka."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, get_tracer

from kafka08.consumer.group.committer import Offsets
from kafka08.consumer.group.interceptors import Message
from kafka08.errors import KafkaError
from kafka08.lifecycle import Closeable
from kafka08.producer import KafkaProducer, ProducerRecord, RecordMetadata
from kafka08.producer.batch import Callback
from kafka08.producer.future import RecordFuture
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
    """Sends through `producer`, and closes it. The span of a record lasts from `send` to its
    acknowledgement or error, and is a child of the caller's span. An interceptor cannot do that:
    an acknowledgement does not identify its record.

    tracer   None: from the application's tracer provider
    """

    def __init__(self, producer: KafkaProducer, tracer: Tracer | None = None) -> None:
        self.producer = producer
        self._tracer = tracer or get_tracer(SCOPE)

    def close(self) -> None:
        self.producer.close()

    def metrics(self) -> dict[str, dict[str, float]]:
        return self.producer.metrics()

    def send(self, record: ProducerRecord, callback: Callback | None = None) -> RecordFuture:
        """Like KafkaProducer.send."""
        span = self._tracer.start_span(
            f"send {record.topic}",
            kind=SpanKind.PRODUCER,
            attributes=attributes_of(record.topic, "send", "send"),
        )

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
    """End the span of a record with its result."""
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
