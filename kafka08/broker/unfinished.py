"""Unfinished: a request that a fast path leaves to its handler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kafka08.broker.delayed_produce import AppendResults


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The request must be decoded and handled; `appended` has the finished part of a Produce."""

    appended: AppendResults = field(default_factory=dict)


NOTHING_DONE: Final = Unfinished()
