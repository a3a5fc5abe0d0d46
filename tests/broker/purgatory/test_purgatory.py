"""Delayed operations complete, time out or are cancelled, and then leave every watch list."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kafka08.broker.purgatory.purgatory import (
    EMPTY_QUEUES_MAX,
    DelayedOperation,
    KeyedPurgatory,
    SmallPurgatory,
)
from kafka08.runtime.timer import Timer
from tests.broker.fake_runtime import FakeRuntime


class Note(DelayedOperation):
    """A delayed operation that is satisfied when the test says so, and counts its completions."""

    def __init__(self) -> None:
        self.satisfied = False
        self.finished = 0

    def is_satisfied(self) -> bool:
        return self.satisfied

    def complete(self) -> None:
        self.finished += 1


def setup() -> tuple[FakeRuntime, KeyedPurgatory]:
    runtime = FakeRuntime()
    return runtime, KeyedPurgatory(Timer(runtime))


def test_a_wait_that_is_satisfied_at_once_is_never_watched() -> None:
    """`add` completes an operation that is satisfied at once, returns that, and watches nothing."""
    _, purgatory = setup()
    wait = Note()
    wait.satisfied = True
    assert purgatory.add(wait, ["a"], 100) is True
    assert 1 == wait.finished
    assert "a" not in purgatory


def test_touching_any_key_finishes_a_satisfied_wait_once() -> None:
    """An operation with two keys, both checked, and whose time passes, completes once."""
    runtime, purgatory = setup()
    wait = Note()
    assert purgatory.add(wait, ["a", "b"], 100) is False
    assert 0 == purgatory.check_and_complete("a")
    wait.satisfied = True
    assert 1 == purgatory.check_and_complete("b")
    assert 0 == purgatory.check_and_complete("a")
    runtime.advance(1)
    assert 1 == wait.finished
    assert 0 == len(purgatory)


def test_a_wait_that_is_never_satisfied_ends_with_its_time() -> None:
    """An operation that is never satisfied completes once, at its timeout, and leaves every watch
    list."""
    runtime, purgatory = setup()
    wait = Note()
    purgatory.add(wait, ["a", "b"], 50)
    runtime.advance(0.049)
    assert 0 == wait.finished
    runtime.advance(0.003)
    assert 1 == wait.finished
    assert "a" not in purgatory
    assert "b" not in purgatory


def test_an_abandoned_wait_is_never_finished() -> None:
    """If its client disconnects, the operation never completes, and nothing of it is kept."""
    runtime, purgatory = setup()
    wait = Note()
    purgatory.add(wait, ["a"], 50)
    purgatory.abandon(wait)
    purgatory.abandon(wait)
    wait.satisfied = True
    assert 0 == purgatory.check_and_complete("a")
    runtime.advance(1)
    assert 0 == wait.finished
    assert 0 == len(purgatory)
    assert 0 == runtime.pending_calls


def test_nothing_is_left_of_a_hundred_thousand_waits() -> None:
    """After a hundred thousand operations every list is empty. (A prototype kept expired ones.)"""
    runtime, purgatory = setup()
    for number in range(100_000):
        purgatory.add(Note(), [number % 10, "all"], 1 + number % 500)
        if number % 1000 == 0:
            runtime.advance(0.01)
    runtime.advance(1)
    assert 0 == len(purgatory)
    assert "all" not in purgatory
    assert 0 == runtime.pending_calls


def test_finishing_one_wait_may_finish_another() -> None:
    """A response may lead to an append that checks the same key. Each operation completes once."""
    _, purgatory = setup()
    second = Note()

    class Chain(Note):
        def complete(self) -> None:
            super().complete()
            purgatory.check_and_complete("a")

    first = Chain()
    purgatory.add(first, ["a"], 100)
    purgatory.add(second, ["a"], 100)
    first.satisfied = second.satisfied = True
    purgatory.check_and_complete("a")
    assert (1, 1) == (first.finished, second.finished)


def test_a_wait_that_cannot_be_asked_is_finished_alone() -> None:
    """An operation whose check raises completes alone. The caller gets no error, and the others are
    checked."""
    _, purgatory = setup()

    class Broken(Note):
        broken = False

        def is_satisfied(self) -> bool:
            assert not self.broken, "as a bug would"
            return False

    broken, good = Broken(), Note()
    purgatory.add(broken, ["a"], 100)
    purgatory.add(good, ["a"], 100)
    broken.broken = good.satisfied = True
    assert 2 == purgatory.check_and_complete("a")
    assert (1, 1) == (broken.finished, good.finished)
    assert 0 == len(purgatory)


def test_all_waits_for_a_key_can_be_ended() -> None:
    """All operations of a key can be completed as if they had timed out. Others keep waiting."""
    _, purgatory = setup()
    waits = [Note(), Note()]
    for wait, keys in zip(waits, (["a", "b"], ["b"]), strict=True):
        purgatory.add(wait, keys, 100)
    purgatory.expire("a")
    assert [1, 0] == [wait.finished for wait in waits]
    purgatory.expire("a")
    assert 1 == len(purgatory)


def test_those_that_time_out_are_counted() -> None:
    """Not those that are satisfied, abandoned or ended by another event."""
    runtime, purgatory = setup()
    waits = [Note() for _ in range(4)]
    for number, wait in enumerate(waits):
        purgatory.add(wait, [number], 100)
    waits[0].satisfied = True
    purgatory.check_and_complete(0)
    purgatory.abandon(waits[1])
    purgatory.expire(2)
    assert 0 == purgatory.expired
    runtime.advance(1)
    assert (1, 1) == (purgatory.expired, waits[3].finished)


def test_each_of_equal_timeouts_ends_at_its_own_time() -> None:
    """Also those that were added while an earlier one waited, and after one that was abandoned."""
    runtime, purgatory = setup()
    waits = [Note() for _ in range(3)]
    for wait in waits:
        purgatory.add(wait, ["a"], 100)
        runtime.advance(0.03)
    purgatory.abandon(waits[0])
    expected = ((0.035, [0, 0, 0]), (0.01, [0, 1, 0]), (0.02, [0, 1, 0]), (0.01, [0, 1, 1]))
    for seconds, finished in expected:
        runtime.advance(seconds)
        assert finished == [wait.finished for wait in waits]


def test_timeouts_that_nothing_waits_for_are_forgotten() -> None:
    """Clients choose them: a thousand different ones of up to 24 days leave a few queues, and one
    call of the runtime."""
    runtime, purgatory = setup()
    for number in range(1000):
        wait = Note()
        purgatory.add(wait, ["a"], 2**31 - number)
        purgatory.abandon(wait)
    assert len(purgatory._queues) <= EMPTY_QUEUES_MAX
    assert runtime.pending_calls <= 1


def test_a_small_purgatory_asks_its_operations_after_an_event() -> None:
    """It completes those that are satisfied and concerned, each once, whatever their timeouts."""
    purgatory = SmallPurgatory(Timer(FakeRuntime()))
    waits = [Note(), Note(), Note()]
    purgatory.add(waits[0], ["a"], 50)
    purgatory.add(waits[1], ["a", "b"], 100)
    purgatory.add(waits[2], ["b"], 50)
    assert 0 == purgatory.check_and_complete_all(["a", "b"])
    for wait in waits:
        wait.satisfied = True
    assert "b" in purgatory
    assert 0 == purgatory.check_and_complete("c")
    assert 2 == purgatory.check_and_complete("a")
    assert [1, 1, 0] == [wait.finished for wait in waits]
    assert "a" not in purgatory
    assert 1 == purgatory.check_and_complete_all(["c", "b"])
    assert 0 == len(purgatory)


def test_a_small_purgatory_expires_a_key_and_times_out() -> None:
    """Operations of that key end at once, others at their timeouts."""
    runtime = FakeRuntime()
    purgatory = SmallPurgatory(Timer(runtime))
    first, second = Note(), Note()
    purgatory.add(first, ["a"], 50)
    purgatory.add(second, ["b"], 50)
    purgatory.expire("a")
    assert [1, 0] == [first.finished, second.finished]
    runtime.advance(0.06)
    assert [1, 1] == [first.finished, second.finished]
    assert 1 == purgatory.expired


def test_a_check_that_fails_completes_its_operation_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its error does not reach the one who changed the key."""

    class Broken(Note):
        def is_satisfied_by_any(self, keys: Iterable[object]) -> bool:
            raise ValueError("broken")

    purgatory = SmallPurgatory(Timer(FakeRuntime()))
    broken, other = Broken(), Note()
    for wait in (broken, other):
        purgatory.add(wait, ["a"], 50)
    other.satisfied = True
    assert 2 == purgatory.check_and_complete_all(["a"])
    assert [1, 1] == [broken.finished, other.finished]
    assert "while checking a delayed operation" in caplog.text


def test_a_timeout_that_brings_another_wait_delays_none() -> None:
    """The response to a request that timed out may bring the client's next one, with the same
    timeout: others that were parked in between time out when they are due."""
    runtime, purgatory = setup()
    between, following = Note(), Note()

    class Brings(Note):
        def complete(self) -> None:
            super().complete()
            purgatory.add(following, ["a"], 100)

    purgatory.add(Brings(), ["a"], 100)
    runtime.advance(0.05)
    purgatory.add(between, ["b"], 100)
    runtime.advance(0.098)
    assert (0, 0) == (between.finished, following.finished)
    runtime.advance(0.005)
    assert (1, 0) == (between.finished, following.finished)
    runtime.advance(0.06)
    assert 1 == following.finished
