"""The six names of `pyspark.streaming.kafka`, which Spark dropped in 3.0: change one import.

    from kafka08.spark.kafka import KafkaUtils, OffsetRange
    rdd = KafkaUtils.createRDD(sc, {"metadata.broker.list": "h:9092"}, [OffsetRange("t", 0, 0, 9)])

Same signatures and meanings, in the old spelling, without three limits: messages may exceed the
fetch size, compaction may have removed the end of a range, and a task retries. Source:
pyspark.streaming.kafka and org.apache.spark.streaming.kafka of Spark 2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka08.extras import naming_extra

with naming_extra("kafka08.spark.kafka", "spark"):
    from pyspark import SparkContext, StorageLevel

    from kafka08.kernel import MessageAndMetadata
    from kafka08.spark.dstream import direct_stream, group_stream
    from kafka08.spark.old_cluster import OldCluster
    from kafka08.spark.old_values import (
        Broker,
        Decoder,
        KafkaMessageAndMetadata,
        OffsetRange,
        TopicAndPartition,
        utf8_decoder,
    )
    from kafka08.spark.rdd import Handle, KafkaRDD
    from kafka08.spark.worker_python import check_workers
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

MessageHandler = Callable[[KafkaMessageAndMetadata], Any]
NO_ID: Final = -1
"""Id of a broker of which only the address is known."""


class KafkaUtils:
    """Makes RDDs and streams of Kafka messages.

    kafkaParams has `metadata.broker.list` or `bootstrap.servers` (the first wins) as
    host:port,host:port, and SimpleConsumer's keys: fetch.message.max.bytes, socket.timeout.ms,
    socket.receive.buffer.bytes, client.id, refresh.leader.backoff.ms. An element is
    `(keyDecoder(key), valueDecoder(value))`, or `messageHandler(KafkaMessageAndMetadata)`; both run
    in the workers, and decoders get None for null. Before the first RDD or stream of an application
    the workers' Python is checked, as by kafka08.spark.register: ConfigError if it cannot run them.
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
        """The messages of exact ranges: one Spark partition each, in list order. With `leaders`
        they are not looked up. DataLost ("Offsets not available on leader") for missing offsets."""
        if not isinstance(kafkaParams, dict):
            raise TypeError("kafkaParams should be dict")
        if not isinstance(offsetRanges, list):
            raise TypeError("offsetRanges should be list")
        cluster = OldCluster(kafkaParams, {wanted.topic for wanted in offsetRanges})
        cluster.check(offsetRanges)
        check_workers(sc)
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
        at the latest offsets. The RDDs of `foreachRDD` and `transform` have
        `offsetRanges()`; store them with the results, since a DStream checkpoint is refused. If a
        log ends before the stream's position, its intervals fail with DataLost.
        """
        if not isinstance(topics, list):
            raise TypeError("topics should be list")
        if not isinstance(kafkaParams, dict):
            raise TypeError("kafkaParams should be dict")
        handle = handler(keyDecoder, valueDecoder, messageHandler)
        return direct_stream(ssc, topics, OldCluster(kafkaParams, topics), fromOffsets, handle)

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
        """A stream of (key, value). It starts at the group's offsets in ZooKeeper; without one that
        the log has, `auto.offset.reset` decides, and the start is committed before the first
        interval. New partitions of a topic that the group has read begin at their earliest offset.
        It commits finished intervals for the group until an output fails; that interval and all
        later ones are read again at the next start. DataLost if a log ends before its position.
        `topics` maps names to thread counts, which have no effect: there is no receiver, tasks read
        the partitions."""
        if not isinstance(topics, dict):
            raise TypeError("topics should be dict")
        params = {**(kafkaParams or {}), "zookeeper.connect": zkQuorum, "group.id": groupId}
        handle = handler(keyDecoder, valueDecoder, None)
        return group_stream(ssc, sorted(topics), OldCluster(params, topics), groupId, handle)


def handler(
    key_decoder: Decoder, value_decoder: Decoder, message_handler: MessageHandler | None
) -> Handle:
    """The function that makes an element of a message in the workers."""
    if message_handler is None:
        return lambda m: (key_decoder(m.key), value_decoder(m.value))
    handle_message: MessageHandler = message_handler

    def handle(message: MessageAndMetadata[Any, Any]) -> Any:
        return handle_message(
            KafkaMessageAndMetadata(
                message.topic,
                message.partition,
                message.offset,
                message.key,
                message.value,
                key_decoder,
                value_decoder,
                message.timestamp,
                message.timestamp_type,
            )
        )

    return handle
