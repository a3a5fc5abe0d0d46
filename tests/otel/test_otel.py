"""Spans and instruments by the real SDK of OpenTelemetry, on a real cluster."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import KafkaError, RecordTooLarge
from kafka08.otel import TracedProducer, TracingInterceptor, metering, observe
from kafka08.otel.tracing import end
from kafka08.producer import (
    KafkaProducer,
    KafkaProducerConfig,
    ProducerRecord,
    RecordMetadata,
)
from kafka08.structs import NO_OFFSET
from tests.waiting import until

KEYS = {"auto.offset.reset": "earliest", "enable.auto.commit": False}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, level="0.10.2") as cluster:
        cluster.create_topic("pages", 2, 1)
        yield cluster


class Traces:
    """Spans that have ended, oldest first."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("test")

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


def traced(cluster: EmbeddedCluster, traces: Traces) -> TracedProducer:
    config = KafkaProducerConfig({"bootstrap.servers": cluster.bootstrap, "max.request.size": 9000})
    return TracedProducer(KafkaProducer(config), traces.tracer)


def test_a_record_has_a_span_until_it_is_acknowledged(cluster: EmbeddedCluster) -> None:
    """Below the caller's, with its place in the log; the record's own callback is called too."""
    responses: list[tuple[RecordMetadata | None, KafkaError | None]] = []
    traces = Traces()
    with traced(cluster, traces) as producer:
        with traces.tracer.start_as_current_span("request") as caller:
            future = producer.send(
                ProducerRecord("pages", b"x", partition=1),
                lambda metadata, error: responses.append((metadata, error)),
            )
        offset = future.result(10).offset
    [span] = traces.named("send pages")
    assert span.attributes is not None
    assert span.parent is not None
    assert caller.get_span_context().span_id == span.parent.span_id
    assert SpanKind.PRODUCER is span.kind
    assert ("kafka", "pages", "1", offset) == tuple(
        span.attributes[f"messaging.{name}"]
        for name in ("system", "destination.name", "destination.partition.id", "kafka.offset")
    )
    assert StatusCode.UNSET is span.status.status_code
    [(metadata, error)] = responses
    assert error is None
    assert metadata is not None
    assert offset == metadata.offset


def test_a_record_without_an_acknowledgement_has_no_offset() -> None:
    """With acks=0 there is no response that has it."""
    traces = Traces()
    end(traces.tracer.start_span("send pages"), RecordMetadata("pages", 1, NO_OFFSET), None)
    [span] = traces.named("send pages")
    assert {"messaging.destination.partition.id": "1"} == span.attributes


def test_a_record_that_fails_has_a_span_with_its_error(cluster: EmbeddedCluster) -> None:
    """Whether the future has the error, or send raises."""
    traces = Traces()
    with traced(cluster, traces) as producer:
        with pytest.raises(RecordTooLarge):
            producer.send(ProducerRecord("pages", b"x" * 10_000)).result(10)
        with pytest.raises(TypeError):
            producer.send(ProducerRecord("pages", 5))
    spans = traces.named("send pages")
    assert [StatusCode.ERROR] * 2 == [span.status.status_code for span in spans]
    kinds = [span.attributes["error.type"] for span in spans if span.attributes]
    assert ["RecordTooLarge", "TypeError"] == kinds


def test_polls_and_commits_have_spans(cluster: EmbeddedCluster) -> None:
    """The interceptor creates the spans, and messages pass unchanged."""
    traces = Traces()
    with traced(cluster, traces) as producer:
        for partition in range(2):
            producer.send(ProducerRecord("pages", b"polled", partition=partition)).result(10)
    config = KafkaConsumerConfig({"bootstrap.servers": cluster.bootstrap, "group.id": "g", **KEYS})
    with KafkaConsumer(config, interceptors=[TracingInterceptor(traces.tracer)]) as consumer:
        consumer.subscribe(["pages"])
        count = 0
        end = time.monotonic() + 60
        while count < 2 and time.monotonic() < end:
            count += len([m for m in consumer.poll(1.0) if m.message == b"polled"])
        consumer.commit()
        until(lambda: traces.named("commit pages"))
    polled = traces.named("poll pages")
    assert 2 == count
    assert {SpanKind.CONSUMER} == {span.kind for span in polled}
    total = sum(
        int(str(span.attributes["messaging.batch.message_count"]))
        for span in polled
        if span.attributes
    )
    assert total >= 2


