"""GreenStream: a connected socket for greenlets with one timer for all of its waits.

gevent.socket starts and closes a timer for each call that waits with a timeout. A follower waits
once for each fetch, and nearly always gets the response long before the timeout. So a stream has
one timer. When it fires it compares the time with the deadline of the current wait, and starts
again if that is later.
"""

from __future__ import annotations

import math
import time
from typing import Any, Final

import gevent
import gevent.monkey
import gevent.socket

from kafka08.runtime.sockets import WaitingStream

original_socket: Final[Any] = gevent.monkey.get_original("socket", "socket")
"""The socket class before monkey patching: its calls never wait for the hub."""
READ: Final = 1
WRITE: Final = 2


class GreenStream(WaitingStream):
    """Takes over a connected gevent socket. One greenlet at a time may wait in it; `abort` wakes
    that greenlet."""

    def __init__(self, connected: gevent.socket.socket) -> None:
        super().__init__(original_socket(fileno=connected.detach()))
        self._hub: Any = gevent.get_hub()
        self._readable: Any = self._hub.loop.io(self._socket.fileno(), READ)
        self._writable: Any = self._hub.loop.io(self._socket.fileno(), WRITE)
        self._alarm: Any = None
        self._alarm_at = math.inf
        self._deadline = math.inf
        self._waiting: Any = None

    def close(self) -> None:
        for watcher in (self._readable, self._writable, self._alarm):
            if watcher is not None:
                watcher.close()
        self._alarm = None
        self._socket.close()

    def _wait(self, watcher: Any) -> None:
        """Wait until the socket is ready. TimeoutError after the timeout; with a timeout of 0 the
        BlockingIOError that is being handled."""
        seconds = self._seconds
        if seconds is not None:
            if seconds <= 0:
                raise  # noqa: PLE0704 - called where BlockingIOError is handled
            self._deadline = time.monotonic() + seconds
            if self._alarm_at > self._deadline:
                self._set_alarm(seconds)
        self._waiting = gevent.getcurrent()
        try:
            self._hub.wait(watcher)
        finally:
            self._waiting = None
            self._deadline = math.inf

    def _set_alarm(self, seconds: float) -> None:
        if self._alarm is not None:
            self._alarm.close()
        self._alarm_at = time.monotonic() + seconds
        self._alarm = self._hub.loop.timer(max(seconds, 1e-6))
        self._alarm.start(self._ring, update=True)

    def _ring(self) -> None:
        """Runs in the hub: end the current wait if it is due, else start the timer for its
        deadline."""
        self._alarm.close()
        self._alarm, self._alarm_at = None, math.inf
        left = self._deadline - time.monotonic()
        if self._waiting is None or left == math.inf:
            return
        if left > 0:
            self._set_alarm(left)
        else:
            self._waiting.throw(TimeoutError("timed out"))
