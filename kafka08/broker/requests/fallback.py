"""Fallback: the result of a fast path for a request that it leaves, with nothing done."""

from __future__ import annotations

import enum
from typing import Final


class Fallback(enum.Enum):
    FALL_BACK = "the request must be decoded and handled"


FALL_BACK: Final = Fallback.FALL_BACK
