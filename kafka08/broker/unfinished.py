"""Unfinished: what a fast path leaves to the handler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kafka08.broker.delayed_produce import AppendResults


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The request is to be decoded and handled; `appended` is what is done of a Produce."""

    appended: AppendResults = field(default_factory=dict)


NOTHING_DONE: Final = Unfinished()
