"""The order of tasks, and the simulated time."""

from __future__ import annotations

from random import Random

from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Scheduler, Timer
from kafka08.simulation.trace import Trace
from tests.simulation.conftest import STEPS, NewProcess


def order_of(scheduler: Scheduler, new_process: NewProcess, count: int = 20) -> list[int]:
    """The order in which tasks run that are all ready at once."""
    process, seen = new_process("p"), list[int]()
    for number in range(count):
        process.spawn(seen.append, (number,), str(number))
    scheduler.run(STEPS)
    return seen


def test_time_jumps_to_the_next_timer(scheduler: Scheduler) -> None:
    """Time jumps from timer to timer; timers of one time keep their order, and a cancelled one is
    not called."""
    seen: list[tuple[float, str]] = []
    for at, name in [(5.0, "late"), (1.0, "a"), (1.0, "b"), (2.0, "cancelled")]:
        timer = Timer(lambda name: seen.append((scheduler.now, name)), (name,))
        scheduler.call_at(at, timer.run)
        if name == "cancelled":
            timer.cancel()
    assert scheduler.run(STEPS) is False, "nothing is left to do"
    assert seen == [(1.0, "a"), (1.0, "b"), (5.0, "late")]


def test_without_disorder_the_longest_waiting_task_runs(
    scheduler: Scheduler, new_process: NewProcess
) -> None:
    """Without disorder tasks run in the order in which they became ready."""
    assert list(range(20)) == order_of(scheduler, new_process)


def in_disorder(seed: int) -> tuple[Scheduler, Process]:
    """All is drawn; a process to run tasks in."""

    def fail(task: str, error: BaseException) -> None:
        raise AssertionError(task) from error

    scheduler = Scheduler(Random(seed), Trace(), disorder=1.0)
    return scheduler, Process(scheduler, "p", "p", fail)


def test_disorder_is_drawn_from_the_seed() -> None:
    """A seed determines the order of tasks, and another seed leads to another order."""

    def drawn(seed: int) -> list[int]:
        scheduler, process = in_disorder(seed)
        return order_of(scheduler, lambda _: process)

    assert drawn(1) == drawn(1) != drawn(2)
    assert sorted(drawn(1)) == list(range(20))


def test_disorder_is_limited_to_its_windows() -> None:
    """Before and after the windows tasks run in plain order."""
    scheduler, process = in_disorder(1)
    scheduler.disorder_within([(10.0, 20.0)])
    orders: list[list[int]] = []

    def spawn() -> None:
        for at in (5.0, 15.0, 30.0):
            process.sleep(at - process.monotonic())
            seen = list[int]()
            orders.append(seen)
            for number in range(20):
                process.spawn(seen.append, (number,), "task")

    process.spawn(spawn, (), "spawn")
    scheduler.run(STEPS)
    plain = list(range(20))
    assert [True, False, True] == [order == plain for order in orders]


def test_a_loop_that_never_waits_cannot_hold_the_clock(
    scheduler: Scheduler, new_process: NewProcess
) -> None:
    """Each step costs a little time, and the steps have a limit."""
    process = new_process("p")

    def spin() -> None:
        while True:
            process.sleep(0)

    process.spawn(spin, (), "spin")
    assert scheduler.run(STEPS) is False
    assert scheduler.now > 0
