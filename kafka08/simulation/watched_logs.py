"""The rule that no code catches an error that it does not expect.

The first call of a task, a timer or a callback logs any exception and continues. In a run such an
exception is a violation, unless faults explain it: a KafkaError, or an OSError of a disk or stream.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafka08.errors import KafkaError

PACKAGE = "kafka08"


class _Watch(logging.Handler):
    def __init__(self, on_caught: Callable[[str, BaseException], object]) -> None:
        super().__init__()
        self._on_caught = on_caught

    def emit(self, record: logging.LogRecord) -> None:
        root = logging.getLogger()
        if root.isEnabledFor(record.levelno):
            root.callHandlers(record)
        error = record.exc_info[1] if record.exc_info else None
        if (
            isinstance(error, Exception)
            and not isinstance(error, KafkaError | OSError)
            and not record.name.startswith(f"{PACKAGE}.simulation.")
        ):
            self._on_caught(record.name, error)


@contextmanager
def watched_logs(on_caught: Callable[[str, BaseException], object]) -> Iterator[None]:
    """Call `on_caught` with the logger's name and the exception, for each of these in the log of
    this project. Handlers of the root logger get what its level allows, as otherwise."""
    logger, watch = logging.getLogger(PACKAGE), _Watch(on_caught)
    level, propagates = logger.level, logger.propagate
    if not logger.isEnabledFor(logging.ERROR):
        logger.setLevel(logging.ERROR)
    logger.propagate = False
    logger.addHandler(watch)
    try:
        yield
    finally:
        logger.removeHandler(watch)
        logger.propagate = propagates
        logger.setLevel(level)
