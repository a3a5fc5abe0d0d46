"""Errors that code catches and logs, though it does not expect them."""

from __future__ import annotations

import logging

import pytest

from kafka08.errors import KafkaError
from kafka08.simulation.watched_logs import watched_logs

logger = logging.getLogger("kafka08.some.module")


def log(error: Exception) -> None:
    try:
        raise error
    except Exception:
        logger.exception("Uncaught exception")


def test_unexpected_errors_are_noticed() -> None:
    """A logged exception is reported unless it is one of Kafka or of a disk, which faults cause."""
    caught: list[tuple[str, BaseException]] = []
    bug = KeyError("a bug")
    with watched_logs(lambda name, error: caught.append((name, error))):
        log(KafkaError("refused"))
        log(OSError("disk"))
        logger.error("no exception")
        log(bug)
    log(KeyError("after the run"))
    assert [(logger.name, bug)] == caught


def test_it_works_without_a_level_and_prints_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Exceptions are reported without being printed where the level of the root logger turns logs
    off, as `kafka08 simulate` does."""
    caught: list[BaseException] = []
    caplog.set_level(logging.CRITICAL + 1)
    with watched_logs(lambda _, error: caught.append(error)):
        log(KeyError("a bug"))
    assert (1, []) == (len(caught), caplog.records)
