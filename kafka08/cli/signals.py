"""Waiting in the foreground until somebody wants the command to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def stop_event() -> threading.Event:
    """An event that SIGTERM and SIGINT set, instead of ending the process at once.

    A second SIGINT raises KeyboardInterrupt as usual, for a stop that hangs.
    """
    stopping = threading.Event()

    def request_stop(number: int, _: object) -> None:
        if stopping.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stopping.set()

    signal.signal(signal.SIGTERM, request_stop)
    signal.signal(signal.SIGINT, request_stop)
    return stopping


def wait_for_stop(check_alive: Callable[[], None], stopping: threading.Event | None = None) -> None:
    """Return when SIGTERM or SIGINT came, or has come to `stopping`, an earlier `stop_event`;
    `check_alive` is called each second and may raise."""
    stopping = stopping or stop_event()
    while not stopping.wait(1.0):
        check_alive()


def raise_on_terminate() -> None:
    """Make SIGTERM end the command the way Ctrl-C does, so that everything is put away."""

    def terminate(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)


class Stopped(Exception):
    """SIGTERM or SIGINT came."""


class StopRequest:
    """Lets SIGTERM and SIGINT break off a wait, but nothing that is being done between two waits.

    A second SIGINT raises KeyboardInterrupt at once, wherever it finds the program.
    """

    def __init__(self) -> None:
        self._came = False
        self._waiting = False
        signal.signal(signal.SIGTERM, self._receive)
        signal.signal(signal.SIGINT, self._receive)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around a wait: raises Stopped out of it, or before it when the signal came earlier."""
        self._waiting = True
        try:
            if self._came:
                raise Stopped
            yield
        finally:
            self._waiting = False

    def _receive(self, number: int, _: object) -> None:
        if self._came and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._came = True
        if self._waiting:
            raise Stopped
