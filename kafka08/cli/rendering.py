"""A batch of messages as lines of text, JSON or hexadecimal digits, each with its end."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafka08.consumer import MessageBatch

ENCODE: Final = json.JSONEncoder(ensure_ascii=False).encode
"""json.dumps, which makes an encoder for each call."""


def as_text(batch: MessageBatch) -> bytes:
    """The values as they are; `null` for a null one."""
    values = [b"null" if value is None else value for value in batch.values()]
    return b"\n".join([*values, b""])


def as_hex(batch: MessageBatch) -> bytes:
    """topic, partition, offset, key and value between blanks."""
    topic, partition = batch.topic_partition
    return b"".join(
        f"{topic} {partition} {offset} {in_hex(key)} {in_hex(value)}\n".encode()
        for offset, key, value in zip(batch.offsets, batch.keys(), batch.values(), strict=True)
    )


def in_hex(data: bytes | None) -> str:
    return "null" if data is None else data.hex()


def as_json(batch: MessageBatch) -> bytes:
    """One object a line, see `json_line`."""
    return b"".join(
        json_line(*batch.topic_partition, offset, key, value) + b"\n"
        for offset, key, value in zip(batch.offsets, batch.keys(), batch.values(), strict=True)
    )


def json_line(
    topic: str, partition: int, offset: int, key: bytes | None, value: bytes | None
) -> bytes:
    """One object: topic, partition, offset, key, value; both in base64, and `"encoding"` to say
    so, if either is not UTF-8."""
    row: dict[str, Any] = {"topic": topic, "partition": partition, "offset": offset}
    try:
        row["key"] = None if key is None else key.decode()
        row["value"] = None if value is None else value.decode()
    except UnicodeDecodeError:
        for name, raw in (("key", key), ("value", value)):
            row[name] = None if raw is None else base64.b64encode(raw).decode()
        row["encoding"] = "base64"
    return ENCODE(row).encode()


FORMATS: Final[dict[str, Callable[[MessageBatch], bytes]]] = {
    "text": as_text,
    "json": as_json,
    "hex": as_hex,
}
