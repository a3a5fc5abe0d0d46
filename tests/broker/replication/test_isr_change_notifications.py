"""Which notifications of changed ISRs a broker writes, and when (maybePropagateIsrChanges)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from kafka08.broker.replication.isr_change_notifications import CHECK_MS, IsrChangeNotifications
from kafka08.errors import SessionLost
from kafka08.structs import TopicPartition
from tests.broker.fake_runtime import FakeRuntime
from tests.broker.world import World

A, B, C = (TopicPartition("t", number) for number in range(3))


class Written:
    """The part of a ClusterStore that is used here."""

    def __init__(self) -> None:
        self.notifications: list[list[TopicPartition]] = []
        self.is_read = True
        self.is_lost = False

    def controller_reads_isr_changes(self) -> bool:
        if self.is_lost:
            raise SessionLost("for now")
        return self.is_read

    def notify_of_isr_changes(self, partitions: list[TopicPartition]) -> None:
        self.notifications.append(partitions)


@pytest.fixture
def store() -> Written:
    return Written()


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
def changes(store: Written, runtime: FakeRuntime) -> IsrChangeNotifications:
    changes = IsrChangeNotifications(runtime, cast("Any", store))
    runtime.every(CHECK_MS / 1000, changes.propagate, name="test")
    return changes


def test_changes_are_notified_after_five_quiet_seconds(
    changes: IsrChangeNotifications, store: Written, runtime: FakeRuntime
) -> None:
    """All changes go into one notification, five seconds after the last one. Then no more is
    written."""
    changes.record(B)
    runtime.advance(4)
    changes.record(A)
    runtime.advance(5)
    assert [] == store.notifications
    runtime.advance(2.5)
    assert [[A, B]] == store.notifications
    runtime.advance(100)
    assert [[A, B]] == store.notifications


def test_continuing_changes_are_notified_once_a_minute(
    changes: IsrChangeNotifications, store: Written, runtime: FakeRuntime
) -> None:
    """While changes continue, one notification a minute is written."""
    for _ in range(30):
        runtime.advance(4)
        changes.record(A)
    assert [[A]] == store.notifications


def test_changes_of_a_failed_write_are_notified_later(
    changes: IsrChangeNotifications, store: Written, runtime: FakeRuntime
) -> None:
    """After a failed write the next notification has the old and the new changes."""
    store.is_lost = True
    changes.record(A)
    runtime.advance(10)
    changes.record(C)
    store.is_lost = False
    runtime.advance(10)
    assert [[A, C]] == store.notifications


def test_a_controller_of_0_8_gets_no_notification(
    changes: IsrChangeNotifications, store: Written, runtime: FakeRuntime
) -> None:
    """Under a controller of 0.8, which would never delete the znode, none is written. The next
    controller reads all states."""
    store.is_read = False
    changes.record(A)
    runtime.advance(10)
    store.is_read = True
    runtime.advance(100)
    assert [] == store.notifications


@pytest.mark.parametrize(("level", "is_told"), [("0.8.2", False), ("0.9.0", True)])
def test_changes_are_recorded_from_0_9_on(tmp_path: Path, level: str, is_told: bool) -> None:
    """From 0.9 on a change is recorded when ZooKeeper has the new ISR."""
    world = World(tmp_path, api_level=level)
    world.lead("t", isr=(1,), replicas=(1, 2))
    manager = world.replica_manager
    manager.record_follower_fetches([manager.partition(A)], [0], 2)
    assert is_told == (manager.isr_change_notifications is not None)
    if manager.isr_change_notifications is not None:
        assert {A} == manager.isr_change_notifications._changed
