"""The timing wheel on a clock that the test moves."""

from __future__ import annotations

import math
import random
from functools import partial

import pytest

from kafka08.runtime.timer import Timer, TimerTask
from tests.broker.fake_runtime import FakeRuntime


def test_runs_a_task_when_it_is_due_and_not_before() -> None:
    """A task of 300 ms, which starts on a coarse level, runs at 300 ms and not before."""
    runtime = FakeRuntime()
    ran: list[float] = []
    start = runtime.now
    Timer(runtime).add(300, lambda: ran.append(runtime.now))
    runtime.advance(0.2995)
    assert [] == ran
    runtime.advance(0.0025)
    assert 1 == len(ran)
    assert 0.300 <= ran[0] - start <= 0.302


def test_runs_tasks_in_the_order_of_their_times() -> None:
    """Tasks of all levels, from 1 ms to an hour, run in order and within 2 ms of their time."""
    runtime = FakeRuntime()
    timer = Timer(runtime)
    chance = random.Random(7)
    start = runtime.now
    ran: list[tuple[float, float]] = []

    def note(delay: float) -> None:
        ran.append((delay, (runtime.now - start) * 1000))

    delays = [chance.choice([5, 50, 900, 20_000, 3_600_000]) * chance.random() for _ in range(500)]
    for delay in delays:
        timer.add(delay, partial(note, delay))
    runtime.advance(3601)
    assert sorted(delays) == sorted(delay for delay, _ in ran)
    assert all(delay <= at <= delay + 2.01 for delay, at in ran)
    assert [at for _, at in ran] == sorted(at for _, at in ran)


def test_a_cancelled_task_does_not_run() -> None:
    """A cancelled task leaves its slot at any level. A second cancel does no harm."""
    runtime = FakeRuntime()
    timer = Timer(runtime)
    ran: list[int] = []
    tasks = [timer.add(delay, lambda: ran.append(1)) for delay in (1, 30, 500, 10_000)]
    for task in tasks:
        task.cancel()
        task.cancel()
    runtime.advance(20)
    assert [] == ran


def test_an_idle_wheel_does_not_tick() -> None:
    """Ten hours without tasks set no timer. A task of one hour sets one timer for each level that
    it passes, not one per tick."""
    runtime = FakeRuntime()
    timer = Timer(runtime)
    runtime.advance(36_000)
    assert 0 == runtime.timers_set
    timer.add(3_600_000, lambda: None)
    runtime.advance(4_000)
    assert runtime.timers_set <= 8
    assert 0 == runtime.pending_calls


def test_tasks_added_after_a_long_silence_keep_their_time() -> None:
    """An empty wheel does not advance its time. A task that is added then still waits for its whole
    delay."""
    runtime = FakeRuntime()
    timer = Timer(runtime)
    timer.add(5, lambda: None)
    runtime.advance(3_600)
    ran: list[int] = []
    timer.add(100, lambda: ran.append(1))
    runtime.advance(0.099)
    assert [] == ran
    runtime.advance(0.003)
    assert [1] == ran


def test_a_task_may_add_and_cancel_others() -> None:
    """A running task may cancel another one of its slot, or add one that is due at once."""
    runtime = FakeRuntime()
    timer = Timer(runtime)
    ran: list[str] = []
    others: list[TimerTask] = []

    def first() -> None:
        ran.append("first")
        others[0].cancel()
        timer.add(0, lambda: ran.append("added"))

    timer.add(10, first)
    others.append(timer.add(10, lambda: ran.append("cancelled")))
    runtime.advance(0.1)
    assert ["first", "added"] == ran


def test_a_task_that_is_due_at_once_runs_though_the_clock_goes_on() -> None:
    """A client chooses the delay, so it may be 0 or less. The task runs even if each look at the
    clock finds the next tick."""

    class GoesOn(FakeRuntime):
        def monotonic(self) -> float:
            self.now += 0.001
            return self.now

    runtime = GoesOn()
    timer = Timer(runtime)
    ran: list[int] = []
    for delay in (0, -1, -(1 << 31)):
        timer.add(delay, partial(ran.append, delay))
        runtime.advance(0.1)
    timer.add(10_000, lambda: None)
    timer.add(0, lambda: ran.append(1))
    runtime.advance(0.1)
    assert [0, -1, -(1 << 31), 1] == ran


def test_a_negative_delay_makes_no_other_task_late() -> None:
    """While slots are due that have not run, since the event loop was busy, a task that is due
    before them all does not advance the wheel past them. (Others ran up to 8 s late.)"""
    runtime = FakeRuntime()
    timer = Timer(runtime)
    start = runtime.now
    ran: dict[int, float] = {}

    def note(due_ms: int) -> None:
        ran[due_ms] = (runtime.now - start) * 1000

    for due_ms in (600, 700, 1000, 1300, 1500, 3000, 6000):
        timer.add(due_ms, partial(note, due_ms))
    runtime.advance(0.55)
    runtime.now += 0.9
    for delay_ms in (-5000, 390, 7400):
        timer.add(delay_ms, partial(note, 1450 + delay_ms))
    runtime.advance(30)
    late = {due_ms: at - max(due_ms, 1450) for due_ms, at in ran.items()}
    assert 10 == len(late)
    assert all(-0.01 <= by <= 2.01 for by in late.values()), late


@pytest.mark.parametrize("delay_ms", [0, 1, 25, 4990, 9000])
@pytest.mark.parametrize("looks", [1, 2, 3])
def test_a_suspension_while_a_task_is_added_makes_no_other_late(looks: int, delay_ms: int) -> None:
    """The process is suspended for five seconds behind any look at the clock, while tasks wait and
    one is added, and then more are in the same turn: each runs at once, or when it is due."""

    class Suspended(FakeRuntime):
        looks_left = 0

        def monotonic(self) -> float:
            now, self.looks_left = self.now, self.looks_left - 1
            if self.looks_left == 0:
                self.now += 5
            return now

    runtime = Suspended()
    runtime.now = start = float(math.ceil(runtime.now))
    timer = Timer(runtime)
    late: dict[int, float] = {}

    def note(due_ms: int) -> None:
        late[due_ms] = (runtime.now - start) * 1000 - max(due_ms, 5000)

    for due_ms in (10, 18, 30, 300, 5010, 8100):
        timer.add(due_ms, partial(note, due_ms))
    runtime.looks_left = looks
    timer.add(delay_ms, partial(note, delay_ms))
    runtime.looks_left = 0
    for more_ms in range(100, 8000, 100):
        timer.add(more_ms, lambda: None)
    runtime.advance(30)
    assert 7 == len(late)
    assert all(by <= 2.01 for due_ms, by in late.items() if due_ms != delay_ms), late


def test_a_call_that_adds_a_late_task_delays_none_of_its_slot() -> None:
    """Of two tasks of one coarse slot the first adds one for much later, before the second has
    moved to a finer slot: the second runs in time."""
    runtime = FakeRuntime()
    timer = Timer(runtime)
    ran: list[int] = []
    begin_ms = 800 - math.ceil(runtime.now * 1000) % 400  # of a slot of 400 ms
    timer.add(begin_ms, lambda: timer.add(5000, lambda: None))
    timer.add(begin_ms + 50, partial(ran.append, 50))
    runtime.advance((begin_ms + 40) / 1000)
    assert [] == ran
    runtime.advance(0.015)
    assert [50] == ran
