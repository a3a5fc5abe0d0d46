"""Message format 0 (0.8): an entry is one message, or a wrapper around a compressed set.

    offset:i64 size:i32 crc:u32 magic:i8 attributes:i8 key:bytes value:bytes

Lengths of key and value are i32, -1 for null. The low bits of the attributes are the codec; then
the value is a compressed set, whose offsets are absolute. The offset is that of the last message.
"""

from __future__ import annotations

from struct import Struct

from kafka08.format.batch import Batch, Format
from kafka08.format.types import CODEC_MASK, NO_TIMESTAMP, NO_TIMESTAMP_TYPE

_HEAD = Struct(">qiIBB")


class V0(Format):
    magic = 0
    head_bytes = _HEAD.size

    def batch(self, view: memoryview, position: int) -> Batch:
        offset, size, crc, magic, attributes = _HEAD.unpack_from(view, position)
        return Batch(
            magic,
            position,
            size + 12,
            offset,
            offset,
            attributes & CODEC_MASK,
            NO_TIMESTAMP_TYPE,
            NO_TIMESTAMP,
            crc,
        )
