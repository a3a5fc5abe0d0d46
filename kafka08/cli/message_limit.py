"""The number of messages that may still be printed, shared by several streams."""

from __future__ import annotations

import threading
from collections import deque


class MessageLimit:
    """Distributes parts of `limit`, of at most `part` messages each; None: no limit. Thread-safe.

    A stream that takes a part gives back what it did not use, so the used parts add up to the limit
    exactly. Waiting streams are served in order of arrival: a stream without messages cannot keep
    the last part from another one.
    """

    def __init__(self, limit: int | None, part: int, shares: int) -> None:
        """`shares` streams take parts; each gets about its share of the rest."""
        self._left = limit
        self._part = part
        self._shares = shares
        self._condition = threading.Condition()
        self._waiting: deque[object] = deque()

    def take(self, timeout_s: float) -> int:
        """A part; 0 on timeout."""
        if self._left is None:
            return self._part
        turn = object()
        with self._condition:
            self._waiting.append(turn)
            self._condition.wait_for(
                lambda: self._waiting[0] is turn and bool(self._left), timeout_s
            )
            is_first = self._waiting[0] is turn
            self._waiting.remove(turn)
            self._condition.notify_all()
            if not is_first or not self._left:
                return 0
            taken = min(self._part, max(1, self._left // self._shares))
            self._left -= taken
            return taken

    def give_back(self, count: int) -> None:
        """Return `count` unused messages of a part."""
        if self._left is None:
            return
        with self._condition:
            self._left += count
            self._condition.notify_all()
