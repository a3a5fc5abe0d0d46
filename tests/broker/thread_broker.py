"""ThreadBroker: a broker's Runtime on plain threads, for parts of a broker run inside a test.

Only what the controller and its channels ask of it, beside what a client's Runtime has. The real
one needs a patched process, which pytest is not; the code under test cannot tell.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from kafka08.runtime.interface import Task
from kafka08.runtime.threads import ThreadRuntime


class ThreadTask:
    """A thread that looks like a greenlet, but cannot be killed: its owner ends it."""

    def __init__(self, task: Task) -> None:
        self.join = task.join
        self.is_alive = task.is_alive

    def kill(self, block: bool = True, timeout: float | None = None) -> None:
        """Nothing: see the class."""


class ThreadBroker(ThreadRuntime):
    """Time, chance, threads and sockets as they are."""

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> ThreadTask:
        return ThreadTask(super().spawn(call, *args, name=name))

    def queue(self) -> queue.SimpleQueue[Any]:
        return queue.SimpleQueue()
