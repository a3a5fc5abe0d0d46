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
    """As `pytest.mark.parametrize(names, cases)`, but one item: calls the test with each case and
    fails after the last, with a group of the failures, each of which names its case.

    Fixtures are those of the item: all cases share them.
    """
    several = (names,) if isinstance(names, str) else names
    values = list(cases)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for value in values:
                arguments = (value,) if isinstance(names, str) else value
                try:
                    test(**dict(zip(several, arguments, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # all are raised below
                    error.add_note(f"with {', '.join(map(str, arguments))}")
                    failures.append(error)
            if failures:
                said = f"{len(failures)} of {len(values)} cases of {test.__name__} failed"
                raise BaseExceptionGroup(said, failures[:SHOWN])
            assert values, "no case"

        left = [p for name, p in signature.parameters.items() if name not in several]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate
