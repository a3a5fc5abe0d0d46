"""The transaction coordinator on real logs, through requests: responses, records, loads, time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.transactions.transaction_coordinator import LOAD_RETRY_S
from kafka08.protocol import message_set
from kafka08.protocol.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka08.protocol.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
)
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.consumer_metadata import TRANSACTION, ConsumerMetadataRequest
from kafka08.protocol.end_txn import EndTxnRequest
from kafka08.protocol.init_producer_id import InitProducerIdRequest
from kafka08.protocol.types import Request
from kafka08.structs import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from tests.broker.transactions.coordinator import PARTITION, Coordinator

MINUTE_S = 60


@pytest.fixture
def coordinator(tmp_path: Path) -> Coordinator:
    return Coordinator(tmp_path)


def test_a_transaction_passes_its_states(coordinator: Coordinator) -> None:
    """Every change is one record, and a new producer of the id continues with the next epoch."""
    assert (0, 0, 0) == coordinator.init()
    assert [0, 0] == coordinator.add(0, 1)
    assert [0] == coordinator.add(1)
    assert 0 == coordinator.end()
    assert ["EMPTY", "ONGOING", "PREPARE_COMMIT", "COMPLETE_COMMIT"] == coordinator.states()
    assert [0] == coordinator.add(0)
    assert 0 == coordinator.end(commits=False)
    assert ["ONGOING", "PREPARE_ABORT", "COMPLETE_ABORT"] == coordinator.states()[4:]
    assert (0, 0, 1) == coordinator.init()
    assert [47] == coordinator.add(0)


def test_a_producer_without_a_transactional_id_gets_a_new_id(coordinator: Coordinator) -> None:
    """Whatever timeout it names; each gets another id."""
    assert (0, 0, 0) == coordinator.init(None, -1)
    assert (0, 1, 0) == coordinator.init(None)


def test_no_producer_id_for_now(coordinator: Coordinator) -> None:
    """15 while ZooKeeper gives none: the producer asks again."""
    coordinator.store.model.close()
    assert (15, -1, -1) == coordinator.init(None)
    assert (15, -1, -1) == coordinator.init()
    assert [49] == coordinator.add(0)


def test_what_comes_before_the_coordinator(coordinator: Coordinator) -> None:
    """An id, a timeout and partitions that no coordinator would take, as captured: add-internal,
    add-known-and-unknown, add-nothing, init-tv*."""
    assert [42, 50, 50, 0] == [
        coordinator.init(*one)[0]
        for one in (("", 60_000), ("t", 0), ("t", 900_001), ("t", 900_000))
    ]
    assert [55, 3] == coordinator.add(0, 7)
    assert [3] == coordinator.add(0, topic="nope")
    assert [55] == coordinator.add(0, topic=OFFSETS_TOPIC)
    assert ["EMPTY"] == coordinator.states()
    call = coordinator.client.call
    assert [] == call(AddPartitionsToTxnRequest("t", 0, 0, [])).topics
    assert ["EMPTY", "ONGOING"] == coordinator.states()
    assert 0 == coordinator.end()
    assert 42 == call(EndTxnRequest("", 0, 0, True)).error_code
    assert 42 == call(AddOffsetsToTxnRequest("", 0, 0, "g")).error_code
    assert 0 == call(AddOffsetsToTxnRequest("t", 0, 0, "")).error_code
    _, record = coordinator.context.transactions.record_of("t")
    assert record is not None
    assert {TopicPartition(OFFSETS_TOPIC, 0)} == record.partitions


def test_the_coordinator_is_found(coordinator: Coordinator) -> None:
    """The leader of the id's partition, also for an id without a name (find-empty-key); 15 while
    the topic does not exist, which is created."""
    ask = ConsumerMetadataRequest("", TRANSACTION, version=1)
    found = coordinator.client.call(ask)
    assert (0, 1, "127.0.0.1", 19091) == (
        found.error_code,
        found.coordinator_id,
        found.host,
        found.port,
    )
    coordinator.cache.remove([PARTITION])
    coordinator.store.live = [1, 2, 3]
    missing = coordinator.client.call(ask)
    assert (15, -1, "", -1) == (
        missing.error_code,
        missing.coordinator_id,
        missing.host,
        missing.port,
    )
    assert 1 == coordinator.store.created_partitions(TRANSACTIONS_TOPIC)


def test_an_id_that_no_record_can_have(coordinator: Coordinator) -> None:
    """-1: its bytes that are no UTF-8 were read as three each. Nothing is kept of it."""
    request = InitProducerIdRequest("t" * 32_766 + "?", 60_000)
    coordinator.client.send(encode_request(request, 1, "test").replace(b"?", b"\xff"))
    assert -1 == answer(coordinator, request).error_code
    assert (0, 1, 0) == coordinator.init()


def test_another_coordinator(coordinator: Coordinator) -> None:
    """16, until this broker leads again; then it knows the ids and their transactions."""
    coordinator.init()
    coordinator.add(0)
    coordinator.lead(TRANSACTIONS_TOPIC, leader=2, isr=(2,), replicas=(1, 2))
    assert (16, -1, -1) == coordinator.init()
    assert [16] == coordinator.add(0)
    assert 16 == coordinator.end()
    coordinator.lead(TRANSACTIONS_TOPIC, replicas=(1, 2))
    assert 0 == coordinator.end()
    assert "COMPLETE_COMMIT" == coordinator.states()[-1]


def test_a_broker_that_stops_answers_15(coordinator: Coordinator) -> None:
    """So the producer looks for another coordinator."""
    coordinator.context.transactions.shutdown()
    assert (15, -1, -1) == coordinator.init()


def parked(coordinator: Coordinator, request: Request) -> None:
    coordinator.client.send(encode_request(request, 1, "test"))
    assert [] == coordinator.client.frames()


def answer(coordinator: Coordinator, request: Request) -> Any:
    (frame,) = coordinator.client.frames()
    return decode_response(type(request), frame, request.version)[1]


def test_a_change_counts_once_the_replicas_have_it(tmp_path: Path) -> None:
    """The response waits for the in-sync replicas as long as the transaction may last, not for
    request.timeout.ms; then it is 15, and the id is as before."""
    coordinator = Coordinator(tmp_path, isr=(1, 2))
    request = InitProducerIdRequest("t", 90_000)
    parked(coordinator, request)
    coordinator.runtime.advance(89)
    assert [] == coordinator.client.frames()
    coordinator.runtime.advance(1.1)
    assert 15 == answer(coordinator, request).error_code
    parked(coordinator, request)
    partition = coordinator.replica_manager.partition(PARTITION)
    coordinator.replica_manager.record_follower_fetches([partition], [2], 2)
    assert 0 == answer(coordinator, request).error_code


def test_an_answer_without_a_record_needs_the_leadership(coordinator: Coordinator) -> None:
    """EndTxn again is 0 without an append. A broker that may have a successor, which may know of a
    later transaction, answers 16."""
    coordinator.init()
    coordinator.add(0)
    assert 0 == coordinator.end()
    assert 0 == coordinator.end()
    coordinator.store.may_have_session = False
    assert 16 == coordinator.end()
    assert 48 == coordinator.end(commits=False)


def test_a_transaction_times_out(coordinator: Coordinator) -> None:
    """At the first look after its timeout, every minute. The producer is fenced; a new one gets the
    epoch after that."""
    coordinator.init(timeout_ms=90_000)
    coordinator.add(0)
    coordinator.runtime.advance(MINUTE_S + 1)
    assert [0] == coordinator.add(1)
    coordinator.runtime.advance(MINUTE_S)
    assert ["PREPARE_ABORT", "COMPLETE_ABORT"] == coordinator.states()[-2:]
    assert [47] == coordinator.add(0)
    assert (0, 0, 2) == coordinator.init()


def test_the_clock_of_a_transaction_goes_on_at_the_next_coordinator(
    coordinator: Coordinator,
) -> None:
    """Its start is in the log."""
    coordinator.init(timeout_ms=70_000)
    coordinator.add(0)
    coordinator.runtime.advance(MINUTE_S - 1)
    coordinator.move_away_and_back()
    coordinator.runtime.advance(MINUTE_S + 1)
    assert "COMPLETE_ABORT" == coordinator.states()[-1]


def test_an_id_without_a_transaction_is_forgotten(tmp_path: Path) -> None:
    """After transactional.id.expiration.ms, at the next hourly look; its next producer has a new
    producer id. An open transaction is kept."""
    day_s = 24 * 3600
    coordinator = Coordinator(tmp_path, transactional_id_expiration_ms=day_s * 1000)
    coordinator.init()
    coordinator.runtime.advance(day_s - 1)
    assert (0, 0, 1) == coordinator.init()
    coordinator.runtime.advance(day_s + 3601)
    assert "tombstone" == coordinator.states()[-1]
    assert [49] == coordinator.add(0, epoch=1)
    coordinator.move_away_and_back()
    assert (0, 1, 0) == coordinator.init()


def test_a_log_that_cannot_be_read_keeps_its_ids(coordinator: Coordinator) -> None:
    """14 for all of them, until it can be read. 0.11.0.3 goes on with the ids that it has read, and
    gives the others new producer ids: nobody ends their transactions."""
    coordinator.init()
    end = coordinator.log().log_end_offset
    coordinator.log().append(bytearray(message_set.encode([(b"\x00\x09t", b"")], magic=1)))
    coordinator.move_away_and_back()
    assert (14, -1, -1) == coordinator.init()
    assert [14] == coordinator.add(0)
    coordinator.log().truncate_to(end)
    coordinator.runtime.advance(LOAD_RETRY_S + 1)
    assert (0, 0, 1) == coordinator.init()


def test_what_was_decided_is_completed_by_the_next_coordinator(tmp_path: Path) -> None:
    """A broker that is killed after PREPARE leaves the markers to the next one."""
    coordinator = Coordinator(tmp_path)
    coordinator.init()
    coordinator.add(0)
    coordinator.cache.remove([TopicPartition("d", 0)])
    coordinator.store.create_topic("d", {0: [1], 1: [1]}, {})
    assert 0 == coordinator.end()
    assert "PREPARE_COMMIT" == coordinator.states()[-1]
    assert [51] == coordinator.add(1)
    coordinator.lead(TRANSACTIONS_TOPIC, leader=2, isr=(2,), replicas=(1, 2))
    coordinator.runtime.advance(MINUTE_S)
    assert "PREPARE_COMMIT" == coordinator.states()[-1]
    coordinator.lead("d", 2)
    coordinator.lead(TRANSACTIONS_TOPIC, replicas=(1, 2))
    assert "COMPLETE_COMMIT" == coordinator.states()[-1]


def test_a_partition_of_a_deleted_topic_needs_no_marker(coordinator: Coordinator) -> None:
    """ZooKeeper says that it is gone. One of which this broker has not heard yet waits."""
    coordinator.init()
    coordinator.add(0)
    coordinator.cache.remove([TopicPartition("d", 0)])
    assert 0 == coordinator.end()
    assert "COMPLETE_COMMIT" == coordinator.states()[-1]
