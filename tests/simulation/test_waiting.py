"""Locks, conditions, events and queues of simulated tasks, as `threading` and `queue` have them."""

from __future__ import annotations

import queue
from collections.abc import Callable

import pytest

from kafka08.runtime.cooperative import GreenCondition, GreenEvent, GreenLock, GreenQueue
from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Scheduler
from tests.simulation.conftest import STEPS, NewProcess


@pytest.fixture
def process(new_process: NewProcess) -> Process:
    return new_process("p")


@pytest.fixture
def run(scheduler: Scheduler, process: Process) -> Callable[..., None]:
    """Run tasks to their end."""

    def run_all(*calls: Callable[[], object]) -> None:
        for call in calls:
            process.spawn(call, (), "task")
        scheduler.run(STEPS)
        assert {} == process.tasks, "a task never ended"

    return run_all


def test_a_lock_has_one_holder(process: Process, run: Callable[..., None]) -> None:
    """Tasks wait for a lock that another one holds, at most for their timeout."""
    lock, seen = GreenLock(process, reentrant=False), list[str]()

    def hold() -> None:
        with lock:
            process.sleep(2.0)
            seen.append("released")

    def wait() -> None:
        assert not lock.acquire(blocking=False)
        assert not lock.acquire(timeout=1.0)
        with lock:
            seen.append("taken")

    run(hold, wait)
    assert seen == ["released", "taken"]


def test_a_killed_waiter_passes_the_lock_on(process: Process, run: Callable[..., None]) -> None:
    """A task that is killed after the release has woken it, and before it runs, takes the lock from
    none of those that wait behind it."""
    lock, seen = GreenLock(process, reentrant=False), list[str]()

    def wait(name: str) -> None:
        with lock:
            seen.append(name)

    def hold() -> None:
        with lock:
            first = process.spawn(wait, ("first",), "first")
            process.spawn(wait, ("second",), "second")
            process.sleep(1.0)
        first.kill(block=False)

    run(hold)
    assert seen == ["second"]


def test_a_killed_waiter_leaves_the_item(process: Process, run: Callable[..., None]) -> None:
    """A task that is killed after an item has woken it leaves the item to those behind it."""
    items, seen = GreenQueue(process), list[str]()

    def wait(name: str) -> None:
        seen.append(f"{name}: {items.get()}")

    def put() -> None:
        first = process.spawn(wait, ("first",), "first")
        process.spawn(wait, ("second",), "second")
        process.sleep(1.0)
        items.put("item")
        first.kill(block=False)

    run(put)
    assert seen == ["second: item"]


def test_a_reentrant_lock_is_released_as_often_as_it_was_taken(
    process: Process, run: Callable[..., None]
) -> None:
    """A reentrant lock is free once its holder, and no other task, has released it as often as it
    took it."""
    lock, seen = GreenLock(process, reentrant=True), list[str]()

    def hold() -> None:
        lock.acquire()
        lock.acquire()
        lock.release()
        process.sleep(1.0)
        seen.append("last")
        lock.release()

    def other() -> None:
        with pytest.raises(RuntimeError):
            lock.release()
        with lock:
            seen.append("other")

    run(hold, other)
    assert seen == ["last", "other"]


def test_a_condition_releases_its_lock_while_it_waits(
    process: Process, run: Callable[..., None]
) -> None:
    """`notify` wakes one task; a wait without a notification returns False after its timeout."""
    lock = GreenLock(process, reentrant=True)
    condition, seen = GreenCondition(process, lock), list[bool]()

    def wait() -> None:
        with condition:
            seen.append(condition.wait(5.0))
            assert lock.is_held_here()

    def notify() -> None:
        process.sleep(1.0)
        with condition:
            condition.notify()

    run(wait, wait, notify)
    assert [True, False] == seen


def test_an_event_stays_set(process: Process, run: Callable[..., None]) -> None:
    """A wait returns False after its timeout, and True at once where the event was set before."""
    event, seen = GreenEvent(process), list[bool]()

    def wait() -> None:
        seen.append(event.wait(1.0))
        process.sleep(2.0)
        seen.append(event.wait(0.0))

    def set_it() -> None:
        process.sleep(2.0)
        event.set()

    run(wait, set_it)
    assert [False, True] == seen


def test_a_queue_gives_its_oldest_item(process: Process, run: Callable[..., None]) -> None:
    """`get` returns the oldest item, and raises Empty after its timeout or, without waiting, at
    once."""
    items, seen = GreenQueue(process), list[object]()

    def take() -> None:
        with pytest.raises(queue.Empty):
            items.get(timeout=1.0)
        with pytest.raises(queue.Empty):
            items.get(block=False)
        seen.extend([items.get(), items.get()])

    def put() -> None:
        process.sleep(2.0)
        items.put(1)
        items.put(2)

    run(take, put)
    assert [1, 2] == seen
