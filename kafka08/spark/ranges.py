"""Moved to kafka08.arrow.ranges; this alias remains for one release."""

from __future__ import annotations

import warnings

from kafka08.arrow import ranges


def __getattr__(name: str) -> object:
    value = getattr(ranges, name)
    warnings.warn(
        f"kafka08.spark.ranges moved: import {name} from kafka08.spark or kafka08.arrow",
        DeprecationWarning,
        stacklevel=2,
    )
    return value
