"""Planted defects of producers, and of what all clients share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.errors import KafkaError
from kafka08.producer.accumulator import RecordAccumulator
from kafka08.producer.batch import RecordBatch
from kafka08.producer.future import BatchFuture
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.producer.old.event_handler import EventHandler, Failures
from kafka08.producer.partition_queue import PartitionQueue
from kafka08.producer.sender import Sender
from kafka08.simulation import writers
from kafka08.simulation.plan import Fault
from kafka08.structs import NO_OFFSET, Broker
from tests.simulation.planted.defect import planted


@planted(
    "a lost connection counts as an acknowledgement",
    "clients",
    "lost",
    (Fault.RESET,),
    seed=1,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def stored(self: Sender, sent: Any, error: Any) -> None:
        for parts in (sent.context or {}).values():
            self._stored(parts, 0)

    patch.setattr(Sender, "_lost_one", stored)


@planted(
    "what is sent again is overtaken",
    "producers",
    "out of order",
    (Fault.RESET, Fault.KILL),
    seed=0,
    needs=lambda plan: plan.in_flight == 1 and plan.retries > 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def at_five(properties: dict[str, object]) -> KafkaProducerConfig:
        key = "max.in.flight.requests.per.connection"
        return KafkaProducerConfig({**properties, key: 5})

    patch.setattr(writers, "KafkaProducerConfig", at_five)


@planted(
    "batches that wait too long are never completed",
    "KAFKA-1788",
    "producers to end",
    (Fault.KILL,),
    seed=0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RecordAccumulator, "take_overdue", lambda *_, **__: [])
    patch.setattr(RecordAccumulator, "put_back", lambda *_: None)


@planted(
    "the memory of a batch that failed is not freed",
    "producers",
    "bytes of its buffer",
    (Fault.KILL,),
    seed=2,
    needs=lambda plan: plan.new_producers > 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    complete = RecordAccumulator.complete

    def leaking(
        self: RecordAccumulator,
        batches: Iterable[RecordBatch],
        base_offset: int = NO_OFFSET,
        error: KafkaError | None = None,
        *rest: Any,
        **options: Any,
    ) -> None:
        batches = list(batches)
        if error is not None:
            for batch in batches:
                batch.reserved = 0
        complete(self, batches, base_offset, error, *rest, **options)

    patch.setattr(RecordAccumulator, "complete", leaking)


@planted(
    "of a list only the last refused partition is reported as failed",
    "producers",
    "its producer was told is stored",
    (Fault.KILL, Fault.SUSPEND),
    seed=1,
    settings={"old_producers": 1, "brokers": 2, "replication_factor": 2, "partitions": 4},
)
def _(patch: pytest.MonkeyPatch) -> None:
    read_response = EventHandler._read_response

    def last_one(self: EventHandler, broker: Broker, connection: Any, batch: Any) -> Failures:
        return read_response(self, broker, connection, batch)[-1:]

    patch.setattr(EventHandler, "_read_response", last_one)


@planted(
    "a part of a list that is not stored has no error",
    "producers",
    "lost",
    (Fault.KILL,),
    seed=3,
    needs=lambda plan: plan.new_producers > 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def without_last(self: BatchFuture, timeout: float | None = None) -> Any:
        return failures(self, timeout)[:-1]

    failures = BatchFuture.failures
    patch.setattr(BatchFuture, "failures", without_last)


@planted(
    "a batch is sent again more often than configured",
    "producers",
    "repeated",
    (Fault.RESET, Fault.KILL),
    seed=10,
    needs=lambda plan: plan.retries == 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    failed = Sender._failed

    def once_more(self: Sender, parts: Sequence[RecordBatch], error: KafkaError) -> None:
        settings = self._settings
        self._settings = replace(settings, plain=settings.plain._replace(retries=1))
        try:
            failed(self, parts, error)
        finally:
            self._settings = settings

    patch.setattr(Sender, "_failed", once_more)


@planted(
    "a batch waits for no memory",
    "producers",
    "of its buffer",
    (Fault.KILL,),
    seed=1,
    needs=lambda plan: plan.new_producers > 0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def reserve(self: RecordAccumulator, _: PartitionQueue, wanted: int, __: float) -> bool:
        self._free -= wanted
        return False

    patch.setattr(RecordAccumulator, "_reserve", reserve)


@planted(
    "a closed client keeps its connections",
    "clients",
    "has stopped, but",
    (Fault.KILL,),
    seed=0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterClient, "close", lambda _: None)
