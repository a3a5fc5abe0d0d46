"""The library's log on stderr: warnings, without quick repetitions."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kafka08.cli.echo import say
from kafka08.printable import LogFormatter

REPEAT_S: Final = 10.0
TEXTS_MAX: Final = 1000
FORMAT: Final = "%(levelname)s: %(message)s"
DETAILED_FORMAT: Final = "%(asctime)s %(levelname)s [%(threadName)s] %(name)s: %(message)s"


def set_up_stderr_logging() -> None:
    """Print warnings of kafka08 on stderr; the same one only once in REPEAT_S."""
    handler = StderrHandler(logging.WARNING)
    handler.addFilter(RepeatFilter())
    handler.setFormatter(LogFormatter(FORMAT))
    logging.getLogger().addHandler(handler)


def show_from(level: int) -> None:
    """Print log lines from `level` on; below warning with time, thread and logger, and all of
    them."""
    logging.getLogger("kafka08").setLevel(level)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, StderrHandler):
            handler.setLevel(level)
            if level < logging.WARNING:
                handler.setFormatter(LogFormatter(DETAILED_FORMAT))
                handler.filters.clear()


@contextmanager
def warnings_withheld() -> Iterator[list[str]]:
    """Keep warnings, the first TEXTS_MAX, instead of printing them: for a command that breaks
    things on purpose. They are printed if the block ends with an error. With a lower --log-level
    they are printed at once."""
    kept: list[str] = []
    handlers = [
        handler
        for handler in logging.getLogger().handlers
        if isinstance(handler, StderrHandler) and handler.level >= logging.WARNING
    ]
    for handler in handlers:
        handler.kept = kept
    try:
        yield kept
    except BaseException:
        for line in kept:
            say(line)
        raise
    finally:
        for handler in handlers:
            handler.kept = None


class StderrHandler(logging.Handler):
    """Writes to the current stderr, so that progress bars can move out of the way; or to `kept`."""

    kept: list[str] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        if self.kept is None:
            say(line)
        elif len(self.kept) < TEXTS_MAX:
            self.kept.append(line)


class RepeatFilter(logging.Filter):
    """Drops a text that was printed less than REPEAT_S ago."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text, now = record.getMessage(), self._monotonic()
        if now < self._said.get(text, float("-inf")) + REPEAT_S:
            return False
        if len(self._said) >= TEXTS_MAX:
            self._said.clear()
        self._said[text] = now
        return True
