"""The effect of SIGTERM, SIGINT and SIGHUP on a command.

They interrupt it as Ctrl-C does, from its first import on (`interrupt_on_stop_signals`). A command
that stops in its own way is marked with `handles_stop_signals`; signals for it are held until it
makes a `StopRequest`.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from typing import Any, Final, TypeVar

import click

from kafka08.stop_signals import handle_stop_signals, stop_was_requested

TICK_S: Final = 0.5
"""How often a wait of the main thread looks whether a signal came."""

Callback = TypeVar("Callback", bound=Callable[..., Any])

_handling: set[Callable[..., Any]] = set()


def handles_stop_signals(callback: Callback) -> Callback:
    """Mark a command's function: its first statement after imports takes over the signals."""
    _handling.add(callback)
    return callback


def settle_stop_signals(
    ctx: click.Context, command: click.Command | None, arguments: list[str]
) -> None:
    """Let signals interrupt the command that is about to run, or the subcommand at the start of
    `arguments`. For marked ones they stay held. KeyboardInterrupt if a signal came before."""
    commands = [command]
    if isinstance(command, click.Group) and arguments:
        commands.append(command.get_command(ctx, arguments[0]))
    if not any(found is not None and found.callback in _handling for found in commands):
        interrupt_on_stop_signals()


def interrupt_on_stop_signals() -> None:
    """Let SIGTERM and SIGHUP end the command as Ctrl-C does, so that it cleans up.
    KeyboardInterrupt if a signal came before."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    handle_stop_signals(interrupt)
    if stop_was_requested():
        raise Interrupted


def wait_in_ticks(wait: Callable[[float], bool], timeout_s: float | None) -> bool:
    """Wait in pieces, until `wait` returns true or the time is over; returns which. A signal that
    comes when the main thread is about to block, or that the system gives to another thread, ends
    no wait: its handler runs when the main thread executes Python again."""
    end = inf if timeout_s is None else time.monotonic() + timeout_s
    while True:
        left_s = max(0.0, end - time.monotonic())
        if wait(min(left_s, TICK_S)):
            return True
        if left_s <= TICK_S:
            return False


class Interrupted(KeyboardInterrupt):
    """A signal came. Not KeyboardInterrupt itself: if one passes through an `exec`, as of a module
    that makes a dataclass, CPython ends the program with SIGINT although it was caught (its
    _Py_UnhandledKeyboardInterrupt)."""


class Stopped(Exception):
    """A signal came."""


class StopRequest:
    """An Event that the signals set; it is set at once if a signal came before. They interrupt
    waits, but not the work between two waits.

    A second SIGINT raises KeyboardInterrupt at once, wherever the program is: for a stop that
    hangs.

    A handler runs between any two instructions of the main thread, so also where that thread has
    the lock of a threading.Event for its `wait`: its `set` would then wait for itself. This one
    waits for a latch instead, a lock that is held until the first `set` and free ever after.
    """

    def __init__(self) -> None:
        self._is_requested = False
        self._latch = threading.Lock()
        self._latch.acquire()
        self._waiting = False
        self._patience_s: float | None = None
        self._deadline: float | None = None
        handle_stop_signals(self._receive)
        if stop_was_requested():
            self.set()

    def is_set(self) -> bool:
        return self._is_requested

    def set(self) -> None:
        """Callable in a signal handler and in any thread; never waits."""
        self._is_requested = True
        with suppress(RuntimeError):  # it is free
            self._latch.release()

    def clear(self) -> None:
        raise NotImplementedError("a stop is not taken back")

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_requested and wait_in_ticks(self._wait_for_latch, timeout):
            self.set()  # the next thread gets it
        return self._is_requested

    def _wait_for_latch(self, timeout_s: float) -> bool:
        return self._latch.acquire(timeout=timeout_s)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around a wait: a signal raises Stopped in it, or before it if the signal came earlier. In
        the main thread."""
        with self._ticking():
            self._waiting = True
            try:
                if self.is_set():
                    raise Stopped
                yield
            finally:
                self._waiting = False

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Around work that a signal does not end, but gives only so many more seconds: then it
        raises Stopped in it. In the main thread."""
        with self._ticking():
            self._patience_s = seconds
            try:
                if self.is_set():
                    self._give(seconds)
                yield
            finally:
                self._patience_s = self._deadline = None

    @contextmanager
    def _ticking(self) -> Iterator[None]:
        """A timer interrupts the main thread again and again, as wait_in_ticks ends its waits."""
        before = signal.signal(signal.SIGALRM, self._tick)
        timer = signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, *timer)
            signal.signal(signal.SIGALRM, before)

    def _receive(self, number: int, _: object) -> None:
        is_second = self.is_set()
        self.set()  # again: this thread may have the latch
        if is_second and number == signal.SIGINT:
            raise Interrupted
        if self._waiting:
            raise Stopped
        if self._patience_s is not None:
            self._give(self._patience_s)

    def _give(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        signal.setitimer(signal.ITIMER_REAL, seconds, TICK_S)

    def _tick(self, *_: object) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise Stopped
