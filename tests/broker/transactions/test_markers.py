"""Markers in the logs of partitions: those of this broker's coordinator, and WriteTxnMarkers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafka08.broker.appends.inline_appends import NATIVE_MIN_BYTES
from kafka08.broker.process.broker_families import of_replicas, of_transactions
from kafka08.exposition import text_of
from kafka08.log.coordinator_batches import transactional_batch
from kafka08.log.producer_entries import producer_entries
from kafka08.log.producers import Marker
from kafka08.metrics import Pauses
from kafka08.protocol import compression
from kafka08.protocol.add_partitions_to_txn import TxnTopic
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.message_set import encode
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.write_txn_markers import TxnMarker, WriteTxnMarkersRequest
from kafka08.structs import TRANSACTIONS_TOPIC, TopicPartition
from tests.broker.transactions.coordinator import Coordinator

Codes = dict[tuple[int, str, int], int]


@pytest.fixture
def coordinator(tmp_path: Path) -> Coordinator:
    return Coordinator(tmp_path)


def markers(coordinator: Coordinator, topic: str = "d", number: int = 0) -> list[Marker]:
    log = coordinator.log_manager.get(TopicPartition(topic, number))
    assert log is not None
    data = log.read(0, 1 << 20).bytes()
    return [entry for entry in producer_entries(data) if isinstance(entry, Marker)]


def marker(
    *topics: TxnTopic,
    producer_id: int = 9000,
    epoch: int = 0,
    commits: bool = True,
    coordinator_epoch: int = 5,
) -> TxnMarker:
    return TxnMarker(producer_id, epoch, commits, list(topics), coordinator_epoch)


def write(coordinator: Coordinator, *wanted: TxnMarker) -> Codes:
    response = coordinator.client.call(WriteTxnMarkersRequest(list(wanted)))
    return {
        (one.producer_id, topic.topic, partition.partition): partition.error_code
        for one in response.markers
        for topic in one.topics
        for partition in topic.partitions
    }


def test_every_partition_of_a_transaction_gets_its_marker(coordinator: Coordinator) -> None:
    """With the producer's id and epoch, and the leader epoch of the coordinator's partition."""
    coordinator.init()
    coordinator.add(0, 1)
    coordinator.end()
    coordinator.add(1)
    coordinator.end(commits=False)
    epoch = coordinator.replica_manager.partition(TopicPartition(TRANSACTIONS_TOPIC, 0))
    now_ms = coordinator.runtime.time_ms()
    commit = Marker(0, 0, True, epoch.leader_epoch, 0, now_ms)
    assert [commit] == markers(coordinator)
    assert [commit, commit._replace(commits=False, offset=1)] == markers(coordinator, number=1)


def test_a_later_epoch_of_the_same_leader(coordinator: Coordinator) -> None:
    """Its markers have it, and no id is loaded again."""
    coordinator.init()
    coordinator.add(0)
    coordinator.end()
    coordinator.lead(TRANSACTIONS_TOPIC, replicas=(1, 2))
    coordinator.add(0)
    coordinator.end()
    former, later = (one.coordinator_epoch for one in markers(coordinator))
    assert later > former


def test_a_producer_that_timed_out_is_fenced_by_its_marker(coordinator: Coordinator) -> None:
    """The marker has the next epoch."""
    coordinator.init()
    coordinator.add(0)
    coordinator.runtime.advance(121)
    assert [(1, False)] == [(one.epoch, one.commits) for one in markers(coordinator)]


def test_each_partition_has_its_code(coordinator: Coordinator) -> None:
    """As captured: marker-mixed, marker-min-isr, marker-none, marker-no-partitions; and, which
    0.11.0.3 never answers, marker-good-then-unknown."""
    coordinator.lead("old", config={"message.format.version": "0.10.2"})
    coordinator.lead("mi", config={"min.insync.replicas": "2"}, replicas=(1, 2))
    coordinator.lead("followed", leader=2, isr=(2,), replicas=(1, 2))
    names = ("d", "nope", "old", "mi", "followed")
    found = write(coordinator, marker(*(TxnTopic(name, [0]) for name in names)))
    assert [0, 3, 43, 19, 6] == [found[9000, name, 0] for name in names]
    assert {} == write(coordinator)
    assert {} == write(coordinator, marker())
    good, unknown = marker(TxnTopic("d", [0])), marker(TxnTopic("nope", [0]), producer_id=2)
    assert {(9000, "d", 0): 0, (2, "nope", 0): 3} == write(coordinator, good, unknown)


def test_two_entries_of_one_producer_are_one_in_the_response(coordinator: Coordinator) -> None:
    """As captured: marker-same-pid-twice."""
    d1 = TxnTopic("d", [1])
    response = coordinator.client.call(
        WriteTxnMarkersRequest([marker(d1), marker(d1, commits=False)])
    )
    assert 1 == len(response.markers)
    assert [True, False] == [one.commits for one in markers(coordinator, number=1)]


def test_a_marker_waits_for_its_fsync(tmp_path: Path) -> None:
    """With flush.messages=1 it is acknowledged after that, which a native job does."""
    coordinator = Coordinator(tmp_path, native_inline=False)
    coordinator.lead("s", config={"flush.messages": "1"})
    log = coordinator.replica_manager.partition(TopicPartition("s", 0)).leader_log()
    request = WriteTxnMarkersRequest([marker(TxnTopic("s", [0]))])
    coordinator.client.send(encode_request(request, 1, "test"))
    assert (1, 0) == (log.log_end_offset, log.recovery_point)
    assert coordinator.client.parked
    coordinator.runtime.run_native_jobs()
    assert (1, 1) == (len(coordinator.client.frames()), log.recovery_point)


def test_a_marker_comes_behind_what_is_queued(tmp_path: Path) -> None:
    """While a native job numbers a large compressed set, it waits in the partition's queue."""
    coordinator = Coordinator(tmp_path, native_inline=False)
    large = encode([(None, random.Random(1).randbytes(NATIVE_MIN_BYTES))], compression.GZIP)
    coordinator.appender.append(
        {TopicPartition("d", 0): bytearray(large)},
        required_acks=1,
        timeout_ms=1000,
        done=lambda _: None,
    )
    request = WriteTxnMarkersRequest([marker(TxnTopic("d", [0]))])
    coordinator.client.send(encode_request(request, 1, "test"))
    assert not markers(coordinator)
    coordinator.runtime.run_native_jobs()
    assert [1] == [one.offset for one in markers(coordinator)]
    assert 1 == len(coordinator.client.frames())


