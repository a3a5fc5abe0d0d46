"""Message formats: one module each, chosen here by the magic byte.

    for batch in batches(data):          # or batch_at(data, position)
        batch.last_offset, batch.codec, batch.max_timestamp_ms, …

An entry of a set or a log begins with `offset:i64 size:i32`, and its byte 16 is the magic: that is
all that formats share. A reader asks a `Batch`, never a byte. A new format is a module with a
subclass of `Format` or `RecordFormat`, and a row of FORMATS. The compiled kernel has its own loops
for the formats of `_formats.pxi`; its twin loops over these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafka08.format.batch import NO_PRODUCER, Batch, Format, Message, RecordFormat, entry_size
from kafka08.format.types import (
    CODEC_MASK,
    ENTRY_HEADER,
    ENTRY_HEADER_BYTES,
    MAGIC_POSITION,
    MIN_MESSAGE_BYTES,
    Buffer,
    CorruptMessage,
)
from kafka08.format.v0 import V0
from kafka08.format.v1 import V1
from kafka08.format.v2 import PRODUCER_AT, V2

__all__ = [
    "FORMATS",
    "HEAD_BYTES_MAX",
    "Batch",
    "Format",
    "Message",
    "RecordFormat",
    "batch_at",
    "batches",
    "batches_of_producers",
    "codec_of",
    "entry_size",
    "format_of",
    "impossible_size",
    "magic_of",
]

FORMATS: Final[dict[int, Format]] = {format.magic: format for format in (V0(), V1(), V2())}

HEAD_BYTES_MAX: Final = max(format.head_bytes for format in FORMATS.values())
"""The first bytes of an entry from which `batch_at` reads any of them."""


def format_of(magic: int) -> Format:
    """Entries of an unknown magic are walked like those of magic 0, as 0.8 does."""
    return FORMATS.get(magic, FORMATS[0])


def magic_of(data: Buffer, position: int = 0) -> int | None:
    """The magic of the entry at `position`; None if that byte is not there."""
    at = position + MAGIC_POSITION
    return data[at] if at < len(data) else None


def codec_of(data: Buffer) -> int:
    """The codec of the entry that begins here, 0 without that byte: what `batch_at` says, in a
    tenth of its time."""
    at = format_of(magic_of(data) or 0).codec_position
    return data[at] & CODEC_MASK if at < len(data) else 0


def batch_at(data: Buffer, position: int = 0) -> Batch | None:
    """The entry at `position`, which may go on behind the data; None without its head.
    CorruptMessage if it has an impossible size."""
    view = memoryview(data)
    magic = magic_of(view, position)
    if magic is None:
        return None
    format = format_of(magic)
    if position + format.head_bytes > len(view):
        return None
    batch = format.batch(view, position)
    if batch.size < ENTRY_HEADER_BYTES + format.least_size():
        raise impossible_size(view, position)
    return batch


def batches(data: Buffer) -> Iterator[Batch]:
    """The complete entries of a set. CorruptMessage if one has an impossible size."""
    view, position = memoryview(data), 0
    while (batch := _complete_entry(view, position)) is not None:
        yield batch
        position = batch.end


def batches_of_producers(data: Buffer) -> Iterator[Batch]:
    """As `batches`, without those that have no producer id, which cost a tenth: a log of committed
    offsets has hundreds of thousands."""
    view, position = memoryview(data), 0
    last = len(view) - V2.head_bytes
    while True:
        while position <= last:
            size, magic, producer_id = PRODUCER_AT.unpack_from(view, position)
            is_plain = magic == V2.magic and producer_id == NO_PRODUCER
            if not is_plain or not V2.head_bytes - ENTRY_HEADER_BYTES <= size <= len(view):
                break
            position += ENTRY_HEADER_BYTES + size
        batch = _complete_entry(view, position)
        if batch is None:
            return
        if batch.producer_id != NO_PRODUCER:
            yield batch
        position = batch.end


def _complete_entry(view: memoryview, position: int) -> Batch | None:
    """The entry at `position`; None if it is not complete. CorruptMessage for an impossible
    size."""
    if len(view) - position < ENTRY_HEADER_BYTES:
        return None
    size = entry_size(view, position)
    if size < ENTRY_HEADER_BYTES + MIN_MESSAGE_BYTES:
        raise impossible_size(view, position)
    if size > len(view) - position:
        return None
    batch = batch_at(view, position)
    if batch is None:  # smaller than the head of its format
        raise impossible_size(view, position)
    return batch


def impossible_size(view: memoryview, position: int) -> CorruptMessage:
    """The error of an entry whose size field is too small."""
    offset, size = ENTRY_HEADER.unpack_from(view, position)
    return CorruptMessage(position, offset, f"message with corrupt size {size}")
