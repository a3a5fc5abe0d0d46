"""After failures: which messages are sent again, and which are given up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import (
    BufferExhausted,
    InvalidTopic,
    KafkaError,
    NotLeaderForPartition,
    RecordTooLarge,
    RequestTimeout,
    TopicMissing,
)
from kafka08.mirror.outcome import Outcome, judge

PASSES = NotLeaderForPartition("[t,0]")
REFUSED = RecordTooLarge("too large")


def one(_: int) -> str:
    """All messages have one key."""
    return "key"


def test_without_failures_all_is_done() -> None:
    """Nothing is sent again."""
    assert Outcome() == judge(3, [], one)


def test_all_of_a_key_behind_its_first_failure_are_sent_again() -> None:
    """Stored messages are sent again too: their copies must come behind the one that was not
    stored."""
    failures = [([4], RequestTimeout("late")), ([2], PASSES)]
    assert Outcome((2, 3, 4), PASSES, ()) == judge(5, failures, one)


def test_what_shares_no_partition_with_a_failure_is_not_sent_again() -> None:
    """A target partition without a leader fails for as long as it has none: each time the messages
    of the healthy ones were stored once more. Messages without a key have no order."""
    keys = ["a", "b", None, "b", "a", None]
    assert judge(6, [([1, 2], PASSES)], keys.__getitem__).resend == (1, 2, 3)


@pytest.mark.parametrize("error", [TopicMissing("t"), InvalidTopic("t")])
def test_all_messages_of_a_topic_that_the_target_has_not_are_refused(error: KafkaError) -> None:
    """None of them is at fault, so none is tried alone."""
    outcome = judge(3, [([0, 1], error), ([2], PASSES)], one)
    assert outcome == Outcome((2,), PASSES, ((0, error), (1, error)))


def test_a_full_buffer_passes() -> None:
    """It empties when brokers answer again."""
    full = BufferExhausted("full")
    assert Outcome((0, 1), full, ()) == judge(2, [([0, 1], full)], one)


def test_refused_messages_are_not_sent_again() -> None:
    """The result has them with their errors, ascending; messages around them are sent again if
    necessary."""
    failures = [([3], REFUSED), ([0], REFUSED), ([1], PASSES)]
    assert Outcome((1, 2, 4), PASSES, ((0, REFUSED), (3, REFUSED))) == judge(5, failures, one)


def test_of_those_refused_together_one_may_be_at_fault() -> None:
    """A leader refuses a whole set for one message that is too large: from its first message on
    each is sent by itself."""
    assert Outcome((1, 2, 3), None, (), singly=True) == judge(4, [([1, 2], REFUSED)], one)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("ab")), max_size=8), st.data())
def test_no_message_is_dropped_and_the_order_is_that_of_the_source(
    messages: list[tuple[bool, str]], data: st.DataObject
) -> None:
    """With any temporary failures every message is stored or refused at the end, and the last
    copies of each key are in order. A refusal depends on the message alone."""
    refusals, keys = [is_refused for is_refused, _ in messages], [key for _, key in messages]
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
        outcome = judge(len(todo), failures, lambda place: keys[todo[place]])  # noqa: B023
        refused |= {todo[place] for place, _ in outcome.refused}
        todo = [todo[place] for place in outcome.resend]
        together = together and not outcome.singly
    assert {n for n, is_refused in enumerate(refusals) if is_refused} == refused
    last = {message: index for index, message in enumerate(stored)}
    for key in "ab":
        assert [n for n in range(len(refusals)) if n not in refused and keys[n] == key] == sorted(
            (n for n in last if keys[n] == key), key=last.__getitem__
        )
