"""Commits of unusual sizes: very many partitions, and a group with a very long name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.requests.handlers import offset_commit
from kafka08.broker.requests.handlers.offset_commit import UNKNOWN_MAX
from kafka08.errors import NO_ERROR, RebalanceInProgress, UnknownTopicOrPartition
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.join_group import JoinGroupProtocol, JoinGroupRequest
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.sync_group import SyncGroupAssignment, SyncGroupRequest
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE
from kafka08.structs import OFFSETS_TOPIC
from tests.broker.world import CONTROLLER_EPOCH, Client, World

COUNT = 3 * PARTITIONS_AT_ONCE


def coordinator(directory: Path, level: str) -> World:
    world = World(directory, api_level=level, offsets_topic_num_partitions=1)
    states = [
        PartitionStateInfo("t", number, CONTROLLER_EPOCH, 1, 0, [1], 0, [1])
        for number in range(COUNT)
    ]
    world.client.call(UpdateMetadataRequest(9, CONTROLLER_EPOCH, states, []))
    world.lead(OFFSETS_TOPIC, replicas=(1, 2))
    return world


def commit_of(*topics: str, group: str = "g", **fields: Any) -> OffsetCommitRequest:
    partitions = [OffsetCommitPartition(number, 7, "") for number in range(COUNT // len(topics))]
    named = [OffsetCommitTopic(topic, partitions) for topic in topics]
    return OffsetCommitRequest(group, named, version=2, **fields)


def codes(response: Any) -> dict[str, list[int]]:
    return {topic.topic: [p.error_code for p in topic.partitions] for topic in response.topics}


def test_very_many_offsets_wait_for_the_isr(tmp_path: Path) -> None:
    """The response has each partition once, in the order of the request, when the replicas have
    all."""
    world = coordinator(tmp_path, "0.10.2")
    world.lead(OFFSETS_TOPIC, isr=(1, 2), replicas=(1, 2))
    request = commit_of("t", "unknown")
    request.topics.append(request.topics[0])
    world.client.send(encode_request(request, 1, "test"))
    assert [] == world.client.frames()
    log_end = world.partition(OFFSETS_TOPIC).log.log_end_offset
    assert COUNT // 2 == log_end
    world.replica_manager.record_follower_fetches([world.partition(OFFSETS_TOPIC)], [log_end], 2)
    (frame,) = world.client.frames()
    response = decode_response(OffsetCommitRequest, frame, 2)[1]
    assert {"t": [NO_ERROR], "unknown": [UnknownTopicOrPartition.code]} == {
        topic: sorted(set(found)) for topic, found in codes(response).items()
    }
    numbers = [[p.partition for p in topic.partitions] for topic in response.topics]
    assert [list(range(COUNT // 2))] * 2 == numbers


def test_each_turn_checks_the_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the group rebalances between two turns of a commit, the rest is refused and not stored."""
    world = coordinator(tmp_path, "0.10.2")
    protocols = [JoinGroupProtocol("range", b"")]
    join = JoinGroupRequest("g", 10_000, 10_000, "", "consumer", protocols, version=1)
    joined = world.client.call(join)
    plan = [SyncGroupAssignment(joined.member_id, b"")]
    world.client.call(SyncGroupRequest("g", joined.generation, joined.member_id, plan))
    join.member_id = joined.member_id
    log = world.partition(OFFSETS_TOPIC).log
    before = log.log_end_offset

    def sleep(_seconds: float) -> None:
        if log.log_end_offset > before:
            Client(world).call(join)
            monkeypatch.undo()

    monkeypatch.setattr(world.runtime, "sleep", sleep)
    request = commit_of("t", generation=joined.generation, member=joined.member_id)
    found = codes(world.client.call(request))["t"]
    stored = found.count(NO_ERROR)
    assert 0 < stored < COUNT
    assert {RebalanceInProgress.code} == set(found[stored:])
    assert stored == log.log_end_offset - before


@pytest.mark.parametrize(("level", "code"), [("0.8.2", -1), ("0.9.0", 24), ("0.10.2", 24)])
def test_a_group_whose_name_no_record_can_have(tmp_path: Path, level: str, code: int) -> None:
    """0.8.2.2 reads each byte that is no UTF-8 as a character of three bytes. The record's key then
    is too long, and an error of any kind is -1. (The connection was closed.)"""
    world = coordinator(tmp_path, level)
    name = "x" * 11_000
    topics = [OffsetCommitTopic("t", [OffsetCommitPartition(0, 7, "")])]
    data = encode_request(OffsetCommitRequest(name, topics, version=1), 1, "test")
    world.client.send(data.replace(name.encode(), b"\xff" * len(name)))
    (frame,) = world.client.frames()
    assert {"t": [code]} == codes(decode_response(OffsetCommitRequest, frame, 1)[1])
    assert 0 == world.partition(OFFSETS_TOPIC).log.log_end_offset


@pytest.mark.parametrize(
    ("level", "version"), [("0.8.2", 0), ("0.9.0", 0), ("0.9.0", 1), ("0.10.2", 0), ("0.10.2", 1)]
)
def test_offsets_of_nothing_are_not_kept(tmp_path: Path, level: str, version: int) -> None:
    """Neither of an unknown topic nor of partitions far above the number of the topic's: anybody
    could fill the coordinator's memory, or ZooKeeper, with them. A partition that was just added is
    no such one."""
    world = coordinator(tmp_path, level)
    wanted = {"t": [COUNT - 1, COUNT, COUNT + 99, COUNT + 100, 2**31 - 1, -2], "unknown": [0]}
    topics = [
        OffsetCommitTopic(topic, [OffsetCommitPartition(number, 7, "") for number in numbers])
        for topic, numbers in wanted.items()
    ]
    response = world.client.call(OffsetCommitRequest("g", topics, version=version))
    assert {"t": [0, 0, 0, 3, 3, 3], "unknown": [3]} == codes(response)


def test_some_offsets_of_nothing_are_kept_by_0_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its coordinator stores those of topics that it does not know; ours a bounded number, in one
    request and in many."""
    world = coordinator(tmp_path, "0.8.2")
    partitions = [OffsetCommitPartition(number, 7, "") for number in range(UNKNOWN_MAX + 1)]
    request = OffsetCommitRequest("g", [OffsetCommitTopic("unknown", partitions)], version=1)
    assert {"unknown": [0] * UNKNOWN_MAX + [3]} == codes(world.client.call(request))
    monkeypatch.setattr(offset_commit, "UNKNOWN_ABOVE", UNKNOWN_MAX)
    request.topics.append(OffsetCommitTopic("t", [OffsetCommitPartition(0, 7, "")]))
    expected = {"unknown": [3] * (UNKNOWN_MAX + 1), "t": [0]}
    assert expected == codes(world.client.call(request))
