"""Requests of the controller over a connection that it has given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.broker.cluster.controller_connection import ControllerConnection
from kafka08.errors import StaleControllerEpoch
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.stop_replica import StopReplicaPartition, StopReplicaRequest
from kafka08.protocol.update_metadata import LiveBroker, UpdateMetadataRequest
from tests.broker.world import BROKER_ID, CONTROLLER_EPOCH, Client, World

LIVE = [LiveBroker.plaintext(BROKER_ID, "127.0.0.1", 19090 + BROKER_ID)]


def update(
    leader: int, leader_epoch: int, controller_epoch: int = CONTROLLER_EPOCH
) -> UpdateMetadataRequest:
    state = PartitionStateInfo(
        "t", 0, controller_epoch, leader, leader_epoch, [BROKER_ID], 0, [BROKER_ID]
    )
    return UpdateMetadataRequest(9, controller_epoch, [state], LIVE)


def leader(world: World) -> int:
    [topic] = world.client.call(MetadataRequest(["t"])).topics
    return int(topic.partitions[0].leader)


def test_a_late_update_does_not_replace_newer_metadata(tmp_path: Path) -> None:
    """The controller has sent newer metadata over a second connection; what then arrives over the
    first is refused as 0.8.2.2 refuses an old controller."""
    world = World(tmp_path)
    first, second = Client(world, number=1), Client(world, number=2)
    assert first.call(update(-1, 5)).error_code == 0
    assert second.call(update(BROKER_ID, 6)).error_code == 0
    assert first.call(update(-1, 5)).error_code == -1
    assert leader(world) == BROKER_ID


def test_a_late_stop_replica_deletes_nothing(tmp_path: Path) -> None:
    """A replica that the controller made over its second connection survives a StopReplica that it
    had sent over the first."""
    world = World(tmp_path)
    second = Client(world, number=2)
    world.lead("t", 1)
    assert second.call(update(BROKER_ID, 6)).error_code == 0
    stop = StopReplicaRequest(9, CONTROLLER_EPOCH, 1, [StopReplicaPartition("t", 0)])
    late = Client(world, number=1)
    assert late.call(stop).error_code == StaleControllerEpoch.code
    assert world.partition("t") is not None


def test_the_next_controller_may_have_an_earlier_connection() -> None:
    """Connections are compared within one controller epoch only."""
    connection = ControllerConnection()
    connection.check(1, 7)
    connection.check(2, 3)
    connection.check(2, 4)
    connection.check(1, 5)  # the ReplicaManager refuses this controller
    with pytest.raises(StaleControllerEpoch, match="another connection"):
        connection.check(2, 3)
