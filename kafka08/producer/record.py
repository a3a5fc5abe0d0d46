"""KeyedMessage for the old producer; ProducerRecord and RecordMetadata for the new one."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafka08 import kernel


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


class ProducerRecord(NamedTuple):
    """A message for `topic`. Source: org.apache.kafka.clients.producer.ProducerRecord 0.8.2.2.

    value      for the value serializer; None is a null value (to compaction: a deletion)
    key        for the key serializer, stored with the message; None is a null key
    partition  its partition; None: the partitioner chooses
    """

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None


KeyedMessage.__new__ = staticmethod(kernel.new_keyed_message)  # type: ignore[assignment]
ProducerRecord.__new__ = staticmethod(kernel.new_producer_record)  # type: ignore[assignment]


class RecordMetadata(NamedTuple):
    """Where a record was stored. `offset` is NO_OFFSET with acks=0, which has no response."""

    topic: str
    partition: int
    offset: int
