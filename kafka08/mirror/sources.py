"""Sources of a move: all messages of some partitions, in order, from given offsets on.

`NewSource` is a KafkaConsumer, for brokers from 0.9 on; `OldSource` asks brokers of 0.8, which have
no versions, one partition after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from kafka08.client import ClusterClient
from kafka08.consumer import KafkaConsumer, LogTruncated
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.consumer.partition_reader import PartitionReader
from kafka08.errors import NoOffsetForPartition, OffsetOutOfRange
from kafka08.lifecycle import Closeable
from kafka08.mirror.outcome import MirrorFailed
from kafka08.protocol.fetch import MAGIC_2_VERSION, FetchRequest
from kafka08.structs import NO_LEADER_EPOCH, OffsetAndMetadata, TopicPartition

MESSAGES_AT_ONCE: Final = 16_384
FETCH_BYTES: Final = 1 << 20
FETCHED_BYTES: Final = 64 << 20
"""The messages of all partitions that are in memory at a time."""
NO_TIME: Final = -1
COPIED_WHAT_IS_LOST: Final = (
    "Messages with the same offsets may differ; delete these topics at the target and move them "
    "under another --name"
)
"""What to do if the source has lost messages that were copied."""
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(slots=True)
class Portion:
    """Messages of one partition, in order; each list has one item for each.

    times         NO_TIME for a message without a timestamp
    leader_epoch  see kafka08.mirror.offset_map.Copied
    """

    topic_partition: TopicPartition
    offsets: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    leader_epoch: int = NO_LEADER_EPOCH

    @property
    def size(self) -> int:
        """Bytes of keys and values."""
        return sum(len(data) for data in (*self.keys, *self.values) if data is not None)


class Source(Protocol):
    """One thread may use it."""

    def poll(self, timeout: float) -> list[Portion]:
        """Some messages; none after a while without any. OffsetOutOfRange if the next message of a
        partition is no longer there, and errors that may pass. MirrorFailed if messages were lost
        that it has returned."""

    def seek(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Read these partitions from there on; others are not read any more. Where a position has a
        leader epoch, messages before it that were lost since are noticed."""

    def close(self) -> None: ...


class NewSource(Closeable):
    """properties   bootstrap.servers, and the keys for TLS and SASL"""

    def __init__(self, properties: Mapping[str, str], cluster: ClusterClient) -> None:
        broker = next(iter(cluster.metadata.brokers.values()))
        with cluster.connection(broker) as connection:
            has_batches = connection.versions.highest(FetchRequest, 0, MAGIC_2_VERSION)
        keys = {
            "enable.auto.commit": "false",
            "auto.offset.reset": "none",
            "max.poll.records": str(MESSAGES_AT_ONCE),
            "isolation.level": "read_committed"
            if has_batches == MAGIC_2_VERSION
            else "read_uncommitted",
        }
        self._consumer = KafkaConsumer(KafkaConsumerConfig({**properties, **keys}))

    def poll(self, timeout: float) -> list[Portion]:
        portions: dict[TopicPartition, Portion] = {}
        try:
            found = self._consumer.poll(timeout)
        except NoOffsetForPartition as error:
            raise OffsetOutOfRange(str(error)) from error
        except LogTruncated as error:
            raise MirrorFailed(f"{error.detail}. {COPIED_WHAT_IS_LOST}") from error
        for message in found:
            tp = TopicPartition(message.topic, message.partition)
            portion = portions.get(tp)
            if portion is None:
                portion = portions[tp] = Portion(tp)
            portion.offsets.append(message.offset)
            portion.keys.append(message.key)
            portion.values.append(message.value)
            portion.times.append(message.timestamp)
            portion.headers.append(message.headers)
        if portions:
            at = self._consumer.positions()
            for tp, portion in portions.items():
                portion.leader_epoch = at[tp].leader_epoch
        return list(portions.values())

    def seek(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self._consumer.assign(positions)
        for tp, offset in positions.items():
            self._consumer.seek(tp, offset)

    def close(self) -> None:
        self._consumer.close()


class OldSource(Closeable):
    """cluster   lent"""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._readers: list[PartitionReader] = []

    def poll(self, timeout: float) -> list[Portion]:
        return list(self._portions())

    def _portions(self) -> Iterator[Portion]:
        left = FETCHED_BYTES
        for number, reader in enumerate(self._readers):
            for batch in reader.poll(BatchLimits(MESSAGES_AT_ONCE)):
                count = len(batch)
                portion = Portion(
                    batch.topic_partition,
                    list(batch.offsets),
                    batch.keys(),
                    batch.values(),
                    [NO_TIME] * count,
                    [()] * count,
                )
                left -= portion.size
                yield portion
            if left <= 0:
                # The next poll begins with the others.
                self._readers = self._readers[number + 1 :] + self._readers[: number + 1]
                return

    def seek(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self._readers = [
            PartitionReader(self._cluster, tp, one.offset, fetch_bytes=FETCH_BYTES, wait_ms=0)
            for tp, one in positions.items()
        ]

    def close(self) -> None:
        """Nothing is its own."""
