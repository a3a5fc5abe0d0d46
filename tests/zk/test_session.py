"""The session tracker: which of kazoo's states become which events, each once."""

from __future__ import annotations

import pytest
from kazoo.protocol.states import KazooState

from kafka08.zk.session import SessionEvent, SessionState, SessionTracker

C, S, L = KazooState.CONNECTED, KazooState.SUSPENDED, KazooState.LOST


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
def test_states_become_events(states: list[str], events: list[SessionEvent]) -> None:
    """EXPIRED is told once for each session that ended, and only when the next one stands."""
    told: list[SessionEvent] = []
    tracker = SessionTracker()
    tracker.add_listener(told.append)
    for state in states:
        tracker.on_kazoo_state(state)
    assert told == events


def test_a_lost_session_is_gone_until_the_next_one_stands() -> None:
    """`state` tells a session that may still live from one that does not."""
    tracker = SessionTracker()
    for kazoo_state, state in [
        (C, SessionState.CONNECTED),
        (S, SessionState.SUSPENDED),
        (L, SessionState.GONE),
        (C, SessionState.CONNECTED),
    ]:
        tracker.on_kazoo_state(kazoo_state)
        assert tracker.state is state
    assert tracker.sessions_ended == 1


def test_a_closed_client_tells_nothing() -> None:
    """What kazoo reports while it shuts down is nobody's business."""
    told: list[SessionEvent] = []
    tracker = SessionTracker()
    tracker.on_kazoo_state(C)
    tracker.add_listener(told.append)
    tracker.close()
    tracker.on_kazoo_state(L)
    assert told == []
    assert tracker.state is SessionState.CLOSED
