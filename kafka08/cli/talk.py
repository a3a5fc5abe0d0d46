"""What the library logs, as the talk of a command: warnings on stderr, each once in a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

import click

REPEAT_SECONDS: Final = 10.0
TEXTS_MAX: Final = 1000


def set_up_talk() -> None:
    """Let warnings of kafka08 be heard on stderr; those of four tries in a row only once."""
    talk = Talk(logging.WARNING)
    talk.addFilter(OnceInAWhile())
    talk.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logging.getLogger().addHandler(talk)


class Talk(logging.Handler):
    """Writes to whatever stderr is at that time, so that progress bars can move out of the way."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(self.format(record), err=True)


class OnceInAWhile(logging.Filter):
    """Keeps back a text that was let through less than REPEAT_SECONDS ago."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text, now = record.getMessage(), self._monotonic()
        if now < self._said.get(text, float("-inf")) + REPEAT_SECONDS:
            return False
        if len(self._said) >= TEXTS_MAX:
            self._said.clear()
        self._said[text] = now
        return True
