"""Locks, conditions, events and queues for tasks of one thread, which switch only where they wait.

Their host suspends tasks: the event loop of asyncio, or a simulated process. Names and results are
those of `threading` and `queue`.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Ticket(Protocol):
    """One wait of one task, which ends once: by a wake-up, its timeout, or the end of its task."""

    def wake(self, value: Any = True) -> bool:
        """End the wait with this result. False if it has ended already."""


class Host(Protocol):
    """Suspends tasks and wakes them."""

    @property
    def is_dead(self) -> bool:
        """Whether its tasks will never go on: their stacks are being unwound."""

    def monotonic(self) -> float: ...

    def current_task(self) -> object:
        """The calling task; of code outside of all tasks always the same object."""

    def wait(self, waiters: list[Any], timeout: float | None) -> Any:
        """Suspend the calling task with a ticket in this list. Returns the value of the wake-up, or
        False after `timeout` seconds; the ticket is then removed from the list."""


def wake_one(waiters: list[Any]) -> None:
    """End the first wait that has not ended."""
    while waiters and not waiters.pop(0).wake():
        pass


class GreenEvent:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._is_set = False
        self._waiters: list[Any] = []

    def set(self) -> None:
        self._is_set = True
        waiters, self._waiters = self._waiters, []
        for ticket in waiters:
            ticket.wake()

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            self._host.wait(self._waiters, timeout)
        return self._is_set


class GreenLock:
    """A lock. The first caller after a release takes it, so a waiting task may be overtaken."""

    def __init__(self, host: Host, *, reentrant: bool) -> None:
        self._host = host
        self._reentrant = reentrant
        self._holder: object = None
        self._depth = 0
        self._waiters: list[Any] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = self._host.current_task()
        if self._holder is not None:
            if self._reentrant and self._holder is me:
                self._depth += 1
                return True
            if not (blocking and self._await_release(timeout)):
                return False
        self._holder, self._depth = me, 1
        return True

    def _await_release(self, timeout: float) -> bool:
        """Wait until it is free; False after so many seconds, if not negative."""
        deadline = None if timeout < 0 else self._host.monotonic() + timeout
        while self._holder is not None:
            left = None if deadline is None else deadline - self._host.monotonic()
            if left is not None and left <= 0:
                return False
            try:
                self._host.wait(self._waiters, left)
            except BaseException:
                if self._holder is None and not self._host.is_dead:
                    wake_one(self._waiters)  # it was woken first, and killed then
                raise
        return True

    def release(self) -> None:
        if self._host.is_dead:
            return
        if self._holder is None:
            raise RuntimeError("release of a lock that is not held")
        if self._reentrant and not self.is_held_here():
            raise RuntimeError("release of a lock that another task holds")
        self._depth -= 1
        if not self._depth:
            self._holder = None
            wake_one(self._waiters)

    def is_held_here(self) -> bool:
        """Whether the caller holds it; of a plain lock, whether any task does."""
        me = self._host.current_task()
        return self._holder is not None and (not self._reentrant or self._holder is me)

    def release_all(self) -> int:
        """Release it completely. Returns its depth."""
        depth, self._depth = self._depth, 1
        self.release()
        return depth

    def acquire_all(self, depth: int) -> None:
        self.acquire()
        self._depth = depth

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class GreenCondition:
    def __init__(self, host: Host, lock: GreenLock) -> None:
        self._host = host
        self._lock = lock
        self._waiters: list[Any] = []
        self.acquire = lock.acquire
        self.release = lock.release

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        if not self._lock.is_held_here():
            raise RuntimeError("wait without the lock")
        depth = self._lock.release_all()
        try:
            return bool(self._host.wait(self._waiters, timeout))
        finally:
            if not self._host.is_dead:
                self._lock.acquire_all(depth)

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        end = None if timeout is None else self._host.monotonic() + timeout
        result = predicate()
        while not result:
            left = None if end is None else end - self._host.monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        if not self._lock.is_held_here() and not self._host.is_dead:
            raise RuntimeError("notify without the lock")
        while n and self._waiters:
            n -= self._waiters.pop(0).wake()

    def notify_all(self) -> None:
        self.notify(len(self._waiters))


class GreenQueue:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._items: deque[Any] = deque()
        self._waiters: list[Any] = []

    def put(self, item: Any) -> None:
        self._items.append(item)
        wake_one(self._waiters)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        end = None if timeout is None else self._host.monotonic() + timeout
        while not self._items:
            left = None if end is None else end - self._host.monotonic()
            if not block or (left is not None and left <= 0):
                raise queue.Empty
            try:
                self._host.wait(self._waiters, left)
            except BaseException:
                if self._items and not self._host.is_dead:
                    wake_one(self._waiters)  # it was woken first, and killed then
                raise
        return self._items.popleft()
