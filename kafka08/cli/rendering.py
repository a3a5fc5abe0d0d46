"""A message as one line of text, JSON or hexadecimal digits. None of the lines has an end."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafka08.kernel import MessageAndMetadata


def as_text(message: MessageAndMetadata) -> bytes:
    """The value as it is; `null` for a null one."""
    return b"null" if message.value is None else bytes(message.value)


def as_hex(message: MessageAndMetadata) -> bytes:
    """topic, partition, offset, key and value between blanks."""
    key = "null" if message.key is None else message.key.hex()
    value = "null" if message.value is None else message.value.hex()
    return f"{message.topic} {message.partition} {message.offset} {key} {value}".encode()


def as_json(message: MessageAndMetadata) -> bytes:
    """One object: topic, partition, offset, key, value; both in base64, and `"encoding"` to say
    so, if either is not UTF-8."""
    row: dict[str, Any] = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
    }
    try:
        row["key"] = None if message.key is None else message.key.decode()
        row["value"] = None if message.value is None else message.value.decode()
    except UnicodeDecodeError:
        for name, raw in (("key", message.key), ("value", message.value)):
            row[name] = None if raw is None else base64.b64encode(raw).decode()
        row["encoding"] = "base64"
    return json.dumps(row, ensure_ascii=False).encode()


FORMATS: Final[dict[str, Callable[[MessageAndMetadata], bytes]]] = {
    "text": as_text,
    "json": as_json,
    "hex": as_hex,
}
