"""A peer cannot fill a disk with log lines."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from kafka08.log_limit import CHARACTERS_MAX, KEYS_MAX, LINES_MAX, LineLimit, caused_by

logger = logging.getLogger("limited")


class Written:
    """The lines that a handler with a limit has written, and the limit."""

    def __init__(self) -> None:
        self.limit = LineLimit(10)
        self._stream = io.StringIO()
        self.handler = logging.StreamHandler(self._stream)
        self.handler.addFilter(self.limit)

    @property
    def lines(self) -> list[str]:
        return self._stream.getvalue().splitlines()


@pytest.fixture
def written() -> Iterator[Written]:
    written = Written()
    logger.addHandler(written.handler)
    logger.setLevel(logging.INFO)
    yield written
    logger.removeHandler(written.handler)


def complain(peer: str, number: int = 0) -> None:
    logger.info("bad request %d", number, extra=caused_by(peer))


def test_the_first_lines_are_written_and_the_others_counted(written: Written) -> None:
    """The count is written at the end of the interval, which then starts again."""
    for number in range(1000):
        complain("h", number)
    assert written.lines == [f"bad request {number}" for number in range(LINES_MAX)]
    written.limit.end_interval()
    assert written.lines[LINES_MAX:] == [
        f"{1000 - LINES_MAX} more lines like this one in 10 s: bad request {LINES_MAX - 1}"
    ]
    complain("h", 7)
    written.limit.end_interval()
    assert written.lines[LINES_MAX + 1 :] == ["bad request 7"]


def test_peers_and_places_have_limits_of_their_own(written: Written) -> None:
    """One that floods the log does not hide another one, nor another error of its own."""
    for _ in range(100):
        complain("h")
    complain("other", 1)
    logger.info("something else", extra=caused_by("h"))
    assert written.lines[LINES_MAX:] == ["bad request 1", "something else"]


def test_many_peers_share_a_limit(written: Written) -> None:
    """A peer with a thousand addresses gets neither a thousand times the lines nor the memory."""
    for number in range(20 * KEYS_MAX):
        complain(f"h{number}")
    assert len(written.lines) == KEYS_MAX + LINES_MAX


def test_other_lines_pass(written: Written) -> None:
    """Those that no peer causes."""
    for _ in range(100):
        logger.info("a state change")
    assert written.lines == ["a state change"] * 100


def test_a_line_has_an_end(written: Written) -> None:
    """A peer chooses names as long as it likes."""
    logger.info("client %s", "x" * 100_000, extra=caused_by("h"))
    assert written.lines == [f"client {'x' * (CHARACTERS_MAX - 7)}... (100007 characters)"]
