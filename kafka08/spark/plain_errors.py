"""Errors of a plan as users should read them: Spark prints their tracebacks in its own errors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from kafka08.errors import KafkaError, NoBrokersAvailable, UnknownTopicOrPartition

logger = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

ADVICE: Final[dict[type[KafkaError], str]] = {
    NoBrokersAvailable: "Check that brokers run there, or correct the option that names them.",
    UnknownTopicOrPartition: "Correct subscribe, assign or offsetRanges; "
    "kafka08 topic list shows the topics.",
}
"""What to do about errors that do not say it themselves."""


def plain_errors(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """`function`, whose KafkaErrors have no traceback through kafka08 and no cause, but ADVICE as a
    note: they are about options or the cluster, and say where. Logs the whole at level DEBUG."""

    @wraps(function)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except KafkaError as error:
            logger.debug("%s failed", function.__qualname__, exc_info=True)
            failure = error.with_traceback(None)
        if advice := ADVICE.get(type(failure)):
            failure.add_note(advice)
        raise failure from None

    return run
