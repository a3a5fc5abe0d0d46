"""The runtime of clients: what Ctrl-C, or another signal handler that raises, leaves behind."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kafka08.runtime.threads import THREADS

SIGNALS = 200


class Interrupted(Exception):
    """Raised by the signal handler."""


def interrupted(call: Callable[[], object]) -> None:
    """Calls it again and again until a signal handler raises."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        with suppress(Interrupted):
            signal.setitimer(signal.ITIMER_REAL, 0.0005)
            while True:
                call()
    finally:
        signal.signal(signal.SIGALRM, former)


def test_a_handler_that_raises_leaves_no_condition_locked() -> None:
    """At whatever instant: close, or a thread that sends heartbeats, would wait for it for ever."""
    condition: Any = THREADS.condition()

    def lock() -> None:
        with condition:
            pass

    for _ in range(SIGNALS):
        interrupted(lock)
        assert not condition._is_owned()


def test_a_handler_that_raises_leaves_no_event_locked() -> None:
    """Another thread could not set it, nor anybody wait for it."""
    event: Any = THREADS.event()
    for _ in range(SIGNALS):
        interrupted(event.set)
        assert not event._cond._lock.locked()
