"""ThreadBroker: a broker's Runtime on plain threads, for tests that run parts of a broker.

It has what the controller and its channels use, beside a client's Runtime. The real one needs a
process that gevent has patched, which pytest's is not. The code under test cannot see the
difference."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from kafka08.runtime.interface import Task
from kafka08.runtime.threads import ThreadRuntime


class ThreadTask:
    """A thread in the place of a greenlet. It cannot be killed: its owner ends it."""

    def __init__(self, task: Task) -> None:
        self.join = task.join
        self.is_alive = task.is_alive

    def kill(self, block: bool = True, timeout: float | None = None) -> None:
        """Nothing: see the class."""


class ThreadBroker(ThreadRuntime):
    """Real time, randomness, threads and sockets."""

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> ThreadTask:
        return ThreadTask(super().spawn(call, *args, name=name))

    def queue(self) -> queue.SimpleQueue[Any]:
        return queue.SimpleQueue()
