"""KeyedMessage for the old producer; ProducerRecord and RecordMetadata for the new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kafka08 import kernel
from kafka08.kernel.types import NO_TIMESTAMP


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
    """A message for `topic`. Source: org.apache.kafka.clients.producer.ProducerRecord 0.10.2.2.

    value      for the value serializer; None is a null value (to compaction: a deletion)
    key        for the key serializer, stored with the message; None is a null key
    partition  its partition; None: the partitioner chooses
    timestamp  when it happened, in ms since 1970; None: when it is sent. Brokers before 0.10.0
               store none. ValueError if it is negative
    headers    pairs of a name and bytes or None, for brokers from 0.11 on
    """

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Sequence[tuple[str, bytes | None]] | None = None


kernel.set_constructor(KeyedMessage, kernel.new_keyed_message)
kernel.set_constructor(ProducerRecord, kernel.new_producer_record)


class RecordMetadata(NamedTuple):
    """Where a record was stored.

    offset     NO_OFFSET with acks=0, which has no response
    timestamp  the record's, or the broker's with message.timestamp.type=LogAppendTime, in ms since
               1970; NO_TIMESTAMP (-1) from a broker before 0.10.0, which stores none
    """

    topic: str
    partition: int
    offset: int
    timestamp: int = NO_TIMESTAMP
