"""Our errors as users should read them: Spark prints their tracebacks in its own errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from kafka08.errors import (
    ConnectionFailed,
    InvalidMessage,
    KafkaError,
    LeaderNotAvailable,
    MessageSizeTooLarge,
    NoBrokersAvailable,
    UnknownTopicOrPartition,
)

logger = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Advice = Mapping[type[KafkaError], str]

OF_CLUSTERS: Final[Advice] = {
    NoBrokersAvailable: "Check that brokers run there, or correct the option that names them.",
    ConnectionFailed: "Check that this broker runs; kafka08 doctor shows what a cluster lacks.",
    LeaderNotAvailable: "Start a broker that has the partition; kafka08 topic describe shows them.",
}
ADVICE: Final[Advice] = {
    **OF_CLUSTERS,
    UnknownTopicOrPartition: "Correct subscribe, assign or offsetRanges; "
    "kafka08 topic list shows the topics.",
    InvalidMessage: "kafka08 log check finds the damage on the broker; offsetRanges reads the "
    "offsets around it.",
}
"""Advice for errors of a read that have none themselves."""
WRITE_ADVICE: Final[Advice] = {
    **OF_CLUSTERS,
    UnknownTopicOrPartition: "Correct the topic of the rows, or make it with kafka08 topic create.",
    MessageSizeTooLarge: "Lower kafka.batch.size, or raise max.message.bytes of the topic.",
}
"""Advice for errors of a write that have none themselves."""


def plain_errors(
    function: Callable[Arguments, Result], advice: Advice = ADVICE
) -> Callable[Arguments, Result]:
    """`function`, whose KafkaErrors have no traceback through kafka08 and no cause, but `advice` as
    a note: they are about options or the cluster, and say where. Logs the whole at level DEBUG."""

    @wraps(function)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except KafkaError as error:
            failure = _plain(error, advice, function.__qualname__)
        raise failure from None

    return run


def plain_write_errors(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """`plain_errors` with WRITE_ADVICE."""
    return plain_errors(function, WRITE_ADVICE)


def plain_errors_of_items(
    function: Callable[Arguments, Iterator[Result]],
) -> Callable[Arguments, Iterator[Result]]:
    """`plain_errors` for a generator."""

    @wraps(function)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> Iterator[Result]:
        try:
            yield from function(*arguments, **named)
        except KafkaError as error:
            failure = _plain(error, ADVICE, function.__qualname__)
        else:
            return
        raise failure from None

    return run


def _plain(error: KafkaError, advice: Advice, what: str) -> KafkaError:
    logger.debug("%s failed", what, exc_info=True)
    if text := advice.get(type(error)):
        error.add_note(text)
    return error.with_traceback(None)
