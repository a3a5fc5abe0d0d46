"""The waits of the rules for a cluster without faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafka08.simulation.calm_checks import await_changing


class InVain(Exception):
    """The limit of a wait is over."""


def waited(problems: Iterator[str], limit: int) -> None:
    """Wait with a limit of so many looks at these problems."""

    def await_none(problem: Callable[[], str], seconds: float) -> None:
        for _ in range(int(seconds)):
            if not problem():
                return
        raise InVain

    await_changing(await_none, lambda: next(problems, ""), limit)


def test_a_reader_with_much_to_read_has_time() -> None:
    """The limit of a wait begins anew with each change of what is missing."""
    waited(iter([f"it is at {offset // 3}" for offset in range(300)]), 4)


def test_a_reader_that_stands_still_is_found() -> None:
    """The limit ends the wait when nothing has changed for so long."""
    with pytest.raises(InVain):
        waited(iter(["it is at 0", "it is at 1", *["it is at 2"] * 10]), 4)
