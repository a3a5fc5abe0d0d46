"""Processes: they die at once, stop and go on, and leave nothing open."""

from __future__ import annotations

from random import Random

from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.trace import Trace

STEPS = 1000


def new_process() -> Process:
    def fail(task: str, error: BaseException) -> None:
        raise AssertionError(task) from error

    scheduler = Scheduler(Random(1), Trace(), disorder=0.5)
    return Process(scheduler, "p", "h", fail)


def test_a_dead_process_takes_no_step_and_no_finally() -> None:
    """A task that waits when its process dies does not continue, not even with its cleanup."""
    process = new_process()
    seen: list[str] = []

    def work() -> None:
        try:
            process.sleep(2.0)
            seen.append("went on")
        finally:
            seen.append("cleaned up")

    process.spawn(work, (), "work")
    process.scheduler.call_at(1.0, process.die)
    process.scheduler.run(STEPS)
    assert seen == []
    process.discard()
    assert seen == ["cleaned up"]


def test_a_stopped_process_sees_time_jump() -> None:
    """Timers that became due while it was stopped fire when it resumes."""
    process = new_process()
    seen: list[float] = []

    def work() -> None:
        process.sleep(1.0)
        seen.append(process.monotonic())

    process.spawn(work, (), "work")
    process.scheduler.call_at(0.5, process.stop)
    process.scheduler.call_at(5.0, process.resume)
    process.scheduler.run(STEPS)
    [woke] = seen
    assert 5.0 <= woke < 5.1


def test_a_cancelled_timer_takes_no_step() -> None:
    """Most timers are cancelled: their steps would slow the run down."""
    process = new_process()
    process.call_later(1.0, lambda: None).cancel()
    process.call_later(2.0, lambda: None)
    process.scheduler.run(STEPS)
    assert 1 == process.scheduler.steps
