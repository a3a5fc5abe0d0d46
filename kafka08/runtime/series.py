"""A series of calls, as `BrokerRuntime.every` promises it, for every Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


def repeat(
    call: Callable[[], object],
    seconds: float,
    first: float | None,
    *,
    sleep: Callable[[float], object],
    on_error: Callable[[Exception], object],
) -> NoReturn:
    """Call it after `first` seconds (None: `seconds`) and then every `seconds`, without end. An
    exception is passed to `on_error`, and does not end the series."""
    sleep(seconds if first is None else first)
    while True:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - handled by the owner of the root
            on_error(error)
        sleep(seconds)
