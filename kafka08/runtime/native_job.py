"""The wait for a native job, as `BrokerRuntime.run_native` promises it, for every Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafka08.runtime.interface import Event

T = TypeVar("T")


def result_of(
    submit: Callable[..., object],
    call: Callable[..., T],
    args: tuple[object, ...],
    over: Event,
) -> T:
    """The result of a job that `submit` takes, or its error raised. A killed greenlet waits for the
    end, too. over: a new event."""
    outcome: list[tuple[T, BaseException | None]] = []

    def done(result: T, error: BaseException | None) -> None:
        outcome.append((result, error))
        over.set()

    submit(done, call, args)
    try:
        over.wait()
    except BaseException:
        over.wait()
        raise
    result, error = outcome.pop()
    if error is not None:
        try:
            raise error
        finally:
            del error  # whose traceback has this frame
    return result
