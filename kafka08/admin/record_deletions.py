"""Deletes the first records of partitions, by their leaders. For brokers from 0.11 on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka08.client.cluster import send_at_version
from kafka08.errors import AdminError, ApiError, KafkaError, UnsupportedVersion, error_of
from kafka08.protocol.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka08.protocol.grouping import by_topic
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.client.cluster import ClusterClient
    from kafka08.network.connection import Connection


TOO_OLD: Final = (
    "the brokers are older than 0.11, and cannot delete records. Lower retention.ms or "
    "retention.bytes of the topic instead: kafka08 topic alter"
)


def delete_records(
    cluster: ClusterClient, before: Mapping[TopicPartition, int], timeout_ms: int
) -> dict[TopicPartition, int | KafkaError]:
    """Delete the records below an offset of each partition (HIGH_WATERMARK: all that consumers can
    read) on all live replicas; returns where the log starts then, or the error. AdminError if the
    brokers are older than 0.11."""

    def ask(
        connection: Connection, of_leader: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | ApiError]:
        topics = [
            DeleteRecordsTopic(topic, [DeleteRecordsPartition(*one) for one in partitions])
            for topic, partitions in by_topic(of_leader).items()
        ]
        request = DeleteRecordsRequest(topics, timeout_ms)
        response: Any = send_at_version(connection, request, (0, 0))
        return {
            TopicPartition(topic.topic, p.partition): error_of(p.error_code) or p.low_watermark
            for topic in response.topics
            for p in topic.partitions
        }

    found = cluster.ask_each_leader(before, ask)
    for result in found.values():
        if isinstance(result, UnsupportedVersion):
            raise AdminError(TOO_OLD)
    return found
