"""Lines of JSON as records, in the format of `consume --format json`."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from kafka08.config import LONG_MAX
from kafka08.errors import KafkaError
from kafka08.producer.record import ProducerRecord

FIELDS: Final = frozenset({"topic", "partition", "offset", "timestamp", "key", "value", "encoding"})


class BadLine(KafkaError):
    """A line that is not such an object; the text says why."""


def record_of(topic: str, line: bytes) -> ProducerRecord:
    """The record for `topic` from a line: an object with `value` and optionally `key`, `partition`,
    `timestamp` and `"encoding": "base64"`. Topic and offset, which `consume` adds, are ignored.
    """
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"not JSON: {error}") from error
    if not isinstance(row, dict) or "value" not in row:
        raise BadLine('not an object with "value"')
    if unknown := row.keys() - FIELDS:
        raise BadLine(f"unknown fields: {', '.join(sorted(unknown))}")
    partition = row.get("partition")
    if partition is not None and (type(partition) is not int or partition < 0):
        raise BadLine(f"partition {partition!r} is not the number of a partition")
    timestamp = row.get("timestamp")
    if timestamp is not None and (type(timestamp) is not int or not 0 <= timestamp <= LONG_MAX):
        raise BadLine(f"timestamp {timestamp!r} is not a number of milliseconds since 1970")
    encoding = row.get("encoding")
    if encoding not in (None, "base64"):
        raise BadLine(f"encoding {encoding!r} is not base64")
    value, key = (field_of(name, row.get(name), encoding) for name in ("value", "key"))
    return ProducerRecord(topic, value, key, partition, timestamp)


def field_of(name: str, text: Any, encoding: str | None) -> bytes | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise BadLine(f"{name} is {type(text).__name__}, not text or null")
    if encoding is None:
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:  # binascii.Error, or that it is no ASCII
        raise BadLine(f"{name} is not base64: {error}") from error
