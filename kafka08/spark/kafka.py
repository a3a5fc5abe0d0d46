"""The six names of `pyspark.streaming.kafka`, which Spark dropped in 3.0: change one import.

    from kafka08.spark.kafka import KafkaUtils, OffsetRange
    rdd = KafkaUtils.createRDD(sc, {"metadata.broker.list": "h:9092"}, [OffsetRange("t", 0, 0, 9)])

Same signatures and meanings, in their old spelling. What was a limit is lifted: messages larger
than the fetch size, holes of compaction at the end of a range, retries inside a task. Source:
pyspark.streaming.kafka and org.apache.spark.streaming.kafka of Spark 2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark import SparkContext, StorageLevel

from kafka08.errors import ConfigError
from kafka08.kernel import MessageAndMetadata
from kafka08.spark import ranges as new
from kafka08.spark.access import cluster_at
from kafka08.spark.data_loss import DataLost, Loss
from kafka08.spark.log_offsets import LogOffsets
from kafka08.spark.rdd import Handle, KafkaRDD, RangeRead, kafka_rdd
from kafka08.spark.settings import ClusterAddress, ReaderKeys, ReadSettings, address_of
from kafka08.structs import Broker as Endpoint
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from pyspark.streaming import DStream, StreamingContext

__all__ = [
    "Broker",
    "KafkaMessageAndMetadata",
    "KafkaUtils",
    "OffsetRange",
    "TopicAndPartition",
    "utf8_decoder",
]

Decoder = Callable[[bytes | None], Any]
MessageHandler = Callable[["KafkaMessageAndMetadata"], Any]
NO_ID: Final = -1
"""Id of a broker that is known by its address only."""


def utf8_decoder(s: bytes | None) -> str | None:
    """Text of UTF-8; None of None."""
    return None if s is None else s.decode("utf-8")


class OffsetRange(new.OffsetRange):
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
    """A partition of a topic; hashable, equal by both."""

    __slots__ = ()


class Broker:
    """Where a broker is."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Broker) and (self.host, self.port) == (other.host, other.port)

    def __hash__(self) -> int:
        return hash((self.host, self.port))

    def __repr__(self) -> str:
        return f"Broker({self.host!r}, {self.port})"


class KafkaMessageAndMetadata:
    """A message with where it came from. `key` and `message` are decoded when they are looked at,
    each time."""

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: bytes | None,
        message: bytes | None,
        keyDecoder: Decoder = utf8_decoder,
        valueDecoder: Decoder = utf8_decoder,
    ) -> None:
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


class KafkaUtils:
    """Makes RDDs and streams of Kafka messages.

    kafkaParams has `metadata.broker.list` or `bootstrap.servers` (the first wins) as
    host:port,host:port, and SimpleConsumer's keys: fetch.message.max.bytes, socket.timeout.ms,
    socket.receive.buffer.bytes, client.id, refresh.leader.backoff.ms. An element is
    `(keyDecoder(key), valueDecoder(value))`, or `messageHandler(KafkaMessageAndMetadata)`; both are
    made in the workers, and decoders see None for null.
    """

    @staticmethod
    def createRDD(
        sc: SparkContext,
        kafkaParams: Mapping[str, str],
        offsetRanges: list[OffsetRange],
        leaders: Mapping[TopicAndPartition, Broker] | None = None,
        keyDecoder: Decoder = utf8_decoder,
        valueDecoder: Decoder = utf8_decoder,
        messageHandler: MessageHandler | None = None,
    ) -> KafkaRDD:
        """The messages of exact ranges: one Spark partition each, in list order. `leaders` saves
        asking for them. DataLost ("Offsets not available on leader") if a range is not there."""
        if not isinstance(kafkaParams, dict):
            raise TypeError("kafkaParams should be dict")
        if not isinstance(offsetRanges, list):
            raise TypeError("offsetRanges should be list")
        cluster = OldCluster(kafkaParams)
        cluster.check(offsetRanges)
        known = {
            TopicPartition(*tp): Endpoint(NO_ID, broker.host, broker.port)
            for tp, broker in (leaders or {}).items()
        }
        handle = handler(keyDecoder, valueDecoder, messageHandler)
        return cluster.rdd(sc, offsetRanges, handle, known)

    @staticmethod
    def createDirectStream(
        ssc: StreamingContext,
        topics: list[str],
        kafkaParams: Mapping[str, str],
        fromOffsets: Mapping[TopicAndPartition, int] | None = None,
        keyDecoder: Decoder = utf8_decoder,
        valueDecoder: Decoder = utf8_decoder,
        messageHandler: MessageHandler | None = None,
    ) -> DStream[Any]:
        """A stream of all messages of `topics`, each exactly once in the RDDs of the batches.

        It starts at `fromOffsets`, or with `auto.offset.reset` = `smallest` at the earliest, else
        at the latest offsets. The RDDs that `foreachRDD` and `transform` hand out have
        `offsetRanges()`, to be kept with the results: a DStream checkpoint is refused.
        """
        from kafka08.spark.dstream import direct_stream

        if not isinstance(topics, list):
            raise TypeError("topics should be list")
        if not isinstance(kafkaParams, dict):
            raise TypeError("kafkaParams should be dict")
        handle = handler(keyDecoder, valueDecoder, messageHandler)
        return direct_stream(ssc, topics, OldCluster(kafkaParams), fromOffsets, handle)

    @staticmethod
    def createStream(
        ssc: StreamingContext,
        zkQuorum: str,
        groupId: str,
        topics: Mapping[str, int],
        kafkaParams: Mapping[str, str] | None = None,
        storageLevel: StorageLevel = StorageLevel.MEMORY_AND_DISK_2,
        keyDecoder: Decoder = utf8_decoder,
        valueDecoder: Decoder = utf8_decoder,
    ) -> DStream[Any]:
        """A stream of (key, value) that starts where the group stands in ZooKeeper, and commits for
        it what is done. `topics` maps names to thread counts, which mean nothing here: there is no
        receiver, each partition is read by the tasks, and nothing is stored."""
        from kafka08.spark.dstream import group_stream

        if not isinstance(topics, dict):
            raise TypeError("topics should be dict")
        params = {**(kafkaParams or {}), "zookeeper.connect": zkQuorum, "group.id": groupId}
        handle = handler(keyDecoder, valueDecoder, None)
        return group_stream(ssc, sorted(topics), OldCluster(params), groupId, handle)


