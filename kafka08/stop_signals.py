"""SIGTERM, SIGINT and SIGHUP during the first moments of a process.

Until its modules are imported, a program has no signal handlers, and the system would end it. An
entry point calls `hold_stop_signals` before it imports anything else; code that installs its own
handlers later calls `stop_was_requested` afterwards. This module imports nothing that takes time.
"""

from __future__ import annotations

import atexit
import signal
from collections.abc import Callable

_held: list[int] = []


def hold_stop_signals() -> None:
    """Hold the signals for later. A second SIGINT raises KeyboardInterrupt, as usual."""
    _held.clear()
    handle_stop_signals(_hold)
    # When all is done the interpreter gives its handlers back before it ends, which takes a while.
    atexit.register(handle_stop_signals, signal.SIG_IGN)


def handle_stop_signals(handler: Callable[[int, object], object] | signal.Handlers) -> None:
    """Install a handler for all of them. A SIGHUP that nohup has set to be ignored stays
    ignored."""
    for number in stop_signals():
        signal.signal(number, handler)


def stop_signals() -> list[signal.Signals]:
    """The signals that ask a process to stop. The JVM stops cleanly on the same three."""
    hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hangs_up else [])]


def stop_was_requested() -> bool:
    """Whether one arrived since `hold_stop_signals` and before its handler was replaced."""
    return bool(_held)


def _hold(number: int, _: object) -> None:
    if number == signal.SIGINT and number in _held:
        raise KeyboardInterrupt
    _held.append(number)
