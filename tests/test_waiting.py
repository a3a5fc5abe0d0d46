"""The helper with which tests wait."""

from __future__ import annotations

import pytest

from tests.waiting import until


def test_it_returns_the_first_true_result() -> None:
    """The condition is not called again."""
    responses = iter([0, None, "found", "asked again"])
    assert until(lambda: next(responses)) == "found"


def test_a_failure_has_expected_and_found() -> None:
    """Without a name the text has the source of the condition."""
    with pytest.raises(AssertionError, match=r"^not within 0 s: rain: sun, all day$"):
        until(lambda: False, "rain", 0, explain=lambda: "sun, all day")
    with pytest.raises(AssertionError, match="lambda: not 1"):
        until(lambda: not 1, seconds=0)
