"""Which errors a Fetch brings to consumers and to followers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.requests.handlers import fetch
from kafka08.errors import (
    NO_ERROR,
    NotLeaderForPartition,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
)
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.stop_replica import StopReplicaPartition, StopReplicaRequest
from tests.broker.world import CONTROLLER_EPOCH, World

CONSUMER, FOLLOWER = -1, 2


@pytest.mark.parametrize("wait_ms", [0, 1000])
@pytest.mark.parametrize(
    ("replica_id", "may_have_session", "error"),
    [
        (CONSUMER, True, OffsetOutOfRange),
        (CONSUMER, False, NotLeaderForPartition),
        (FOLLOWER, True, OffsetOutOfRange),
        (FOLLOWER, False, OffsetOutOfRange),
    ],
)
def test_a_broker_without_a_session_resets_no_consumer(
    tmp_path: Path,
    replica_id: int,
    may_have_session: bool,
    error: type[OffsetOutOfRange | NotLeaderForPartition],
    wait_ms: int,
) -> None:
    """A broker whose ZooKeeper session may have expired may have successors with longer logs. It
    does not tell a consumer that an offset is out of range, since the consumer would then begin at
    the log start; a follower must know, to truncate its log."""
    world = World(tmp_path)
    world.lead("t", isr=[1, 2], replicas=[1, 2])
    world.store.may_have_session = may_have_session
    wanted = [FetchTopic("t", [FetchPartition(0, 7, 1000)])]
    response = world.client.call(FetchRequest(replica_id, wait_ms, 1, wanted))
    assert error.code == response.topics[0].partitions[0].error_code


def test_a_broker_with_a_new_session_resets_no_consumer(tmp_path: Path) -> None:
    """It does not know yet who leads."""
    world = World(tmp_path)
    world.lead("t", isr=[1, 2], replicas=[1, 2])
    world.store.session_id += 1
    wanted = [FetchTopic("t", [FetchPartition(0, 7, 1000)])]
    response = world.client.call(FetchRequest(CONSUMER, 0, 1, wanted))
    assert NotLeaderForPartition.code == response.topics[0].partitions[0].error_code


def test_a_partition_that_is_deleted_during_the_read_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch of many partitions yields while it reads, and the controller may delete one of them.
    The follower goes on with the others. (The unknown topic takes this fetch of few off the fast
    path.)"""
    world = World(tmp_path)
    world.lead("t", isr=[1, 2], replicas=[1, 2])
    world.lead("u", isr=[1, 2], replicas=[1, 2])
    read_all = fetch.read_all

    def deleted_meanwhile(*args: Any) -> Any:
        reads = read_all(*args)
        stopped = [StopReplicaPartition("t", 0)]
        world.replica_manager.stop_replicas(StopReplicaRequest(9, CONTROLLER_EPOCH, 1, stopped))
        return reads

    monkeypatch.setattr(fetch, "read_all", deleted_meanwhile)
    wanted = [FetchTopic(topic, [FetchPartition(0, 0, 1000)]) for topic in ("t", "u", "unknown")]
    response = world.client.call(FetchRequest(FOLLOWER, 0, 1, wanted))
    codes = {topic.topic: topic.partitions[0].error_code for topic in response.topics}
    gone = UnknownTopicOrPartition.code
    assert {"t": gone, "u": NO_ERROR, "unknown": gone} == codes
