"""When a coordinator must not tell an offset."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.errors import NotCoordinatorForConsumer
from kafka08.profile import CLASSIC, SAFE
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
)
from kafka08.structs import OFFSETS_TOPIC
from tests.broker.world import World

COMMITTED = 5


def fetch(
    directory: Path,
    *,
    profile: str,
    has_session: bool,
    version: int,
    level: str = "0.8.2",
    sessions: int = 1,
) -> tuple[int, int]:
    """The error code and the offset of a partition that has been committed."""
    world = World(
        directory, kafka08_profile=profile, api_level=level, offsets_topic_num_partitions=1
    )
    world.lead("t")
    world.lead(OFFSETS_TOPIC)
    topics = [OffsetCommitTopic("t", [OffsetCommitPartition(0, COMMITTED, "")])]
    stored = min(version, 1)
    committed = world.client.call(OffsetCommitRequest("g", topics, version=stored))
    assert 0 == committed.topics[0].partitions[0].error_code
    world.store.may_have_session = has_session
    world.store.session_id = sessions
    request = OffsetFetchRequest("g", [OffsetFetchTopic("t", [0])], version=version)
    response = world.client.call(request)
    assert isinstance(response, OffsetFetchResponse)
    if response.error_code:
        assert not response.topics
        return response.error_code, -1
    partition = response.topics[0].partitions[0]
    return partition.error_code, partition.offset


@pytest.mark.parametrize(("version", "level"), [(1, "0.8.2"), (1, "0.9.0"), (2, "0.10.2")])
def test_without_a_session_no_offset_is_told(tmp_path: Path, version: int, level: str) -> None:
    """In the safe profile, a coordinator whose session may have expired tells no offset: another
    one may have newer ones."""
    asked = fetch(tmp_path, profile=SAFE, has_session=False, version=version, level=level)
    assert (NotCoordinatorForConsumer.code, -1) == asked


def test_all_offsets_of_a_group_are_none_while_they_may_not_be_told(tmp_path: Path) -> None:
    """At level 0.9.0 a request without partitions means all. If the group cannot be asked, the
    response is empty, as from 0.9.0.1: it has no partitions to put the error on."""
    world = World(tmp_path, kafka08_profile=SAFE, api_level="0.9.0", offsets_topic_num_partitions=1)
    world.lead("t")
    world.lead(OFFSETS_TOPIC)
    topics = [OffsetCommitTopic("t", [OffsetCommitPartition(0, COMMITTED, "")])]
    world.client.call(OffsetCommitRequest("g", topics, version=1))
    wants_all = OffsetFetchRequest("g", [], version=1)
    assert 1 == len(world.client.call(wants_all).topics)
    world.store.may_have_session = False
    assert [] == world.client.call(wants_all).topics


def test_with_a_new_session_no_offset_is_told(tmp_path: Path) -> None:
    """The broker does not know yet whether it still coordinates the group."""
    asked = fetch(tmp_path, profile=SAFE, has_session=True, version=1, sessions=2)
    assert (NotCoordinatorForConsumer.code, -1) == asked


@pytest.mark.parametrize(
    ("profile", "has_session", "version"),
    [
        pytest.param(SAFE, True, 1, id="with a session"),
        pytest.param(CLASSIC, False, 1, id="classic profile"),
        pytest.param(SAFE, False, 0, id="from ZooKeeper"),
    ],
)
def test_otherwise_the_offset_is_told(
    tmp_path: Path, profile: str, has_session: bool, version: int
) -> None:
    """With a session, in the classic profile, or from ZooKeeper, the response has the offset."""
    asked = fetch(tmp_path, profile=profile, has_session=has_session, version=version)
    assert (0, COMMITTED) == asked
