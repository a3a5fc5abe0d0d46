"""The checker of offset histories, on small ones made by hand."""

from __future__ import annotations

import pytest

from kafka08.structs import TopicPartition
from tests.histories.offsets import OffsetHistory

TP = TopicPartition("t", 0)


def history_of(handed: list[int], kafka: list[int | None]) -> OffsetHistory:
    history = OffsetHistory()
    for offset in handed:
        history.handed(TP, offset)
    for look in kafka:
        history.committed("Kafka", TP, look)
    return history


def test_a_good_history_has_no_problem() -> None:
    """Repetitions and an offset that is gone for a moment are counted, not complained about."""
    history = history_of([0, 1, 2, 1, 2, 3], [None, 1, None, 1, 4])
    assert history.problems({TP: 4}) == []
    assert (history.count, history.repetitions, history.moments_without) == (6, 2, 1)


@pytest.mark.parametrize(
    ("handed", "kafka", "problem"),
    [
        ([0, 2], [], "2 was handed out, but 1 never was"),
        ([0, 2, 1], [], "2 was handed out, but 1 never was"),
        ([0], [], "1 to 3 were never handed out"),
        ([], [], "0 to 3 were never handed out"),
        ([0, 1, 2], [2, 1, 3], "went back from 2 to 1"),
        ([0, 1, 2], [2, None, 1], "went back from 2 to 1"),
        ([0, 1, 2], [3, None], "is gone"),
    ],
)
def test_each_fault_is_seen(handed: list[int], kafka: list[int | None], problem: str) -> None:
    """The checker reports one problem for one fault."""
    [found] = history_of(handed, kafka).problems({TP: 3})
    assert problem in found


@pytest.mark.parametrize(
    ("first", "second", "after", "problem"),
    [
        (2, 4, [1, 2, 3], "1 was handed out after a stop, with 2 committed"),
        (2, 1, [2, 3], "1 was committed at a stop, after 2"),
    ],
)
def test_messages_above_the_commit_at_a_stop_may_repeat(
    first: int, second: int, after: list[int], problem: str
) -> None:
    """Messages from that offset on were not committed, so their repetition is no problem."""
    history = history_of([0, 1, 2], [])
    history.stopped({TP: 2})
    history.handed(TP, 2)
    assert history.problems({TP: 3}) == []
    history = history_of([0, 1, 2], [])
    history.stopped({TP: first})
    for offset in after:
        history.handed(TP, offset)
    history.stopped({TP: second})
    [found] = history.problems({TP: 4})
    assert problem in found
