"""A series of calls, as `BrokerRuntime.every` promises it, for every Runtime."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NoReturn

logger = logging.getLogger(__name__)


def repeat(
    call: Callable[[], object],
    seconds: float,
    first: float | None,
    *,
    name: str,
    sleep: Callable[[float], object],
    on_error: Callable[[Exception], object] = lambda _: None,
) -> NoReturn:
    """Call it after `first` seconds (None: `seconds`) and then every `seconds`, without end. An
    exception is logged and passed to `on_error`, and does not end the series."""
    sleep(seconds if first is None else first)
    while True:
        try:
            call()
        except Exception as error:
            logger.exception("Uncaught exception in scheduled task '%s'", name)
            on_error(error)
        sleep(seconds)
