"""A runtime that finds a thread too few."""

from __future__ import annotations

from collections.abc import Callable

from kafka08.runtime import Task
from kafka08.runtime.threads import ThreadRuntime


class FewThreads(ThreadRuntime):
    """The system has a thread for all but the first of a name."""

    def __init__(self, scarce: str) -> None:
        super().__init__()
        self._scarce = scarce
        self.started: list[str] = []

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> Task:
        if name == self._scarce:
            self._scarce = ""
            raise RuntimeError("can't start new thread")
        self.started.append(name)
        return super().spawn(call, *args, name=name)
