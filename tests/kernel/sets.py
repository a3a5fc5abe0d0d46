"""Small message sets made by hand, and the stand-in for compression that tests unpack."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from struct import pack

from kafka08.format import Batch, Message
from kafka08.format.batch import Header
from kafka08.format.v2 import V2
from kafka08.kernel.types import Buffer, KeyAndValue

GZIP = 1
"""The codec of `wrapper`; its value is zlib's stream, as the kernel leaves codecs to the caller."""


def field(data: bytes | None) -> bytes:
    return pack(">i", -1) if data is None else pack(">i", len(data)) + data


def entry(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    magic: int = 0,
    attributes: int = 0,
    timestamp_ms: int = -1,
) -> bytes:
    timestamp = pack(">q", timestamp_ms) if magic == 1 else b""
    return raw_entry(offset, pack(">bB", magic, attributes) + timestamp + field(key) + field(value))


def raw_entry(offset: int, body: bytes) -> bytes:
    """An entry with a good CRC around any bytes from the magic on."""
    return pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def plain(messages: Sequence[KeyAndValue], base_offset: int = 0, magic: int = 0) -> bytes:
    """Of magic 1 the message with offset o is stamped 1000 + o."""
    return b"".join(
        entry(
            offset,
            None if key is None else bytes(key),
            None if value is None else bytes(value),
            magic=magic,
            timestamp_ms=1000 + offset,
        )
        for offset, (key, value) in enumerate(messages, base_offset)
    )


def wrapper(
    offset: int, inner: bytes, *, magic: int = 0, codec: int = GZIP, timestamp_ms: int = -1
) -> bytes:
    value = zlib.compress(inner)
    return entry(offset, None, value, magic=magic, attributes=codec, timestamp_ms=timestamp_ms)


def records(
    base_offset: int,
    messages: Sequence[KeyAndValue],
    *,
    headers: tuple[Header, ...] = (),
    codec: int = 0,
    append_time: bool = False,
    control: bool = False,
) -> bytes:
    """A batch of magic 2. The record with offset o is stamped 1000 + o, or all are 1500."""
    rows = [
        Message(
            offset,
            None if key is None else memoryview(bytes(key)),
            None if value is None else memoryview(bytes(value)),
            1000 + offset,
            0,
            headers,
        )
        for offset, (key, value) in enumerate(messages, base_offset)
    ]
    like = Batch(2, 0, 0, base_offset, base_offset + len(rows) - 1, 0, int(append_time), 1500, 0)
    like = like._replace(is_control=control, is_transactional=control)
    return V2().build(rows, codec, lambda _, data: zlib.compress(data), like=like)


def unpack(codec: int, value: Buffer) -> bytes:
    """The `decompress` of the tests; ValueError on anything that `wrapper` did not make."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(value, 1 << 20)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not reader.eof:
        raise ValueError("ends early")
    return data


def refuse(codec: int, value: Buffer) -> bytes:
    """`decompress` of tests in which nothing is compressed."""
    raise AssertionError("nothing here is compressed")
