"""Calls that run at the same time, such as the requests to several leaders: a broker that is slow
or gone delays none of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar, cast

from kafka08.runtime import Runtime

T = TypeVar("T")


def run_concurrently(calls: Iterable[Callable[[], T]], runtime: Runtime, name: str) -> list[T]:
    """The results of `calls`, in their order, after all have ended; raises the error of the first
    that failed. Each runs in a task of its own called `name`, the last in that of the caller: a
    call alone starts no task. The deadline of `giving_up_at` holds in all of them."""
    begun = [_Call(call) for call in calls]
    tasks = [runtime.spawn(partial(copy_context().run, one.run), name=name) for one in begun[:-1]]
    for one in begun[-1:]:
        one.run()
    for task in tasks:
        task.join()
    return [one.result() for one in begun]


class _Call(Generic[T]):
    """One call, and how it ended."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._result: T | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            self._result = self._call()
        except Exception as error:  # noqa: BLE001 - raised by `result`
            self._error = error

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return cast(T, self._result)