def test_a_marker_that_the_replicas_do_not_have_in_time(coordinator: Coordinator) -> None:
    """7 after request.timeout.ms, although it is in the log."""
    coordinator.lead("r", isr=(1, 2), replicas=(1, 2))
    request = WriteTxnMarkersRequest([marker(TxnTopic("r", [0]))])
    coordinator.client.send(encode_request(request, 1, "test"))
    assert [] == coordinator.client.frames()
    coordinator.runtime.advance(coordinator.config.request_timeout_ms / 1000)
    (frame,) = coordinator.client.frames()
    response = decode_response(WriteTxnMarkersRequest, frame)[1]
    assert 7 == response.markers[0].topics[0].partitions[0].error_code
    assert 1 == len(markers(coordinator, "r"))


def test_a_transaction_of_thousands_of_partitions(tmp_path: Path) -> None:
    """All get their markers, a part at a time."""
    coordinator = Coordinator(tmp_path)
    coordinator.lead("many", 1201)
    coordinator.init()
    assert {0} == set(coordinator.add(*range(1201), topic="many"))
    coordinator.end()
    assert "COMPLETE_COMMIT" == coordinator.states()[-1]
    assert 1 == len(markers(coordinator, "many", 1200))


@pytest.mark.parametrize(("epoch", "coordinator_epoch"), [(7, 0), (0, 9), (7, 9)])
def test_a_marker_by_hand_holds_up_no_transaction(
    coordinator: Coordinator, epoch: int, coordinator_epoch: int
) -> None:
    """It has epochs that this coordinator never gave, so that its own markers are refused with 47
    or 52. 0.11.0.3 answers 51 from then on."""
    coordinator.init()
    coordinator.add(0, 1)
    by_hand = marker(
        TxnTopic("d", [0]), producer_id=0, epoch=epoch, coordinator_epoch=coordinator_epoch
    )
    write(coordinator, by_hand)
    assert 0 == coordinator.end()
    coordinator.runtime.advance(1)
    assert "COMPLETE_COMMIT" == coordinator.states()[-1]
    assert [True, True] == [one.commits for one in markers(coordinator)]
    assert (0, 1, 0) == coordinator.init()[:3]


def test_metrics_know_who_waits(coordinator: Coordinator) -> None:
    """Partitions with an open transaction have its lag and its producers, others no sample; ids are
    counted by state."""
    coordinator.init()
    coordinator.add(0, 1)
    batch = transactional_batch([(None, b"a"), (None, b"b")], 0, 0, 0, -1, 1)[0].data
    request = ProduceRequest(-1, 1000, [ProduceTopic("d", [ProducePartition(0, batch)])], version=3)
    request.transactional_id = "t"
    coordinator.client.call(request)
    replicas = of_replicas(coordinator.replica_manager, Pauses(lambda: None))
    lines = text_of([*replicas, *of_transactions(coordinator.context.transactions)]).splitlines()
    of_partition = '{partition="0",topic="d"}'
    assert f"kafka_cluster_partition_laststableoffsetlag{of_partition} 2.0" in lines
    assert f"kafka08_partition_opentransactions{of_partition} 1.0" in lines
    assert 1 == sum("opentransactions{" in line for line in lines)
    assert 'kafka08_transactional_ids{state="ongoing"} 1.0' in lines
