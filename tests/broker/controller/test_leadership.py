"""Leadership: writes of states whose reply was lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kafka08.broker.controller.leader_selectors import (
    elect_offline,
    elect_preferred,
    elect_reassigned,
    with_next_epoch,
    without_replica,
)
from kafka08.broker.controller.leadership import Leadership
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import NotAllowed
from kafka08.zk.store import ClusterStore
from tests.broker.controller.conftest import lose_the_next_response

TP = TopicPartition("t", 0)
EPOCH = 3
BEFORE = LeaderAndIsr(2, 4, (1, 2), 0, EPOCH - 1)

DECISIONS: dict[str, Callable[[LeaderAndIsr], LeaderAndIsr]] = {
    "a preferred election": lambda current: (
        elect_preferred((1, 2), (1, 2), current, controller_epoch=EPOCH).state
    ),
    "an election after the leader died": lambda current: (
        elect_offline((2, 1), (1,), current, controller_epoch=EPOCH, unclean_allowed=False).state
    ),
    "an election among new replicas": lambda current: (
        elect_reassigned((1, 3), (1, 3), current, controller_epoch=EPOCH).state
    ),
    "a wider assignment": partial(with_next_epoch, controller_epoch=EPOCH),
    "a smaller ISR": lambda current: without_replica(
        current, 1, controller_epoch=EPOCH, unclean_allowed=False
    ),
}


@pytest.fixture
def store(zk: ZkClient) -> ClusterStore:
    """A store with the state of one partition, and an elected controller."""
    zk.create(paths.CONTROLLER_EPOCH, str(EPOCH))
    zk.ensure(paths.topic(TP.topic))
    store = ClusterStore(zk)
    store.create_leader_and_isr({TP: BEFORE})
    return store


@pytest.mark.parametrize("known", [{TP: BEFORE}, {}], ids=["known", "read"])
@pytest.mark.parametrize("decision", DECISIONS)
def test_a_write_whose_reply_was_lost_counts(
    store: ClusterStore,
    monkeypatch: pytest.MonkeyPatch,
    decision: str,
    known: dict[TopicPartition, LeaderAndIsr],
) -> None:
    """If ZooKeeper has the state that we tried to write, the write counts as done. A new decision
    would not elect the preferred replica again, and no broker would get LeaderAndIsr."""
    decide = DECISIONS[decision]
    lose_the_next_response(monkeypatch, store.zk)
    outcome = Leadership(store, 0).update([TP], lambda _, current: decide(current), EPOCH, known)
    assert (
        {TP: replace(decide(BEFORE), zk_version=1)} == outcome.states == store.leader_and_isr([TP])
    )
    assert {} == outcome.failures


def test_a_write_that_succeeds_the_second_time_is_no_failure(
    store: ClusterStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of one znode may pass; a failure that is kept would undo the election."""
    write = store.update_leader_and_isr
    errors = [NotAllowed("once")]

    def write_later(states: Mapping[TopicPartition, LeaderAndIsr], *checks: Any) -> Any:
        return dict.fromkeys(states, errors.pop()) if errors else write(states, *checks)

    monkeypatch.setattr(store, "update_leader_and_isr", write_later)
    decide = DECISIONS["a wider assignment"]
    outcome = Leadership(store, 0).update(
        [TP], lambda _, current: decide(current), EPOCH, {TP: BEFORE}
    )
    assert ([TP], {}) == (list(outcome.states), outcome.failures)


def test_a_concurrent_write_of_a_leader_needs_a_new_decision(store: ClusterStore) -> None:
    """Only exactly the wanted state counts as our own write."""
    store.update_leader_and_isr({TP: replace(BEFORE, isr=(2,))})
    decide = DECISIONS["a wider assignment"]
    outcome = Leadership(store, 0).update(
        [TP], lambda _, current: decide(current), EPOCH, {TP: BEFORE}
    )
    assert {TP: LeaderAndIsr(2, 5, (2,), 2, EPOCH)} == outcome.states