def handler(
    key_decoder: Decoder, value_decoder: Decoder, message_handler: MessageHandler | None
) -> Handle:
    """What the workers make of a message."""
    if message_handler is None:
        return lambda m: (key_decoder(m.key), value_decoder(m.value))
    handle_message: MessageHandler = message_handler

    def handle(message: MessageAndMetadata) -> Any:
        return handle_message(
            KafkaMessageAndMetadata(
                message.topic,
                message.partition,
                message.offset,
                message.key,
                message.value,
                key_decoder,
                value_decoder,
            )
        )

    return handle


class OldCluster:
    """The cluster that kafkaParams name, from the driver's side."""

    def __init__(self, params: Mapping[str, str]) -> None:
        from kafka08.spark.access import resolved

        given = dict(params)
        if "metadata.broker.list" in given:
            given["bootstrap.servers"] = given.pop("metadata.broker.list")
        if "bootstrap.servers" not in given and "zookeeper.connect" not in given:
            raise ConfigError("Must specify metadata.broker.list or bootstrap.servers")
        self.starts_at_earliest = given.pop("auto.offset.reset", "") == "smallest"
        if "bootstrap.servers" in given:
            given.pop("zookeeper.connect", None)
        keys = ReaderKeys(given)
        self.address: ClusterAddress = resolved(address_of(keys))
        self.settings = replace(
            ReadSettings(),
            client_id=keys.client_id,
            fetch_bytes=keys.fetch_message_max_bytes,
            fetch_wait_ms=keys.fetch_wait_max_ms,
            socket_timeout_ms=keys.socket_timeout_ms,
            receive_buffer_bytes=keys.socket_receive_buffer_bytes,
            backoff_ms=keys.refresh_leader_backoff_ms,
        )
        self.client = cluster_at(self.address, self.settings)
        self.offsets = LogOffsets(self.client)

    def check(self, wanted: Sequence[new.OffsetRange]) -> None:
        """Every range, empty ones too, against its leader."""
        partitions = sorted({r.topic_partition for r in wanted})
        there = self.offsets.existing(partitions)
        earliest = self.offsets.earliest(sorted(there))
        latest = self.offsets.latest(sorted(there))
        faults = [
            str(Loss(new.OffsetRange(*r), earliest.get(tp), latest.get(tp)))
            for r in wanted
            if (tp := r.topic_partition) not in there
            or not earliest[tp] <= r.from_offset <= r.until_offset <= latest[tp]
        ]
        if faults:
            raise DataLost("Offsets not available on leader: " + "; ".join(faults))

    def rdd(
        self,
        sc: SparkContext,
        wanted: Sequence[new.OffsetRange],
        handle: Handle,
        leaders: Mapping[TopicPartition, Endpoint] | None = None,
    ) -> KafkaRDD:
        """The RDD of these ranges; leaders that are not given are those known by now."""
        metadata = self.client.metadata
        known = {
            r.topic_partition: metadata.leader(r.topic_partition)
            for r in wanted
            if r.topic_partition not in (leaders or {})
        }
        read = RangeRead(self.address, self.settings, handle)
        return kafka_rdd(sc, wanted, {**known, **(leaders or {})}, read)
