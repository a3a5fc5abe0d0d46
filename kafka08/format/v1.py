"""Message format 1 (0.10.0): format 0 with a timestamp, and relative offsets inside wrappers.

    offset:i64 size:i32 crc:u32 magic:i8 attributes:i8 timestamp:i64 key:bytes value:bytes

Bit 3 of the attributes is set if the timestamp is the broker's (LogAppendTime). A wrapper has the
largest timestamp of its messages, whose offsets are relative to the first: the last has the
wrapper's.
"""

from __future__ import annotations

from struct import Struct

from kafka08.format.batch import Batch, Format
from kafka08.format.types import CODEC_MASK, TIMESTAMP_TYPE_BIT

_HEAD = Struct(">qiIBBq")


class V1(Format):
    magic = 1
    head_bytes = _HEAD.size

    def batch(self, view: memoryview, position: int) -> Batch:
        offset, size, crc, magic, attributes, timestamp_ms = _HEAD.unpack_from(view, position)
        return Batch(
            magic,
            position,
            size + 12,
            offset,
            offset,
            attributes & CODEC_MASK,
            int(bool(attributes & TIMESTAMP_TYPE_BIT)),
            timestamp_ms,
            crc,
        )
