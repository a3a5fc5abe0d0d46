"""Cases of one item are all tried, and a failure names its case."""

from __future__ import annotations

import pytest

from tests.in_turn import in_turn

SEEN: list[tuple[int, str]] = []


@in_turn(("number", "word"), [(1, "a"), (2, "b")])
def test_cases_and_fixtures_meet(number: int, word: str, request: pytest.FixtureRequest) -> None:
    """A case gives some arguments, and fixtures the others."""
    SEEN.append((number, word))
    assert request.node.name == "test_cases_and_fixtures_meet"


def test_each_case_ran() -> None:
    """The item above called its test once for each case, in order."""
    assert SEEN == [(1, "a"), (2, "b")]


def test_all_failures_are_reported() -> None:
    """A case that fails does not hide the next, and each failure names its case."""

    @in_turn("number", [1, 2, 3])
    def check(number: int) -> None:
        assert number == 2, "odd"

    with pytest.raises(BaseExceptionGroup, match="2 of 3 cases failed") as caught:
        check()
    assert [["with 1"], ["with 3"]] == [error.__notes__ for error in caught.value.exceptions]


def test_a_test_without_cases_fails() -> None:
    """It would test nothing."""

    @in_turn("number", [])
    def check(number: int) -> None: ...

    with pytest.raises(AssertionError, match="no case"):
        check()
