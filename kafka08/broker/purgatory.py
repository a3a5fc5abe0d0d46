"""Purgatory: requests that wait for something to happen to their partitions, or for their time.

A wait says when it is satisfied and what to do then. It is checked once when it comes, watched
under all of its keys, checked for one of them whenever that is touched, and finished exactly once:
by being satisfied, by its time, or abandoned because its client is gone. Then it leaves every watch
list at once. The JVM checks a second time after watching, to close the race between its threads;
here nothing runs between check and watch. Source: kafka.server.RequestPurgatory 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence

from kafka08.broker.timer import Timer, TimerTask

logger = logging.getLogger(__name__)


class Wait:
    """Base of what waits. Subclasses list their cases."""

    __slots__ = ("keys", "task")

    keys: Sequence[Hashable]
    task: TimerTask | None

    def is_satisfied(self) -> bool:
        """Whether the wait is over. May update what it has seen so far; never switches."""
        raise NotImplementedError

    def is_satisfied_by(self, key: Hashable) -> bool:
        """The same after something happened to `key` alone: what is known of other keys still
        holds, so a wait of many keys need not look at all of them again."""
        return self.is_satisfied()

    def finish(self) -> None:
        """Answer: satisfied, or out of time. Called at most once; never switches."""
        raise NotImplementedError


class Purgatory:
    """All waits of one kind, by key. Nothing here switches."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._watchers: dict[Hashable, dict[Wait, None]] = {}

    def __contains__(self, key: Hashable) -> bool:
        """Whether anybody waits for the key: the check that costs nothing when nobody does."""
        return key in self._watchers

    def __len__(self) -> int:
        """The number of waits."""
        return len({wait for watchers in self._watchers.values() for wait in watchers})

    def add(self, wait: Wait, keys: Sequence[Hashable], timeout_ms: float) -> bool:
        """Finish the wait now if it is satisfied (True), else watch it for at most `timeout_ms`."""
        wait.keys = keys
        wait.task = None
        if wait.is_satisfied():
            wait.finish()
            return True
        for key in keys:
            self._watchers.setdefault(key, {})[wait] = None
        wait.task = self._timer.add(timeout_ms, lambda: self._end(wait))
        return False

    def touch(self, key: Hashable) -> int:
        """Something happened to `key`: finish the waits that it satisfies; their number. A wait
        that cannot be asked is finished too, for who touched the key has nothing to do with it."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        satisfied = [wait for wait in watchers if _is_over(wait, key)]
        finished = 0
        for wait in satisfied:
            # Finishing one may answer a client and so, in the end, touch another.
            if wait.task is not None:
                self._end(wait)
                finished += 1
        return finished

    def expire(self, key: Hashable) -> None:
        """Finish every wait for `key` now, as if its time were over."""
        for wait in list(self._watchers.get(key, ())):
            if wait.task is not None:
                self._end(wait)

    def abandon(self, wait: Wait) -> None:
        """Forget the wait; it is never finished. Harmless if it is over."""
        if wait.task is not None:
            self._forget(wait)

    def _end(self, wait: Wait) -> None:
        self._forget(wait)
        try:
            wait.finish()
        except Exception:
            # Root of somebody's answer: who touched the key has nothing to do with it.
            logger.exception("Uncaught exception while finishing a waiting request")

    def _forget(self, wait: Wait) -> None:
        assert wait.task is not None
        wait.task.cancel()
        wait.task = None
        for key in wait.keys:
            watchers = self._watchers.get(key)
            if watchers is not None:
                watchers.pop(wait, None)
                if not watchers:
                    del self._watchers[key]


def _is_over(wait: Wait, key: Hashable) -> bool:
    try:
        return wait.is_satisfied_by(key)
    except Exception:
        logger.exception("Uncaught exception while looking at a waiting request")
        return True
