"""The value of a message that is larger than a batch, where it was received: a column without a
copy. Pure."""

from __future__ import annotations

from typing import Final

from kafka08.kernel.types import ENTRY_HEADER, ENTRY_HEADER_BYTES, MAGIC_POSITION, Buffer
from kafka08.protocol.message_set import wrapper_value

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
    try:
        value = wrapper_value(view, view[MAGIC_POSITION])
    except ValueError:
        return None  # it has none
    return value if len(value) > LARGE_BYTES else None
