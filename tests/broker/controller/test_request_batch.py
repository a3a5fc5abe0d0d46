"""RequestBatch: which broker gets which request, in which order, and which parts are built once."""

from __future__ import annotations

import pytest

from kafka08.broker.controller.context import ControllerContext
from kafka08.broker.controller.replica_state import PartitionReplica
from kafka08.broker.controller.request_batch import RequestBatch
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest
from kafka08.protocol.stop_replica import StopReplicaRequest
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.structs import Broker, LeaderAndIsr, TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


@pytest.fixture
def context() -> ControllerContext:
    context = ControllerContext(epoch=5)
    context.brokers = {i: Broker(i, "h", 9000 + i) for i in (1, 2, 3)}
    context.assignments = {A: (1, 2), B: (2, 9)}
    context.leadership = {
        A: LeaderAndIsr(1, 3, (1, 2), 7, 5),
        B: LeaderAndIsr(9, 4, (9,), 8, 5),
    }
    return context


def test_order_and_recipients(context: ControllerContext) -> None:
    """LeaderAndIsr goes to the named brokers, then UpdateMetadata to all live ones, and StopReplica
    last, whatever the order of the calls."""
    batch = RequestBatch(context, 1)
    batch.add_stop_replica(PartitionReplica("a", 0, 2), delete=True)
    batch.add_stop_replica(PartitionReplica("b", 0, 2), delete=False)
    batch.add_leader_and_isr([2, 1], A, (1, 2))
    told = [(r.broker_id, type(r.request), r.named) for r in batch.requests()]
    assert told == [
        (1, LeaderAndIsrRequest, True),
        (2, LeaderAndIsrRequest, True),
        (1, UpdateMetadataRequest, True),
        (2, UpdateMetadataRequest, True),
        (3, UpdateMetadataRequest, True),
        (2, StopReplicaRequest, False),
        (2, StopReplicaRequest, False),
    ]


def test_stops_share_a_request_and_deletions_do_not(context: ControllerContext) -> None:
    """All replicas that stop are in one request per broker. Each deletion has its own request:
    dropping hundreds of logs might exceed the timeout of a response."""
    batch = RequestBatch(context, 1)
    replicas = [PartitionReplica(topic, 0, 2) for topic in "abcd"]
    for replica in replicas[:2]:
        batch.add_stop_replica(replica, delete=False)
    for replica in replicas[2:]:
        batch.add_stop_replica(replica, delete=True)
    told = {
        tuple(partition.topic for partition in r.request.partitions): r.request.delete_partitions
        for r in batch.requests()
        if isinstance(r.request, StopReplicaRequest)
    }
    assert told == {("a", "b"): 0, ("c",): 1, ("d",): 1}


def test_leaders_lists_only_live_brokers_that_lead_something(context: ControllerContext) -> None:
    """The request has only live brokers that lead one of its partitions: 9 leads b but is dead, 2
    and 3 lead nothing."""
    batch = RequestBatch(context, 1)
    batch.add_leader_and_isr([2], A, (1, 2))
    batch.add_leader_and_isr([2], B, (2, 9))
    request = batch.requests()[0].request
    assert isinstance(request, LeaderAndIsrRequest)
    assert [leader.broker_id for leader in request.leaders] == [1]
    assert [(s.topic, s.leader) for s in request.partition_states] == [("a", 1), ("b", 9)]


def test_brokers_with_the_same_partitions_share_one_request(context: ControllerContext) -> None:
    """Brokers with the same partitions share one encoded request. A thousand partitions are encoded
    once, not per broker."""
    batch = RequestBatch(context, 1)
    batch.add_update_metadata()
    first, second, third = (r.request for r in batch.requests())
    assert first is second is third


def test_a_new_broker_gets_all_partitions(context: ControllerContext) -> None:
    """A new broker gets all partitions, the others those that changed."""
    batch = RequestBatch(context, 1)
    batch.add_update_metadata(brokers=[3])
    batch.add_update_metadata([A])
    told = {
        r.broker_id: [state.topic for state in r.request.partition_states]
        for r in batch.requests()
        if isinstance(r.request, UpdateMetadataRequest)
    }
    assert told == {1: ["a"], 2: ["a"], 3: ["a", "b"]}


def test_a_topic_under_deletion_is_sent_with_its_marker(context: ControllerContext) -> None:
    """A partition under deletion has leader -2, epoch 0 and version 0, and is in every
    UpdateMetadata."""
    context.topics_to_delete = {"b"}
    batch = RequestBatch(context, 1)
    batch.add_update_metadata([A])
    request = batch.requests()[0].request
    assert isinstance(request, UpdateMetadataRequest)
    told = [(s.topic, s.leader, s.leader_epoch, s.zk_version) for s in request.partition_states]
    assert told == [("a", 1, 3, 7), ("b", -2, 0, 0)]


def test_nothing_to_say_is_no_request(context: ControllerContext) -> None:
    """A partition without a leader and an empty batch send no request."""
    batch = RequestBatch(context, 1)
    assert batch.requests() == []
    batch.add_update_metadata([TopicPartition("new", 0)])
    assert batch.requests() == []
