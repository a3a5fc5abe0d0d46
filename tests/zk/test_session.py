"""The session tracker: which states of a connection become which events, each reported once."""

from __future__ import annotations

import pytest

from kafka08.zk.session import SessionEvent, SessionState, SessionTracker
from kafka08.zk.zookeeper import ConnectionState

C, S, L = ConnectionState.CONNECTED, ConnectionState.SUSPENDED, ConnectionState.LOST


@pytest.mark.parametrize(
    ("states", "events"),
    [
        ([C], [SessionEvent.CONNECTED]),
        ([L, C], [SessionEvent.CONNECTED]),
        ([C, S, C], [SessionEvent.CONNECTED, SessionEvent.SUSPENDED, SessionEvent.RECONNECTED]),
        (
            [C, S, L, C],
            [SessionEvent.CONNECTED, SessionEvent.SUSPENDED, SessionEvent.EXPIRED],
        ),
        ([C, L, C], [SessionEvent.CONNECTED, SessionEvent.EXPIRED]),
        ([C, S, L], [SessionEvent.CONNECTED, SessionEvent.SUSPENDED]),
        ([C, L, L, C], [SessionEvent.CONNECTED, SessionEvent.EXPIRED]),
        (
            [C, S, S, C, C],
            [SessionEvent.CONNECTED, SessionEvent.SUSPENDED, SessionEvent.RECONNECTED],
        ),
        (
            [C, L, C, L, C],
            [SessionEvent.CONNECTED, SessionEvent.EXPIRED, SessionEvent.EXPIRED],
        ),
    ],
)
def test_states_become_events(states: list[ConnectionState], events: list[SessionEvent]) -> None:
    """EXPIRED is reported once for each session that ended, and only when the next one exists."""
    told: list[SessionEvent] = []
    tracker = SessionTracker()
    tracker.add_listener(told.append)
    for state in states:
        tracker.on_connection_state(state)
    assert told == events


def test_a_lost_session_is_gone_until_the_next_one_exists() -> None:
    """`state` distinguishes a session that may still live from one that does not."""
    tracker = SessionTracker()
    for connection, state in [
        (C, SessionState.CONNECTED),
        (S, SessionState.SUSPENDED),
        (L, SessionState.GONE),
        (C, SessionState.CONNECTED),
    ]:
        tracker.on_connection_state(connection)
        assert tracker.state is state
    assert tracker.sessions_ended == 1


def test_a_closed_client_sends_no_event() -> None:
    """States that the adapter reports during close() cause no event."""
    told: list[SessionEvent] = []
    tracker = SessionTracker()
    tracker.on_connection_state(C)
    tracker.add_listener(told.append)
    tracker.close()
    tracker.on_connection_state(L)
    assert told == []
    assert tracker.state is SessionState.CLOSED
