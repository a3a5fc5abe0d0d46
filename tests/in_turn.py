"""One test item for many cases: cheaper than an item each where a case takes microseconds."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

SHOWN = 10
"""Failures whose tracebacks are shown; the message counts all."""


def in_turn(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize(names, cases)`, but one item that checks each case.

    Fixtures are those of the item: all cases share them.
    """
    several = (names,) if isinstance(names, str) else names
    values = [(case,) if isinstance(names, str) else tuple(case) for case in cases]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            def check(*arguments: Any) -> None:
                test(**dict(zip(several, arguments, strict=True)), **fixtures)

            check_each(check, values)

        left = [p for name, p in signature.parameters.items() if name not in several]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def check_each(check: Callable[..., None], cases: Iterable[tuple[Any, ...]]) -> None:
    """Calls `check` with each case and fails after the last, with a group of the failures; each of
    them names its case."""
    failures: list[BaseException] = []
    count = 0
    for count, case in enumerate(cases, 1):  # noqa: B007  # the count of all
        try:
            check(*case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # raised below
            error.add_note(f"with {', '.join(map(str, case))}")
            failures.append(error)
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {count} cases failed", failures[:SHOWN])
    assert count, "no case"
