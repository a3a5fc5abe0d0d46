"""The errors of a coordinator whose replicas do not follow any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import (
    NO_ERROR,
    NotCoordinatorForConsumer,
    RebalanceInProgress,
    RequestTimedOut,
)
from kafka08.profile import CLASSIC, SAFE
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.heartbeat import HeartbeatRequest
from kafka08.protocol.join_group import JoinGroupProtocol, JoinGroupRequest
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.sync_group import SyncGroupAssignment, SyncGroupRequest
from kafka08.protocol.types import Request
from kafka08.structs import OFFSETS_TOPIC
from tests.broker.world import World


def coordinator(directory: Path, level: str, profile: str = CLASSIC) -> World:
    world = World(
        directory, api_level=level, offsets_topic_num_partitions=1, kafka08_profile=profile
    )
    world.lead("t")
    world.lead(OFFSETS_TOPIC, isr=(1, 2), replicas=(1, 2))
    return world


def late_response(world: World, request: Request) -> Any:
    """The response at the end of offsets.commit.timeout.ms."""
    world.client.send(encode_request(request, 1, "test"))
    assert [] == world.client.frames()
    world.runtime.advance(world.config.offsets_commit_timeout_ms / 1000)
    (frame,) = world.client.frames()
    return decode_response(type(request), frame, request.version)[1]


@pytest.mark.parametrize("level", ["0.8.2", "0.9.0", "0.10.2"])
@pytest.mark.parametrize(
    ("has_session", "error"), [(True, RequestTimedOut), (False, NotCoordinatorForConsumer)]
)
def test_a_commit_that_no_replica_has_in_time(
    tmp_path: Path, level: str, *, has_session: bool, error: type[RequestTimedOut]
) -> None:
    """Without a session the replicas may follow another coordinator: the member must look for it.
    An 0.8.2.2 consumer that gets 7 commits here again and again."""
    world = coordinator(tmp_path, level)
    world.store.may_have_session = has_session
    topics = [OffsetCommitTopic("t", [OffsetCommitPartition(0, 5, "")])]
    response = late_response(world, OffsetCommitRequest("g", topics, version=1))
    assert error.code == response.topics[0].partitions[0].error_code


@pytest.mark.parametrize(
    ("has_session", "error"), [(True, RebalanceInProgress), (False, NotCoordinatorForConsumer)]
)
def test_a_generation_that_no_replica_has_in_time(
    tmp_path: Path, *, has_session: bool, error: type[RebalanceInProgress]
) -> None:
    """The same for the assignments of a group. Members that get 27 join here again and again."""
    world = coordinator(tmp_path, "0.10.2")
    request = joined(world)
    world.store.may_have_session = has_session
    assert error.code == late_response(world, request).error_code


@pytest.mark.parametrize(
    ("profile", "has_session", "isr", "code"),
    [
        pytest.param(SAFE, False, (1,), NotCoordinatorForConsumer.code, id="cut off"),
        pytest.param(SAFE, False, (1, 2), NO_ERROR, id="its replicas follow"),
        pytest.param(SAFE, True, (1,), NO_ERROR, id="with a session"),
        pytest.param(CLASSIC, False, (1,), NO_ERROR, id="classic profile"),
    ],
)
def test_a_heartbeat_to_a_coordinator_that_is_cut_off(
    tmp_path: Path, profile: str, *, has_session: bool, isr: tuple[int, ...], code: int
) -> None:
    """In the safe profile a member leaves a coordinator that has lost its session and a replica:
    that may coordinate the group, and give others what the member has. While ZooKeeper alone is
    away, groups go on."""
    world = coordinator(tmp_path, "0.10.2", profile)
    request = joined(world)
    world.client.send(encode_request(request, 1, "test"))
    offsets = world.partition(OFFSETS_TOPIC)
    world.replica_manager.record_follower_fetches([offsets], [offsets.log.log_end_offset], 2)
    (frame,) = world.client.frames()
    assert NO_ERROR == decode_response(SyncGroupRequest, frame, request.version)[1].error_code
    if isr != offsets.isr:
        offsets.begin_isr_change(isr)
    world.store.may_have_session = has_session
    heartbeat = HeartbeatRequest("g", request.generation, request.member_id)
    assert code == world.client.call(heartbeat).error_code


def joined(world: World) -> SyncGroupRequest:
    """What the only member of a group sends next."""
    protocols = [JoinGroupProtocol("range", b"")]
    response = world.client.call(
        JoinGroupRequest("g", 10_000, 10_000, "", "consumer", protocols, version=1)
    )
    assignments = [SyncGroupAssignment(response.member_id, b"all")]
    return SyncGroupRequest("g", response.generation, response.member_id, assignments)
