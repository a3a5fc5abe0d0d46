"""Offsets that a producer commits in its transaction, from TxnOffsetCommit to OffsetFetch."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.broker.groups.offset_loader import OffsetLoader
from kafka08.protocol.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka08.protocol.describe_groups import DescribeGroupsRequest
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from kafka08.protocol.txn_offset_commit import TxnOffset, TxnOffsetCommitRequest, TxnOffsetTopic
from kafka08.structs import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tests.broker.transactions.coordinator import Coordinator

GROUP = "g"


@pytest.fixture
def coordinator(tmp_path: Path) -> Coordinator:
    return Coordinator(tmp_path)


def begin(coordinator: Coordinator) -> None:
    assert 0 == coordinator.client.call(AddOffsetsToTxnRequest("t", 0, 0, GROUP)).error_code


def commit(coordinator: Coordinator, offset: int, *, producer_id: int = 0, note: str = "") -> int:
    topics = [TxnOffsetTopic("d", [TxnOffset(0, offset, note)])]
    request = TxnOffsetCommitRequest("t", GROUP, producer_id, 0, topics)
    response = coordinator.client.call(request)
    return int(response.topics[0].partitions[0].error_code)


def fetched(coordinator: Coordinator) -> int:
    request = OffsetFetchRequest(GROUP, [OffsetFetchTopic("d", [0])], version=1)
    partition = coordinator.client.call(request).topics[0].partitions[0]
    assert 0 == partition.error_code
    return int(partition.offset)


def move_group(coordinator: Coordinator) -> None:
    coordinator.lead(OFFSETS_TOPIC, leader=2, isr=(2,), replicas=(1, 2))
    coordinator.lead(OFFSETS_TOPIC, replicas=(1, 2))


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize(("commits", "then"), [(True, 5), (False, 3)])
def test_offsets_are_seen_once_the_transaction_is_committed(
    coordinator: Coordinator, *, moves: bool, commits: bool, then: int
) -> None:
    """At once after EndTxn, never after an abort; also if the group's coordinator has moved in
    between, or after that."""
    coordinator.init()
    begin(coordinator)
    assert 0 == commit(coordinator, 3)
    assert -1 == fetched(coordinator)
    assert 0 == coordinator.end()
    assert 3 == fetched(coordinator)
    begin(coordinator)
    assert 0 == commit(coordinator, 4)
    assert 0 == commit(coordinator, 5)
    if moves:
        move_group(coordinator)
    assert 3 == fetched(coordinator)
    assert 0 == coordinator.end(commits=commits)
    assert then == fetched(coordinator)
    move_group(coordinator)
    assert then == fetched(coordinator)


def test_a_plain_commit_behind_it_wins(coordinator: Coordinator) -> None:
    """The later record in the log, whatever the place of the marker (captured:
    offset-fetch-plain-written-after-pending, offset-fetch-reload). Without a producer id the
    request is such a commit."""
    coordinator.init()
    begin(coordinator)
    assert 0 == commit(coordinator, 5)
    topics = [OffsetCommitTopic("d", [OffsetCommitPartition(0, 2, "")])]
    plain = OffsetCommitRequest(GROUP, topics, generation=-1, member="", version=2)
    assert 0 == coordinator.client.call(plain).topics[0].partitions[0].error_code
    assert 2 == fetched(coordinator)
    coordinator.end()
    assert 2 == fetched(coordinator)
    move_group(coordinator)
    assert 2 == fetched(coordinator)
    assert 0 == commit(coordinator, 9, producer_id=-1)
    assert 9 == fetched(coordinator)


def test_offsets_that_are_refused_spoil_no_others(coordinator: Coordinator) -> None:
    """12 for too long metadata, 3 for what cannot exist; 0.11.0.3 may then keep the good one to
    itself (offset-fetch-one-too-large)."""
    coordinator.init()
    begin(coordinator)
    topics = [
        TxnOffsetTopic("d", [TxnOffset(1, 7, "x" * 4097), TxnOffset(0, 6, "")]),
        TxnOffsetTopic("nope", [TxnOffset(0, 7, "")]),
    ]
    response = coordinator.client.call(TxnOffsetCommitRequest("t", GROUP, 0, 0, topics))
    codes = {
        (topic.topic, one.partition): one.error_code
        for topic in response.topics
        for one in topic.partitions
    }
    assert {("d", 1): 12, ("d", 0): 0, ("nope", 0): 3} == codes
    coordinator.end()
    assert 6 == fetched(coordinator)


def test_codes_of_the_group_s_coordinator(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 from a former one; 15 instead of 14 while it loads, which ends a producer of 0.11."""
    coordinator.lead(OFFSETS_TOPIC, leader=2, isr=(2,), replicas=(1, 2))
    assert 16 == commit(coordinator, 1)
    monkeypatch.setattr(OffsetLoader, "_load", lambda *_: None)
    coordinator.lead(OFFSETS_TOPIC, replicas=(1, 2))
    assert 15 == commit(coordinator, 1)
    coordinator.context.group_coordinator.shutdown()
    assert 15 == commit(coordinator, 1)


def test_offsets_belong_to_a_transaction_with_the_group(coordinator: Coordinator) -> None:
    """Else 48; 47 for a producer that was fenced, also if another broker knows the transaction and
    this one its marker. 0.11.0.3 takes them: zombie-txn-offset-commit."""
    coordinator.init()
    coordinator.add(0)
    assert 48 == commit(coordinator, 1)
    begin(coordinator)
    assert 0 == commit(coordinator, 1)
    coordinator.runtime.advance(121)
    assert 47 == commit(coordinator, 2)
    coordinator.lead(TRANSACTIONS_TOPIC, leader=2, isr=(2,), replicas=(1, 2))
    assert 47 == commit(coordinator, 2)
    assert -1 == fetched(coordinator)


def test_a_group_of_a_transaction_exists(coordinator: Coordinator) -> None:
    """Empty, also after a load, before its first offset counts."""
    coordinator.init()
    begin(coordinator)
    commit(coordinator, 5)
    move_group(coordinator)
    (found,) = coordinator.client.call(DescribeGroupsRequest([GROUP])).groups
    assert (0, "Empty") == (found.error_code, found.state)
