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
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from kafka08.broker.timer import Timer, TimerTask

logger = logging.getLogger(__name__)


class DelayedOperation:
    """Base of the requests that wait. Subclasses document their conditions."""

    __slots__ = ("keys", "task")

    keys: Sequence[Hashable]
    task: TimerTask | None

    def is_satisfied(self) -> bool:
        """Whether it can complete. May record what it has seen; never switches."""
        raise NotImplementedError

    def is_satisfied_by(self, key: Any) -> bool:
        """The same after an event of `key` alone: the recorded state of other keys still holds, so
        an operation with many keys need not check all of them again."""
        return self.is_satisfied()

    def complete(self) -> None:
        """Send the response: it is satisfied, or timed out. Called at most once; never switches."""
        raise NotImplementedError


class Purgatory:
    """All operations of one kind, by key. Nothing here switches.

    count     operations that wait
    expired   operations that timed out
    """

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self.count = 0
        self.expired = 0

    def __contains__(self, key: Hashable) -> bool:
        """Whether an operation watches the key: a cheap check, mostly False."""
        return key in self._watchers

    def __len__(self) -> int:
        """The number of operations."""
        return self.count

    def add(self, operation: DelayedOperation, keys: Sequence[Hashable], timeout_ms: float) -> bool:
        """Complete it now if it is satisfied (True), else watch it for at most `timeout_ms`."""
        operation.task = None
        if operation.is_satisfied():
            operation.complete()
            return True
        self.watch(operation, keys, timeout_ms)
        return False

    def watch(
        self, operation: DelayedOperation, keys: Sequence[Hashable], timeout_ms: float
    ) -> None:
        """`add` an operation of which the caller knows that it is not satisfied."""
        operation.keys = keys
        for key in keys:
            watchers = self._watchers.get(key)
            if watchers is None:
                self._watchers[key] = {operation: None}
            else:
                watchers[operation] = None
        operation.task = self._timer.add(timeout_ms, partial(self._time_out, operation))
        self.count += 1

    def check_and_complete(self, key: Hashable) -> int:
        """After an event of `key`: complete the operations that it satisfies; returns their number.
        One whose check raises is completed too: its error must not reach our caller."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        satisfied = []
        for operation in watchers:
            try:
                if operation.is_satisfied_by(key):
                    satisfied.append(operation)
            except Exception:
                logger.exception("Uncaught exception while checking a delayed operation")
                satisfied.append(operation)
        completed = 0
        for operation in satisfied:
            # Completing one may send a response and so, in the end, complete another.
            if operation.task is not None:
                self._end(operation)
                completed += 1
        return completed

    def check_and_complete_all(self, keys: Iterable[Hashable]) -> None:
        """`check_and_complete` for all of these keys."""
        watchers = self._watchers
        if watchers:
            for key in keys:
                if key in watchers:
                    self.check_and_complete(key)

    def expire(self, key: Hashable) -> None:
        """Complete every operation for `key` now, as if it had timed out."""
        for operation in list(self._watchers.get(key, ())):
            if operation.task is not None:
                self._end(operation)

    def abandon(self, operation: DelayedOperation) -> None:
        """Remove it without completing it. Harmless if it is over."""
        if operation.task is not None:
            self._forget(operation)

    def _time_out(self, operation: DelayedOperation) -> None:
        self.expired += 1
        self._end(operation)

    def _end(self, operation: DelayedOperation) -> None:
        self._forget(operation)
        try:
            operation.complete()
        except Exception:
            # Our caller changed the key and has nothing to do with this response.
            logger.exception("Uncaught exception while completing a delayed operation")

    def _forget(self, operation: DelayedOperation) -> None:
        assert operation.task is not None
        operation.task.cancel()
        operation.task = None
        self.count -= 1
        for key in operation.keys:
            watchers = self._watchers.get(key)
            if watchers is not None:
                watchers.pop(operation, None)
                if not watchers:
                    del self._watchers[key]
