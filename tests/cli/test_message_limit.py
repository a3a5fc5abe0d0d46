"""MessageLimit: one limit that several streams use up exactly."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from kafka08.cli.message_limit import MessageLimit


@given(
    limit=st.integers(1, 500),
    part=st.integers(1, 50),
    shares=st.integers(1, 4),
    used=st.lists(st.integers(0, 50), max_size=60),
)
def test_parts_never_add_up_to_more_than_the_limit(
    limit: int, part: int, shares: int, used: list[int]
) -> None:
    """However much of each part is used, the sum never exceeds the limit, and in the end equals
    it."""
    shared = MessageLimit(limit, part, shares)
    printed = 0
    for wish in used:
        taken = shared.take(0)
        assert taken <= part
        printed += min(wish, taken)
        shared.give_back(taken - min(wish, taken))
    while taken := shared.take(0):
        printed += taken
    assert limit == printed


def test_without_a_limit_a_part_is_whole() -> None:
    """Without a limit a part has its full size, and there is always another one."""
    limit = MessageLimit(None, 7, 2)
    assert [7, 7, 7] == [limit.take(0) for _ in range(3)]
    limit.give_back(7)
    assert 7 == limit.take(0)


def test_streams_without_messages_do_not_keep_the_last_one() -> None:
    """Three streams take and return parts as fast as they can. The one with messages gets all."""
    limit = MessageLimit(20, 10, 4)
    done = threading.Event()

    def idle() -> None:
        while not done.is_set():
            limit.give_back(limit.take(0.1))

    threads = [threading.Thread(target=idle, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    printed = 0
    while printed < 20:
        taken = limit.take(10)
        assert taken, "it waited in vain"
        printed += taken
    assert 20 == printed
    done.set()
    for thread in threads:
        thread.join(60)
