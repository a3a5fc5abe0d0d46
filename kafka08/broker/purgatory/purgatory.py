"""Purgatory: requests that wait for a change of their partitions, or for their timeout.

An operation knows when it is satisfied and how to complete. It is checked once when it is added,
then watched under all of its keys and checked again at every event of one of them. It is completed
exactly once, because it is satisfied or times out, or it is abandoned because its client is gone.
Then it leaves every watch list at once. The JVM checks a second time after watching, to close the
race between its threads; here nothing runs between check and watch.
Source: kafka.server.RequestPurgatory 0.8.2.2.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, Final

from kafka08.runtime.timer import Timer, TimerTask
from kafka08.runtime.uncaught import uncaught

logger = logging.getLogger(__name__)

EMPTY_QUEUES_MAX: Final = 8
"""Timeouts of which a queue is kept while nothing waits so long: clients use few different ones."""

WhenClosed = Callable[[Callable[[], object]], object]
"""Takes what is to be called if the client goes away before its response."""


class DelayedOperation:
    """Base of the requests that wait. Subclasses document their conditions.

    complete   send the response: it is satisfied, or timed out; called at most once, never switches
    """

    __slots__ = ("complete", "keys", "queue")

    complete: Callable[[], object]
    keys: Collection[Hashable]
    queue: TimeoutQueue | None

    def is_satisfied(self) -> bool:
        """Whether it can complete. May record what it has seen; never switches."""
        raise NotImplementedError

    def is_satisfied_by(self, key: Any) -> bool:
        """Whether it can complete after an event of `key`: the state of other keys still holds, so
        an operation with many keys need not check all of them again."""
        return self.is_satisfied()

    def watches(self, key: Any) -> bool:
        """Whether an event of this key concerns it."""
        return key in self.keys

    def is_satisfied_by_any(self, keys: Iterable[Any]) -> bool:
        """`is_satisfied_by` for those of these keys that it watches."""
        return any(self.watches(key) and self.is_satisfied_by(key) for key in keys)


class TimeoutQueue:
    """Operations that wait equally long, so that the first one added is the first to time out: they
    need one task of the timer, not one each. `time_out` is called with each that is due."""

    __slots__ = ("_monotonic", "_time_out", "_timer", "alarm", "delay_ms", "due")

    def __init__(
        self, timer: Timer, delay_ms: float, time_out: Callable[[DelayedOperation], object]
    ) -> None:
        self.delay_ms = delay_ms
        self._timer = timer
        self._monotonic = timer.monotonic
        self._time_out = time_out
        self.due: dict[DelayedOperation, int] = {}
        """When each is due, as Timer counts. In this order."""
        self.alarm: TimerTask | None = None

    def __len__(self) -> int:
        return len(self.due)

    def set_alarm(self) -> None:
        """Set the alarm for the first operation since it was empty."""
        self.alarm = self._timer.add(self.delay_ms, self._ring)

    def cancel(self) -> None:
        """Give up the alarm of an empty queue."""
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None

    def _ring(self) -> None:
        # The alarm counts as set meanwhile: a completed operation may bring the next one, which is
        # due after those that wait already.
        now = self._monotonic() * 1000
        try:
            while self.due and next(iter(self.due.values())) <= now:
                self._time_out(next(iter(self.due)))
        finally:
            self.alarm = None
            if self.due:
                first = next(iter(self.due.values()))
                self.alarm = self._timer.add(max(0.0, first - now), self._ring)


class Purgatory:
    """Operations of one kind that wait. Subclasses find those that an event concerns. Nothing here
    switches.

    count     operations that wait
    expired   operations that timed out
    """

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._monotonic = timer.monotonic
        self._queues: dict[float, TimeoutQueue] = {}
        """By timeout in ms."""
        self.count = 0
        self.expired = 0

    def __contains__(self, key: Hashable) -> bool:
        """Whether an operation watches the key."""
        raise NotImplementedError

    def __len__(self) -> int:
        """The number of operations."""
        return self.count

    def add(
        self, operation: DelayedOperation, keys: Collection[Hashable], timeout_ms: float
    ) -> bool:
        """Complete it now if it is satisfied (True), else watch it for at most `timeout_ms`."""
        operation.queue = None
        if operation.is_satisfied():
            operation.complete()
            return True
        self.watch(operation, keys, timeout_ms)
        return False

    def watch(
        self, operation: DelayedOperation, keys: Collection[Hashable], timeout_ms: float
    ) -> None:
        """`add` an operation of which the caller knows that it is not satisfied."""
        operation.keys = keys
        self._list(operation)
        queue = self._queues.get(timeout_ms)
        if queue is None:
            queue = TimeoutQueue(self._timer, timeout_ms, self._time_out)
            self._queues[timeout_ms] = queue
        operation.queue = queue
        queue.due[operation] = math.ceil(self._monotonic() * 1000 + timeout_ms)
        if queue.alarm is None:
            queue.set_alarm()
        self.count += 1

    def check_and_complete(self, key: Hashable) -> int:
        """After an event of `key`: complete the operations that it satisfies; returns their number.
        One whose check raises is completed too: its error must not reach our caller."""
        raise NotImplementedError

    def check_and_complete_all(self, keys: Iterable[Hashable]) -> int:
        """`check_and_complete` for all of these keys."""
        raise NotImplementedError

    def expire(self, key: Hashable) -> None:
        """Complete every operation for `key` now, as if it had timed out."""
        raise NotImplementedError

    def abandon(self, operation: DelayedOperation) -> None:
        """Remove it without completing it. Harmless if it is over."""
        if operation.queue is not None:
            self._end(operation, completes=False)

    def _time_out(self, operation: DelayedOperation) -> None:
        self.expired += 1
        self._end(operation)

    def _end(self, operation: DelayedOperation, *, completes: bool = True) -> None:
        queue = operation.queue
        assert queue is not None
        operation.queue = None
        # The alarm stays: the operations of a busy broker come and go faster than it rings.
        del queue.due[operation]
        if len(self._queues) > EMPTY_QUEUES_MAX and not queue:
            queue.cancel()
            del self._queues[queue.delay_ms]
        self.count -= 1
        self._unlist(operation)
        if completes:
            try:
                operation.complete()
            except Exception as error:  # noqa: BLE001 - see `_failed`
                self._failed(error, "completing")

    def _failed(self, error: Exception, action: str) -> None:
        """Our caller changed a key, and has nothing to do with the response of an operation."""
        text = "Uncaught exception while %s a delayed operation"
        uncaught(self._timer.runtime, error, logger, text, action)

    def _list(self, operation: DelayedOperation) -> None:
        """Note that an operation begins to wait."""

    def _unlist(self, operation: DelayedOperation) -> None:
        """Note that it no longer waits."""


class KeyedPurgatory(Purgatory):
    """Keeps the operations of each key in a list, so that an event checks those of its key alone,
    mostly none."""

    def __init__(self, timer: Timer) -> None:
        super().__init__(timer)
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._watchers

    def check_and_complete(self, key: Hashable) -> int:
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        satisfied = []
        for operation in watchers:
            try:
                if operation.is_satisfied_by(key):
                    satisfied.append(operation)
            except Exception as error:  # noqa: BLE001 - see `_failed`
                self._failed(error, "checking")
                satisfied.append(operation)
        completed = 0
        for operation in satisfied:
            # Completing one may send a response and so, in the end, complete another.
            if operation.queue is not None:
                self._end(operation)
                completed += 1
        return completed

    def check_and_complete_all(self, keys: Iterable[Hashable]) -> int:
        watchers = self._watchers
        completed = 0
        if watchers:
            for key in keys:
                if key in watchers:
                    completed += self.check_and_complete(key)
        return completed

    def expire(self, key: Hashable) -> None:
        for operation in list(self._watchers.get(key, ())):
            if operation.queue is not None:
                self._end(operation)

    def _list(self, operation: DelayedOperation) -> None:
        for key in operation.keys:
            watchers = self._watchers.get(key)
            if watchers is None:
                self._watchers[key] = {operation: None}
            else:
                watchers[operation] = None

    def _unlist(self, operation: DelayedOperation) -> None:
        for key in operation.keys:
            watchers = self._watchers.get(key)
            if watchers is not None:
                watchers.pop(operation, None)
                if not watchers:
                    del self._watchers[key]


class SmallPurgatory(Purgatory):
    """For few operations with many keys each, as followers' fetches: it has no watch lists, which
    would be created again for each of them, but asks all operations after an event."""

    def __contains__(self, key: Hashable) -> bool:
        return any(
            operation.watches(key) for queue in self._queues.values() for operation in queue.due
        )

    def check_and_complete(self, key: Hashable) -> int:
        return self.check_and_complete_all((key,))

    def check_and_complete_all(self, keys: Iterable[Hashable]) -> int:
        completed = 0
        operations: list[DelayedOperation] = []
        for queue in self._queues.values():
            # A copy: completing one may add and end others.
            operations += queue.due
        for operation in operations:
            try:
                satisfied = operation.is_satisfied_by_any(keys)
            except Exception as error:  # noqa: BLE001 - see `_failed`
                self._failed(error, "checking")
                satisfied = True
            if satisfied and operation.queue is not None:
                self._end(operation)
                completed += 1
        return completed

    def expire(self, key: Hashable) -> None:
        for queue in list(self._queues.values()):
            for operation in list(queue.due):
                if operation.watches(key) and operation.queue is not None:
                    self._end(operation)
