"""SessionGate: until when a member may deliver and commit."""

from __future__ import annotations

from math import inf
from typing import cast

from kafka08.consumer.zookeeper.session import MARGIN, SessionGate
from kafka08.zk.client import ZkClient
from kafka08.zk.session import SessionState
from tests.mock_clock import MockClock


class PaperSession:
    """The part of a ZooKeeper client that a gate uses."""

    def __init__(self, clock: MockClock) -> None:
        self.state = SessionState.CONNECTED
        self.session_id = 7
        self.granted_timeout_ms = 6000
        self.last_contact = clock.monotonic()


def gate_of(session: PaperSession, clock: MockClock) -> SessionGate:
    gate = SessionGate(cast(ZkClient, session), clock)
    gate.admit_session(7)
    return gate


def test_open_until_a_margin_before_the_session_can_be_over() -> None:
    """The gate is open until a margin before the session's possible end, counted from the last
    contact, whatever the present time."""
    clock = MockClock()
    session = PaperSession(clock)
    gate = gate_of(session, clock)
    opened = []
    for _ in range(2):
        clock.advance(6 * (1 - MARGIN) - 0.1)
        opened.append(gate.is_open)
    session.last_contact = clock.monotonic()
    assert [True, False, True] == [*opened, gate.is_open]


def test_the_deadline_does_not_move_by_itself() -> None:
    """The deadline is computed from one reading of the clock. A stream compares two results, and
    takes an earlier one for the end of the session. With two readings, a thread switch between them
    stopped the reader for half a second each time."""

    class RestlessClock(MockClock):
        def monotonic(self) -> float:
            self.advance(0.0015)
            return super().monotonic()

    clock = RestlessClock()
    gate = gate_of(PaperSession(clock), clock)
    assert len({gate.deadline() for _ in range(10)}) == 1


def test_shut_without_the_session_that_was_admitted() -> None:
    """The gate is shut while the client is disconnected, or connected in another session than the
    one in which the member registered."""
    clock = MockClock()
    session = PaperSession(clock)
    gate = gate_of(session, clock)
    session.state = SessionState.SUSPENDED
    suspended = gate.deadline()
    session.state, session.session_id = SessionState.CONNECTED, 8
    assert [-inf, -inf] == [suspended, gate.deadline()]
