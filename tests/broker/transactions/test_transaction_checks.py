"""Produce with a transactional id: which batches a leader takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.broker.requests.handlers import produce as handler
from kafka08.format.batch import Batch, Message
from kafka08.format.v2 import V2
from kafka08.kernel.types import CREATE_TIME
from kafka08.log.log import Log
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.record_batches import compress
from kafka08.structs import TRANSACTIONS_TOPIC
from tests.broker.transactions.coordinator import Coordinator


@pytest.fixture
def coordinator(tmp_path: Path) -> Coordinator:
    coordinator = Coordinator(tmp_path)
    coordinator.init()
    return coordinator


def batch(now_ms: int, *, producer_id: int = 0, epoch: int = 0, sequence: int = 0) -> bytes:
    """A transactional batch of one message."""
    head = Batch(
        *(2, 0, 0, 0, 0, 0, CREATE_TIME, now_ms, 0),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    message = Message(0, memoryview(b"k"), memoryview(b"v"), now_ms, CREATE_TIME)
    return V2().build([message], 0, compress, like=head)


def produce(
    coordinator: Coordinator,
    *numbers: int,
    transactional_id: str | None = "t",
    producer_id: int = 0,
    epoch: int = 0,
    sequence: int = 0,
) -> list[int]:
    now_ms = coordinator.runtime.time_ms()
    data = batch(now_ms, producer_id=producer_id, epoch=epoch, sequence=sequence)
    topic = ProduceTopic("d", [ProducePartition(number, bytearray(data)) for number in numbers])
    request = ProduceRequest(-1, 1000, [topic], version=3, transactional_id=transactional_id)
    response = coordinator.client.call(request)
    return [one.error_code for one in response.topics[0].partitions]


def test_a_batch_belongs_to_a_transaction(coordinator: Coordinator) -> None:
    """Of its producer, in its partition: 48 before it begins, for a partition that is not in it,
    for another producer, without a transactional id, and after its end, until the next."""
    assert [48] == produce(coordinator, 0)
    coordinator.add(0)
    assert [0, 48] == produce(coordinator, 0, 1)
    assert [48] == produce(coordinator, 0, producer_id=5)
    assert [0] == produce(coordinator, 0, sequence=1, transactional_id=None)
    coordinator.end()
    assert [48] == produce(coordinator, 0, sequence=2)
    coordinator.add(0, 1)
    assert [48] == produce(coordinator, 1, transactional_id=None)
    assert [0] == produce(coordinator, 0, sequence=2)
    assert [0] == produce(coordinator, 1)


def test_a_fenced_producer_is_refused_everywhere(coordinator: Coordinator) -> None:
    """Also in a partition that its transaction did not have, where 0.11.0.3 takes the batch, and
    nothing ends the transaction (captured: to-produce-other-partition-after)."""
    coordinator.add(0)
    produce(coordinator, 0)
    coordinator.runtime.advance(121)
    assert [47, 47] == produce(coordinator, 0, 1, sequence=1)


def test_batches_that_pass_need_no_handler(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fast path answers their requests, and the kernel appends all but the first of an
    epoch."""
    coordinator.add(0)
    assert [0] == produce(coordinator, 0)

    def refuse(*_: object) -> None:
        raise AssertionError("decoded, or appended in Python")

    monkeypatch.setattr(handler, "append", refuse)
    monkeypatch.setattr(Log, "append", refuse)
    assert [0] == produce(coordinator, 0, sequence=1)


def test_a_coordinator_that_does_not_know_yet(coordinator: Coordinator) -> None:
    """19 while it starts, loads or stops, which every producer tries again."""
    coordinator.add(0)
    coordinator.context.transactions.shutdown()
    assert [19] == produce(coordinator, 0)


def test_the_transaction_of_another_coordinator(coordinator: Coordinator) -> None:
    """Its batches are taken: this broker does not know better."""
    coordinator.lead(TRANSACTIONS_TOPIC, leader=2, isr=(2,), replicas=(1, 2))
    assert [0] == produce(coordinator, 0, epoch=7)
