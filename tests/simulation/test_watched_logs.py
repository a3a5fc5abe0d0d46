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


def test_what_no_fault_explains_is_noticed() -> None:
    """An error of Kafka or of a disk is one that a fault can cause."""
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
    """`kafka08 simulate` turns logs off; the rule holds there too."""
    caught: list[BaseException] = []
    caplog.set_level(logging.CRITICAL + 1)
    with watched_logs(lambda _, error: caught.append(error)):
        log(KeyError("a bug"))
    assert (1, []) == (len(caught), caplog.records)
