"""docs/reference/errors.md: every exception that is not a code of the protocol has a row."""

from __future__ import annotations

import re
from pathlib import Path

from kafka08 import errors

PAGE = (Path(__file__).parent.parent.parent / "docs" / "reference" / "errors.md").read_text()
CLASSES = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.KafkaError)
}
BASES = {"KafkaError", "ApiError", "ClientError", "ZooKeeperError"}


def rows() -> set[str]:
    """The names in the first columns."""
    columns = [row.split(" | ")[0] for row in PAGE.splitlines() if row.startswith("| `")]
    return {name for column in columns for name in re.findall(r"`(\w+)`", column)}


def test_every_exception_has_a_row() -> None:
    """Codes of the protocol need none: their class and docstring are on the API's page."""
    wanted = {name for name in CLASSES if not issubclass(getattr(errors, name), errors.ApiError)}
    assert wanted - BASES <= rows()


def test_every_row_is_an_exception() -> None:
    """A row names a class of kafka08.errors."""
    assert rows() <= CLASSES