def points(reader: InMemoryMetricReader) -> dict[tuple[str, frozenset[tuple[str, Any]]], float]:
    """(name, attributes) → value, of all points of a collection."""
    data = reader.get_metrics_data()
    return {
        (metric.name, frozenset((point.attributes or {}).items())): point.value
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint)
    }


def test_metrics_are_instruments(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of topics are not points of the total's, which a sum would count twice; what comes
    later is seen too."""
    monkeypatch.setattr(metering, "FRESH_S", 0.0)
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("test")
    traces = Traces()
    with traced(cluster, traces) as producer:
        observe("kafka.producer", producer.metrics, meter)
        for _ in range(2):
            producer.send(ProducerRecord("pages", b"x")).result(10)
        found = points(reader)
    of_client = ("messaging.client.id", "producer")
    total = {key: value for key, value in found.items() if key[0].endswith(".record_send_total")}
    assert total == {
        ("kafka.producer.record_send_total", frozenset([of_client])): 2.0,
        ("kafka.producer.topic.record_send_total", frozenset([of_client, ("topic", "pages")])): 2.0,
    }
    assert found["kafka.producer.buffer_total_bytes", frozenset([of_client])] > 0


def test_clients_of_one_prefix_are_told_apart(cluster: EmbeddedCluster) -> None:
    """By their client.id, else by a number; one that is dropped is observed no more, and its thread
    ends. (Two producers were points of one gauge with the same attributes: one was lost.)"""
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("test")
    made = [
        KafkaProducer(bootstrap_servers=cluster.bootstrap, client_id=name)
        for name in ("orders", "orders", "")
    ]
    for producer in made:
        observe("kafka.producer", producer.metrics, meter)

    def clients() -> set[str]:
        found = (dict(attributes) for name, attributes in points(reader) if "buffer_total" in name)
        return {attributes["messaging.client.id"] for attributes in found}

    assert clients() == {"orders", "orders-2", "producer"}
    threads = threading.active_count()
    made.pop(0)
    del producer
    with pytest.warns(ResourceWarning, match="unclosed <KafkaProducer"):
        gc.collect()
    until(lambda: threading.active_count() < threads)
    assert clients() == {"orders-2", "producer"}
    for producer in made:
        producer.close()


def test_many_records_have_one_span(cluster: EmbeddedCluster) -> None:
    """Until the last of them is acknowledged, also where they go to several partitions; with the
    error if one fails."""
    traces = Traces()
    with traced(cluster, traces) as producer:
        future = producer.send_many("pages", [b"x"] * 9, [b"%d" % n for n in range(9)])
        assert sum(len(stored.places) for stored in future.result(10)) == 9
        until(lambda: traces.named("send pages"))
        [span] = traces.named("send pages")
        assert span.attributes is not None
        assert span.attributes["messaging.batch.message_count"] == 9
        with pytest.raises(RecordTooLarge):
            producer.send_many("pages", [b"x" * 10_000]).result(10)
        with pytest.raises(ValueError, match="1 keys for 2 values"):
            producer.send_many("pages", [b"x", b"y"], [b"k"])
        producer.flush(10)
        assert len(producer.partitions_for("pages")) == 2
        producer.close(10)
    codes = [span.status.status_code for span in traces.named("send pages")]
    assert codes == [StatusCode.UNSET, StatusCode.ERROR, StatusCode.ERROR]
