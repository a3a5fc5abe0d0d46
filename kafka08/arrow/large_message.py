"""The value of a message that is larger than a batch, where it was received: a column without a
copy. Pure."""

from __future__ import annotations

from typing import Final

from kafka08.kernel.types import (
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    LENGTH,
    MAGIC_POSITION,
    TIMESTAMP_BYTES,
    TIMESTAMP_POSITION,
    Buffer,
)

LARGE_BYTES: Final = 2 << 20
"""Smaller values are cheaper to copy than to treat apart."""


def large_value(data: Buffer) -> memoryview | None:
    """The value in `data`, an uncompressed set whose CRCs are correct, if that is a single message
    with a value of more than LARGE_BYTES; else None. A read of the message needs half the memory
    then."""
    if len(data) <= LARGE_BYTES:
        return None
    view = memoryview(data)
    _, size = ENTRY_HEADER.unpack_from(view)
    if ENTRY_HEADER_BYTES + size != len(view):
        return None
    key_at = TIMESTAMP_POSITION + view[MAGIC_POSITION] * TIMESTAMP_BYTES
    (key_length,) = LENGTH.unpack_from(view, key_at)
    value_at = key_at + LENGTH.size + max(0, key_length)
    (value_length,) = LENGTH.unpack_from(view, value_at)
    if value_length <= LARGE_BYTES:
        return None
    start = value_at + LENGTH.size
    return view[start : start + value_length]
