"""Encoders convert objects to bytes: `encoder(object) -> bytes`, for values and for keys.

Configured by Java class name (`kafka.serializer.StringEncoder`), by `module:callable`, or passed to
the Producer as any callable. Never called for None, which is sent as null. Source:
kafka.serializer.Encoder 0.8.2.2.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any

from kafka08.errors import ConfigError

Encoder = Callable[[Any], bytes | None]


class DefaultEncoder:
    """Bytes unchanged; TypeError for anything else."""

    def __call__(self, value: bytes | bytearray | memoryview) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(
                f"DefaultEncoder takes bytes, not {type(value).__name__}: set serializer.class or "
                "key.serializer.class, or give the Producer an encoder"
            )
        return bytes(value)


class StringEncoder:
    """Text in the charset `encoding`, by its name in Java (`UTF8`, `ISO-8859-1`) or in Python."""

    def __init__(self, encoding: str = "UTF8") -> None:
        try:
            self.encoding = codecs.lookup(encoding).name
        except LookupError:
            raise ConfigError(f"serializer.encoding: {encoding!r} is not a known charset") from None

    def __call__(self, value: str) -> bytes:
        if not isinstance(value, str):
            raise TypeError(f"StringEncoder takes str, not {type(value).__name__}")
        return value.encode(self.encoding)


class NullEncoder:
    """Null for any object: for messages whose key only chooses the partition."""

    def __call__(self, value: object) -> None:
        return None
