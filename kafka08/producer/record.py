"""ProducerRecord and RecordMetadata: a record for the new producer, and where it was stored."""

from __future__ import annotations

from typing import Any, NamedTuple


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


class RecordMetadata(NamedTuple):
    """Where a record was stored. `offset` is NO_OFFSET with acks=0, which has no response."""

    topic: str
    partition: int
    offset: int
