"""The table of error codes: which there are, since when, and which may be tried again."""

from __future__ import annotations

import pytest

from kafka08.errors import CODES, ApiError, error_for
from kafka08.levels import Level


def codes_at(level: Level) -> set[int]:
    return {code for code, error in CODES.items() if error.is_of(level)}


@pytest.mark.parametrize(
    ("level", "highest"), [(Level.V0_8_2, 20), (Level.V0_9_0, 31), (Level.V0_10_2, 44)]
)
def test_a_level_has_every_code_up_to_its_highest(level: Level, highest: int) -> None:
    """0.8.2.2's ErrorMapping ends at 20, the Errors of 0.9.0.1 at 31, of 0.10.2.2 at 44."""
    assert {-1, *range(1, highest + 1)} == codes_at(level)


def test_codes_and_classes_belong_together() -> None:
    """No code has two classes."""
    assert len(CODES) == len(ApiError.__subclasses__())
    assert all(error_for(code) is error for code, error in CODES.items())


def test_the_new_retriable_code_is_not_controller() -> None:
    """Of 21 to 44 the Java client of 0.10.2.2 retries 41 alone."""
    assert {41} == {code for code, error in CODES.items() if 20 < code < 45 and error.retriable}
