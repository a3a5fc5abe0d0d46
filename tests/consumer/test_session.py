"""SessionGate: until when a member may deliver and commit."""

from __future__ import annotations

from math import inf
from typing import cast

from kafka08.consumer.session import MARGIN, SessionGate
from kafka08.zk.client import ZkClient
from kafka08.zk.session import SessionState
from tests.mock_clock import MockClock


class PaperSession:
    """What a gate asks of a ZooKeeper client."""

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
    """Counted from the last contact, whatever the time it is now."""
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
    """A stream asks twice and takes an earlier answer for the end of the session. The deadline was
    made from two looks at the clock, so that a switch of threads between them cost the reader half
    a second, again and again."""

    class RestlessClock(MockClock):
        def monotonic(self) -> float:
            self.advance(0.0015)
            return super().monotonic()

    clock = RestlessClock()
    gate = gate_of(PaperSession(clock), clock)
    assert len({gate.deadline() for _ in range(10)}) == 1


def test_shut_without_the_session_that_was_admitted() -> None:
    """Not connected, or connected in another session than the one the member registered in."""
    clock = MockClock()
    session = PaperSession(clock)
    gate = gate_of(session, clock)
    session.state = SessionState.SUSPENDED
    suspended = gate.deadline()
    session.state, session.session_id = SessionState.CONNECTED, 8
    assert [-inf, -inf] == [suspended, gate.deadline()]
