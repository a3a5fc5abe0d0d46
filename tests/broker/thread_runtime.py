"""ThreadRuntime: the broker's Runtime on plain threads, for parts of a broker run inside a test.

Only what the controller and its channels ask of it. The real one needs a patched process, which
pytest is not; the code under test cannot tell.
"""

from __future__ import annotations

import logging
import queue
import random
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)


class ThreadTask:
    """A thread that looks like a greenlet, but cannot be killed: its owner ends it."""

    def __init__(self, call: Callable[..., object], args: tuple[object, ...], name: str) -> None:
        self._thread = threading.Thread(target=call, args=args, name=name, daemon=True)
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def kill(self, block: bool = True, timeout: float | None = None) -> None:
        """Nothing: see the class."""


class ThreadRuntime:
    """Time, chance and threads as they are."""

    def __init__(self) -> None:
        self.random = random.Random(0)

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> Any:
        timer = threading.Timer(seconds, call, args)
        timer.daemon = True
        timer.start()
        return timer

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> ThreadTask:
        return ThreadTask(call, args, name)

    def event(self) -> threading.Event:
        return threading.Event()

    def queue(self) -> queue.SimpleQueue[Any]:
        return queue.SimpleQueue()

    def connect(self, address: tuple[str, int], timeout: float | None = None) -> socket.socket:
        return socket.create_connection(address, timeout)
