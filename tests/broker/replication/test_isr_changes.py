"""ISR changes are conditional writes to ZooKeeper, and count once they are written (updateIsr)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import SessionLost
from kafka08.structs import LeaderAndIsr, TopicPartition
from tests.broker.world import World

TP = TopicPartition("t", 0)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, replica_lag_time_max_ms=1000)
    world.lead("t", isr=(1,), replicas=(1, 2))
    return world


def fetch(world: World, offset: int = 0) -> Any:
    world.replica_manager.record_follower_fetches(
        [world.replica_manager.partition(TP)], [offset], 2
    )
    return world.partition("t")


def test_a_follower_that_caught_up_joins(world: World) -> None:
    """The znode keeps leader and both epochs. Its new version is the condition of the next
    write."""
    partition = fetch(world)
    assert LeaderAndIsr(1, 0, (1, 2), 1, 5) == world.store.states[TP]
    assert ((1, 2), 1, None) == (partition.isr, partition.zk_version, partition.isr_change)


def test_a_follower_that_went_silent_leaves(world: World) -> None:
    """A periodic check removes a follower that stopped fetching. The leader itself always stays."""
    partition = fetch(world)
    world.runtime.advance(0.9)
    world.replica_manager.shrink_isrs()
    assert (1, 2) == partition.isr
    world.runtime.advance(0.2)
    world.replica_manager.shrink_isrs()
    assert ((1,), (1,)) == (partition.isr, world.store.states[TP].isr)


def test_an_earlier_write_of_this_leader_counts(world: World) -> None:
    """If the reply to a write was lost, the next write meets the version of the first, and adopts
    it."""
    world.store.states[TP] = LeaderAndIsr(1, 0, (1, 2), 4, 5)
    partition = fetch(world)
    assert ((1, 2), 4) == (partition.isr, partition.zk_version)


def test_a_write_of_the_controller_is_waited_for(world: World) -> None:
    """After a higher leader epoch was met, nothing is written until its LeaderAndIsr arrives. The
    HW waits for every broker that may be in the ISR."""
    world.store.states[TP] = LeaderAndIsr(1, 1, (1,), 4, 5)
    partition = fetch(world)
    assert partition.is_leader
    assert ((1,), (1, 2)) == (partition.isr, partition.maximal_isr)
    fetch(world)
    assert 4 == world.store.states[TP].zk_version
    world.lead("t", isr=(1,), replicas=(1, 2))
    assert ((1,), None) == (partition.maximal_isr, partition.isr_change)


@pytest.mark.parametrize(
    ("leader", "leader_epoch", "leads"),
    [
        pytest.param(2, 1, False, id="another broker leads"),
        pytest.param(-1, 1, True, id="no broker leads"),
        pytest.param(2, 0, True, id="no later epoch"),
    ],
)
def test_a_leader_that_finds_its_successor_stops(
    world: World, *, leader: int, leader_epoch: int, leads: bool
) -> None:
    """A leader that finds another one under a later epoch stops leading: the request that says so
    may never arrive. (It went on: acks=1 was lost, a group had two coordinators.)"""
    world.store.states[TP] = LeaderAndIsr(leader, leader_epoch, (2,), 4, 5)
    assert leads is fetch(world).is_leader


def test_an_unknown_outcome_is_tried_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that lost its session is repeated until ZooKeeper's state is known."""
    write, attempts = world.store.update_leader_and_isr, 0

    def lose_two(states: Any) -> Any:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise SessionLost("all of them")
        if attempts == 2:
            return dict.fromkeys(states, SessionLost("this one"))
        return write(states)

    monkeypatch.setattr(world.store, "update_leader_and_isr", lose_two)
    partition = fetch(world)
    assert (3, (1, 2)) == (attempts, partition.isr)


def test_a_topic_that_is_gone_is_left_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the state znode is gone, the change ends: StopReplica is on its way."""
    world.store.states[TP] = LeaderAndIsr(1, 0, (1,), 9, 5)
    monkeypatch.setattr(world.store, "leader_and_isr", lambda wanted: {})
    assert (1,) == fetch(world).isr


def test_an_unexpected_exception_ends_no_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an unexpected exception the ISR is written again. (The change never ended: no later one
    was written, and the HW waited for a replica that might be dead.)"""
    write, attempts = world.store.update_leader_and_isr, 0

    def fail_once(states: Any) -> Any:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise RuntimeError("a bug")
        return write(states)

    monkeypatch.setattr(world.store, "update_leader_and_isr", fail_once)
    partition = fetch(world)
    assert ((1, 2), None) == (partition.isr, partition.isr_change)
