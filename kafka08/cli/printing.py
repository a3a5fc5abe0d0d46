"""Printing: what `kafka08 consume` does with messages, however it reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kafka08.cli.signals import StopRequest

if TYPE_CHECKING:
    from kafka08.consumer import MessageBatch

Render: TypeAlias = "Callable[[MessageBatch], bytes]"
"""Renders a batch as lines."""


class Printing(NamedTuple):
    """How messages are printed, and how many.

    max_messages    the number of messages to print; None: no limit
    skip_damaged    skip an unreadable message instead of raising its error
    stopping        set from outside to stop
    """

    render: Render
    max_messages: int | None
    skip_damaged: bool
    stopping: StopRequest
