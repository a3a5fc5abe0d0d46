"""The time at which a session of the model ends."""

from __future__ import annotations

import pytest

from kafka08.zk.model.sessions import Sessions

TICK_MS = 500


@pytest.fixture
def sessions() -> Sessions:
    return Sessions(tick_ms=TICK_MS, min_ms=1000, max_ms=60_000, first_id=7)


@pytest.mark.parametrize(
    ("heard_ms", "timeout_ms", "deadline_ms"),
    [(0, 1000, 1500), (499, 1000, 1500), (500, 1000, 2000), (1, 6000, 6500), (0, 6250, 6500)],
)
def test_a_session_ends_with_the_tick_after_its_timeout(
    sessions: Sessions, heard_ms: int, timeout_ms: int, deadline_ms: int
) -> None:
    """A session ends never before its timeout and at most one tick after it
    (ExpiryQueue.roundToNextInterval)."""
    session = sessions.open(timeout_ms, connection=1, now_ms=heard_ms)
    assert sessions.next_deadline_ms() == deadline_ms
    assert sessions.overdue(deadline_ms - 1) == []
    assert sessions.overdue(deadline_ms) == [session]


def test_a_message_extends_its_session(sessions: Sessions) -> None:
    """A message moves the end of its session by the whole timeout."""
    session = sessions.open(1000, connection=1, now_ms=0)
    sessions.touch(session, 1400)
    assert sessions.overdue(2400) == []
    assert sessions.overdue(2500) == [session]


def test_sessions_end_in_the_order_of_their_deadlines(sessions: Sessions) -> None:
    """Sessions with the same deadline end in the order of their ids."""
    late, *early = [sessions.open(ms, connection=1, now_ms=0) for ms in (2000, 1000, 1000)]
    assert sessions.overdue(60_000) == [*early, late]


@pytest.mark.parametrize(("asked_ms", "granted_ms"), [(0, 1000), (6000, 6000), (10**9, 60_000)])
def test_a_timeout_is_granted_within_bounds(
    sessions: Sessions, asked_ms: int, granted_ms: int
) -> None:
    """The server limits the timeout that a client requests to its own bounds."""
    assert sessions.open(asked_ms, connection=1, now_ms=0).timeout_ms == granted_ms
