"""Renders a batch of messages as lines of text, JSON or hexadecimal digits."""

from __future__ import annotations

import base64
import json
import os
import re
from typing import TYPE_CHECKING, Any, Final

from kafka08.kernel.types import NO_TIMESTAMP

if TYPE_CHECKING:
    from kafka08.cli.printing import Render
    from kafka08.consumer import MessageBatch

ENCODE: Final = json.JSONEncoder(ensure_ascii=False).encode
"""json.dumps would create an encoder for each call."""


def as_text(batch: MessageBatch) -> bytes:
    """The values as they are; `null` for a null one."""
    values = [b"null" if value is None else value for value in batch.values()]
    return b"\n".join([*values, b""])


def as_hex(batch: MessageBatch) -> bytes:
    """topic, partition, offset, key and value, separated by blanks."""
    topic, partition = batch.topic_partition
    return b"".join(
        f"{topic} {partition} {offset} {in_hex(key)} {in_hex(value)}\n".encode()
        for offset, key, value in zip(batch.offsets, batch.keys(), batch.values(), strict=True)
    )


def in_hex(data: bytes | None) -> str:
    return "null" if data is None else data.hex()


def as_json(batch: MessageBatch) -> bytes:
    """One object per line, see `json_line`."""
    offsets = batch.offsets
    times = batch.timestamps or [NO_TIMESTAMP] * len(offsets)
    return b"".join(
        json_line(*batch.topic_partition, offset, key, value, time_ms) + b"\n"
        for offset, key, value, time_ms in zip(
            offsets, batch.keys(), batch.values(), times, strict=True
        )
    )


def json_line(
    topic: str,
    partition: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    timestamp_ms: int = NO_TIMESTAMP,
) -> bytes:
    """One object: topic, partition, offset, timestamp in ms if the message has one, key, value. If
    key or value is not UTF-8, both are in base64 and the object has `"encoding"`."""
    row: dict[str, Any] = {"topic": topic, "partition": partition, "offset": offset}
    if timestamp_ms != NO_TIMESTAMP:
        row["timestamp"] = timestamp_ms
    try:
        row["key"] = None if key is None else key.decode()
        row["value"] = None if value is None else value.decode()
    except UnicodeDecodeError:
        for name, raw in (("key", key), ("value", value)):
            row[name] = None if raw is None else base64.b64encode(raw).decode()
        row["encoding"] = "base64"
    return ENCODE(row).encode()


FORMATS: Final[dict[str, Render]] = {
    "text": as_text,
    "json": as_json,
    "hex": as_hex,
}


TOKEN: Final = re.compile(r"%(.)|\\(.)")
ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\", "0": b"\0"}
FIELDS: Final = "topksTKS%"


def check_template(template: str) -> None:
    """ValueError for an unknown token, with the list of known ones."""
    for token in TOKEN.finditer(template):
        percent, backslash = token.groups()
        if (percent and percent not in FIELDS) or (backslash and backslash not in ESCAPES):
            raise ValueError(
                f"{template!r} has the unknown token {token[0]}; known are %t topic, %p partition, "
                "%o offset, %k key, %s value, %T timestamp in ms, %K and %S bytes of key and "
                "value, %%; \\n, \\t, \\r, \\0, \\\\"
            )


def by_template(template: str) -> Render:
    """Renders a template like kcat's; `null` for null keys and values, nothing between messages."""
    check_template(template)

    def render(batch: MessageBatch) -> bytes:
        times = batch.timestamps
        lines = []
        for row, (offset, key, value) in enumerate(
            zip(batch.offsets, batch.keys(), batch.values(), strict=True)
        ):
            fields = {
                "t": batch.topic.encode(),
                "p": b"%d" % batch.partition,
                "o": b"%d" % offset,
                "k": b"null" if key is None else key,
                "s": b"null" if value is None else value,
                "K": b"%d" % (-1 if key is None else len(key)),
                "S": b"%d" % (-1 if value is None else len(value)),
                "T": b"%d" % (-1 if times is None else times[row]),
                "%": b"%",
            }
            lines.append(filled(template, fields))
        return b"".join(lines)

    return render


def filled(template: str, fields: dict[str, bytes]) -> bytes:
    parts = []
    end = 0
    for match in TOKEN.finditer(template):
        parts.append(os.fsencode(template[end : match.start()]))
        parts.append(fields[match[1]] if match[1] else ESCAPES[match[2]])
        end = match.end()
    parts.append(os.fsencode(template[end:]))
    return b"".join(parts)


def with_columns(*, key: bool, timestamp: bool) -> Render:
    """The value after the timestamp and the key, if wanted, separated by tabs."""
    columns = [column for column, wanted in (("%T", timestamp), ("%k", key)) if wanted]
    return by_template("\t".join([*columns, "%s"]) + "\n")
