"""Keyed messages for tests of the cleaner, and the messages that must survive it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka08.log.cleaner_pass import CleanerPass
from kafka08.log.cleaner_plan import SLOT_BYTES, CleanerConfig
from kafka08.log.log import Log
from kafka08.log.throttle import Throttle
from kafka08.protocol import message_set
from tests.mock_clock import MockClock

Message = tuple[int, bytes | None, bytes | None]
"""offset, key, value."""
KeyedValue = tuple[bytes | None, bytes | None]


def captured() -> dict[str, Any]:
    """The log directory that a JVM broker with a cleaner left."""
    path = Path(__file__).parent.parent / "data" / "sandbox-logs-0.8.2.2.json"
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def keyed(*pairs: KeyedValue, codec: int = 0, base_offset: int = 0) -> bytearray:
    return bytearray(message_set.encode(pairs, codec, base_offset))


def messages_of(log: Log, max_bytes: int = 1 << 20) -> list[Message]:
    """The whole log, read as a consumer reads it."""
    found: list[Message] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, max_bytes).bytes()
        batch = [(m.offset, m.key, m.value) for m in message_set.decode(data, offset)]
        if not batch:
            break
        found += batch
        offset = found[-1][0] + 1
    return found


def latest(messages: Sequence[Message]) -> dict[bytes | None, Message]:
    """Returns the last message of each key."""
    return {message[1]: message for message in messages}


def keys_config(keys: int, *, chunk_bytes: int = 1 << 20) -> CleanerConfig:
    """A configuration whose offset map has room for `keys` keys."""
    config = CleanerConfig(
        map_bytes=SLOT_BYTES * (keys + 1), load_factor=1.0, chunk_bytes=chunk_bytes
    )
    assert keys == config.max_keys
    return config


def cleaning(log: Log, first_dirty: int | None = None, **keywords: Any) -> CleanerPass:
    """Returns a pass that begins at the log start and has no rate limit, unless the arguments say
    otherwise."""
    clock = MockClock()
    keywords.setdefault("config", CleanerConfig())
    keywords.setdefault("clock", clock)
    keywords.setdefault("throttle", Throttle(float("inf"), clock))
    start = log.log_start_offset if first_dirty is None else first_dirty
    return CleanerPass(log, start, **keywords)


def set_modified(log: Log, *times_ms: int) -> None:
    """Sets the modification times of the first segments."""
    for segment, time_ms in zip(log._segments, times_ms, strict=False):
        os.utime(segment.log_path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))
