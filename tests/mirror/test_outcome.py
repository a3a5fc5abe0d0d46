"""After failures: which messages are sent again, and which are given up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import (
    BufferExhausted,
    KafkaError,
    NotLeaderForPartition,
    RecordTooLarge,
    RequestTimeout,
)
from kafka08.mirror.outcome import Outcome, judge

PASSES = NotLeaderForPartition("[t,0]")
REFUSED = RecordTooLarge("too large")


def test_without_failures_all_is_done() -> None:
    """Nothing is sent again."""
    assert Outcome() == judge(3, [])


def test_all_behind_the_first_failure_are_sent_again() -> None:
    """Stored messages are sent again too: their copies must come behind the one that was not
    stored."""
    assert Outcome((2, 3, 4), PASSES, ()) == judge(
        5, [([4], RequestTimeout("late")), ([2], PASSES)]
    )


def test_a_full_buffer_passes() -> None:
    """It empties when brokers answer again."""
    full = BufferExhausted("full")
    assert Outcome((0, 1), full, ()) == judge(2, [([0, 1], full)])


def test_refused_messages_are_not_sent_again() -> None:
    """The result has them with their errors, ascending; messages around them are sent again if
    necessary."""
    failures = [([3], REFUSED), ([0], REFUSED), ([1], PASSES)]
    assert Outcome((1, 2, 4), PASSES, ((0, REFUSED), (3, REFUSED))) == judge(5, failures)


def test_of_those_refused_together_one_may_be_at_fault() -> None:
    """A leader refuses a whole set for one message that is too large: from its first message on
    each is sent by itself."""
    assert Outcome((1, 2, 3), None, (), singly=True) == judge(4, [([1, 2], REFUSED)])


@given(st.lists(st.booleans(), max_size=8), st.data())
def test_no_message_is_dropped_and_the_order_is_that_of_the_source(
    refusals: list[bool], data: st.DataObject
) -> None:
    """With any temporary failures every message is stored or refused at the end, and the last
    copies are in order. A refusal depends on the message alone."""
    todo = list(range(len(refusals)))
    stored: list[int] = []
    refused: set[int] = set()
    together = True
    while todo:
        fails = data.draw(st.lists(st.booleans(), min_size=len(todo), max_size=len(todo)))
        cut = data.draw(st.integers(0, len(todo))) if together else None
        parts = [[n] for n in range(len(todo))]
        if cut is not None:
            parts = [part for part in (range(cut), range(cut, len(todo))) if part]  # type: ignore[misc]
        failures: list[tuple[list[int], KafkaError]] = []
        for part in parts:
            if any(refusals[todo[n]] for n in part):
                failures.append(([*part], REFUSED))
            elif any(fails[n] for n in part):
                failures.append(([*part], PASSES))
            else:
                stored += [todo[n] for n in part]
        outcome = judge(len(todo), failures)
        refused |= {todo[place] for place, _ in outcome.refused}
        todo = [todo[place] for place in outcome.resend]
        together = together and not outcome.singly
    assert {n for n, is_refused in enumerate(refusals) if is_refused} == refused
    last = {message: index for index, message in enumerate(stored)}
    assert [n for n in range(len(refusals)) if n not in refused] == sorted(
        last, key=last.__getitem__
    )
