"""Fallback: the result of a fast path for a request that the handler must handle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kafka08.broker.purgatory.delayed_produce import AppendResults


@dataclass(frozen=True, slots=True)
class Fallback:
    """The request must be decoded and handled; `appended` has the finished part of a Produce."""

    appended: AppendResults = field(default_factory=dict)


FALL_BACK: Final = Fallback()
