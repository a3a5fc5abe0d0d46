"""EpollPoller: a `Poller` on Linux's epoll itself, without the `selectors` module.

A producer that sends one record at a time waits twice for each: for the record, and for its
response. `selectors` takes ten calls more for that, and a socket pair has to be read.
"""

from __future__ import annotations

import io
import os
import select
import sys
import threading
from typing import Any, Final

from kafka08.runtime.transport import Readiness

_ONE: Final = (1).to_bytes(8, sys.byteorder)


class EpollPoller:
    """An eventfd ends its wait. It is edge-triggered: nothing has to read it."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._wake_ups = io.FileIO(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC), "wb")
        self._epoll.register(self._wake_ups, select.EPOLLIN | select.EPOLLET)
        self._writing = threading.RLock()  # a signal's handler may call wake_up in one
        self._is_closed = False
        self._watched: dict[int, tuple[object, int]] = {}
        """File descriptor → key and events."""

    def watch(self, stream: Any, key: object, *, read: bool, write: bool) -> None:
        events = select.EPOLLIN * read | select.EPOLLOUT * write
        if not events:
            self.forget(stream)
            return
        descriptor = stream.fileno()
        known = self._watched.get(descriptor)
        if known is None:
            self._epoll.register(descriptor, events)
        elif known[1] != events:
            self._epoll.modify(descriptor, events)
        self._watched[descriptor] = (key, events)

    def forget(self, stream: Any) -> None:
        descriptor = stream.fileno()
        if self._watched.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def fileno(self) -> int:
        """Readable while a stream is ready."""
        return self._epoll.fileno()

    def poll(self, timeout: float | None) -> list[Readiness]:
        ready = []
        for descriptor, events in self._epoll.poll(timeout, len(self._watched) + 1):
            known = self._watched.get(descriptor)
            if known is not None:
                # The next read or write raises an error or sees a hang-up.
                readable, writable = events & ~select.EPOLLOUT, events & ~select.EPOLLIN
                ready.append(Readiness(known[0], bool(readable), bool(writable)))
        return ready

    def wake_up(self) -> None:
        with self._writing:
            if not self._is_closed:
                self._wake_ups.write(_ONE)
        if self._is_closed:
            self._close_wake_ups()

    def close(self) -> None:
        self._is_closed = True
        self._epoll.close()
        self._close_wake_ups()

    def _close_wake_ups(self) -> None:
        """Not while another thread writes, since its descriptor might be another file's by then:
        that thread does it then."""
        if self._writing.acquire(blocking=False):
            try:
                self._wake_ups.close()
            finally:
                self._writing.release()


def has_epoll() -> bool:
    """Not so on other systems than Linux, nor in a program that gevent has patched."""
    return hasattr(select, "epoll") and hasattr(os, "eventfd")
