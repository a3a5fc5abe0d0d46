"""A broker's znode in /brokers/ids is created again after its session ended."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.broker.cluster.registration import RegistrationKeeper
from kafka08.errors import BrokerIdTaken, Closed, SessionLost, ZooKeeperError
from kafka08.structs import Broker
from kafka08.zk.session import SessionEvent
from tests.broker.fake_runtime import FakeRuntime, Halted


class ForgetfulStore:
    """A store whose session ends once, and which then refuses registrations for the given reasons.
    It is its own client."""

    def __init__(self, refusals: list[Exception]) -> None:
        self.registered = 0
        self._refusals = refusals

    @property
    def zk(self) -> ForgetfulStore:
        return self

    def add_session_listener(self, listener: Callable[[SessionEvent], None]) -> None:
        listener(SessionEvent.EXPIRED)

    def register_broker(self, broker: Broker, **_: Any) -> None:
        if self.registered and self._refusals:
            raise self._refusals.pop()
        self.registered += 1


class ReconnectingStore(ForgetfulStore):
    """A store whose session ends during the first registration, which the next session makes."""

    def __init__(self) -> None:
        super().__init__([])
        self._listeners: list[Callable[[SessionEvent], None]] = []

    def add_session_listener(self, listener: Callable[[SessionEvent], None]) -> None:
        self._listeners.append(listener)

    def register_broker(self, broker: Broker, **_: Any) -> None:
        self.registered += 1
        if self.registered == 1:
            for listener in self._listeners:
                listener(SessionEvent.EXPIRED)


def test_a_session_that_ends_during_the_first_registration_is_noticed() -> None:
    """A broker is suspended while it starts. What is prepared for each session, such as the doubts
    about leaders of the last one, is prepared for the session of the znode, too. (Found by one
    simulated run in 1,600: the offsets of a safe profile's group stayed refused.)"""
    store: Any = ReconnectingStore()
    runtime: Any = FakeRuntime()
    sessions: list[int] = []
    registration = RegistrationKeeper(
        runtime,
        store,
        Broker(1, "h", 9092),
        lambda _: sessions.append(store.registered),
        retry_s=6.0,
    )
    with pytest.raises(queue.Empty):  # it would wait for the next event
        registration.start()
    assert sessions == [0, 1]


def test_a_stop_while_it_registers_is_the_end() -> None:
    """After a stop no task remains that would register the broker again."""
    store: Any = ForgetfulStore([])
    runtime: Any = FakeRuntime()
    keeper = RegistrationKeeper(
        runtime, store, Broker(1, "h", 9092), lambda _: keeper.stop(), retry_s=6.0
    )
    with pytest.raises(Closed):
        keeper.start()


def test_a_broker_whose_id_was_taken_halts() -> None:
    """Another process started with its id while it was paused, or cut off. Going on, both would
    lead the same partitions, and fetch as the same replica."""
    store: Any = ForgetfulStore([BrokerIdTaken("/brokers/ids/1")])
    runtime: Any = FakeRuntime()
    registration = RegistrationKeeper(
        runtime, store, Broker(1, "h", 9092), lambda _: None, retry_s=6.0
    )
    with pytest.raises(Halted):
        registration.start()
    assert 1 == store.registered


@pytest.mark.parametrize("refusal", [SessionLost, ZooKeeperError, RuntimeError])
def test_it_is_tried_until_it_works(refusal: type[Exception]) -> None:
    """Registration is retried after any failure, because a broker without it is useless.
    SessionLost too may only mean that a reply was late; if the session lives, no later event
    reports its end."""
    store: Any = ForgetfulStore([refusal("/brokers/ids/1"), refusal("/brokers/ids/1")])
    runtime: Any = FakeRuntime()
    kept: list[Any] = []
    registration = RegistrationKeeper(
        runtime, store, Broker(1, "h", 9092), kept.append, retry_s=6.0
    )
    with pytest.raises(queue.Empty):  # it would wait for the next event
        registration.start()
    assert 2 == store.registered
    assert [store] * len(kept) == kept
    assert len(kept) >= 2, "each session is written down before its znode is made"
