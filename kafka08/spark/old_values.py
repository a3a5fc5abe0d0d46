"""The values of `pyspark.streaming.kafka`, in their old spelling: see kafka08.spark.kafka."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafka08.arrow import ranges
from kafka08.kernel.types import NO_TIMESTAMP, NO_TIMESTAMP_TYPE
from kafka08.structs import TopicPartition

Decoder = Callable[[bytes | None], Any]


def utf8_decoder(s: bytes | None) -> str | None:
    """Decodes UTF-8; None for None."""
    return None if s is None else s.decode("utf-8")


class OffsetRange(ranges.OffsetRange):
    """Messages of one partition from `fromOffset` (inclusive) until `untilOffset` (exclusive)."""

    __slots__ = ()

    def __new__(cls, topic: str, partition: int, fromOffset: int, untilOffset: int) -> OffsetRange:
        return super().__new__(cls, topic, partition, fromOffset, untilOffset)

    @property
    def fromOffset(self) -> int:
        return self.from_offset

    @property
    def untilOffset(self) -> int:
        return self.until_offset

    def __str__(self) -> str:
        return (
            f"OffsetRange(topic: {self.topic}, partition: {self.partition}, "
            f"range: [{self.fromOffset} -> {self.untilOffset}]"
        )

    __repr__ = __str__


class TopicAndPartition(TopicPartition):
    """A topic's partition; hashable, equal if topic and partition are."""

    __slots__ = ()


@dataclass(unsafe_hash=True)
class Broker:
    """A broker's address."""

    host: str
    port: int


class KafkaMessageAndMetadata:
    """A message with where it came from. `key` and `message` are decoded when they are looked at,
    each time.

    timestamp       milliseconds since 1970, -1 for none; not in the old API
    timestampType   0: the producer's time, 1: the broker's, -1: a message of 0.8 or 0.9
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: bytes | None,
        message: bytes | None,
        keyDecoder: Decoder = utf8_decoder,
        valueDecoder: Decoder = utf8_decoder,
        timestamp: int = NO_TIMESTAMP,
        timestampType: int = NO_TIMESTAMP_TYPE,
    ) -> None:
        self.timestamp = timestamp
        self.timestampType = timestampType
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self._raw_key = key
        self._raw_message = message
        self._key_decoder = keyDecoder
        self._value_decoder = valueDecoder

    @property
    def key(self) -> Any:
        return self._key_decoder(self._raw_key)

    @property
    def message(self) -> Any:
        return self._value_decoder(self._raw_message)

    def __str__(self) -> str:
        return (
            f"KafkaMessageAndMetadata(topic: {self.topic}, partition: {self.partition}, "
            f"offset: {self.offset}, key and message...)"
        )

    __repr__ = __str__
