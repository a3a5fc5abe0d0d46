"""KeyedMessage: a message for the old producer."""

from __future__ import annotations

from typing import Any, NamedTuple


class KeyedMessage(NamedTuple):
    """A message for `topic`. Source: kafka.producer.KeyedMessage 0.8.2.2.

    message        the value, for the encoder; None is a null value (to compaction: a deletion)
    key            for the key encoder, stored with the message; None is a null key
    partition_key  chooses the partition in place of `key`; not stored
    """

    topic: str
    message: Any
    key: Any = None
    partition_key: Any = None
