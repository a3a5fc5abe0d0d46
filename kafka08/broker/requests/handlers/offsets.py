"""Offsets: base offsets of a partition's segments before a time.

Ordinary clients get nothing above the HW: offsets above it are replaced by one HW at the start,
which can repeat a value. Debugging clients may ask any replica; they and followers get the LEO.
Source: KafkaApis.handleOffsetRequest 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kafka08.broker.replication.grouped_errors import GroupedErrors
from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import ApiError, code_of
from kafka08.protocol.grouping import by_partition
from kafka08.protocol.offsets import (
    OffsetsPartition,
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
    OffsetsTopicResponse,
)
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches
from kafka08.structs import DEBUGGING_CONSUMER, ORDINARY_CONSUMER, TopicPartition

logger = logging.getLogger(__name__)


def handle(
    broker: BrokerContext, request: OffsetsRequest, call: Call
) -> OffsetsResponse | NoResponse:
    wanted = list(by_partition(request.topics).items())
    return call.run_by_count("Offsets", len(wanted), lambda: respond(broker, request, call, wanted))


def respond(
    broker: BrokerContext,
    request: OffsetsRequest,
    call: Call,
    wanted: Sequence[tuple[TopicPartition, OffsetsPartition]],
) -> OffsetsResponse:
    """Switches if more than PARTITIONS_AT_ONCE are wanted."""
    topics: dict[str, list[OffsetsPartitionResponse]] = {}
    refused = GroupedErrors()
    for piece in yielding_batches(wanted, broker.runtime, PARTITIONS_AT_ONCE):
        for topic_partition, partition in piece:
            code, offsets = 0, []
            try:
                offsets = find(broker, topic_partition, partition, request.replica_id)
            except ApiError as error:
                code = code_of(error)
                refused.add(topic_partition, error)
            topics.setdefault(topic_partition.topic, []).append(
                OffsetsPartitionResponse(topic_partition.partition, code, offsets)
            )
    for partitions, reason in refused:
        logger.warning(
            "Offset request with correlation id %d from client %s on %s failed due to %s",
            call.header.correlation_id,
            call.header.client_id,
            partitions,
            reason,
            extra=call.cause,
        )
    return OffsetsResponse([OffsetsTopicResponse(*item) for item in topics.items()])


def find(
    broker: BrokerContext,
    topic_partition: TopicPartition,
    wanted: OffsetsPartition,
    replica_id: int,
) -> list[int]:
    """Descending offsets of one partition. UnknownTopicOrPartition, NotLeaderForPartition, or
    ReplicaNotAvailable for a debugging client."""
    if replica_id == DEBUGGING_CONSUMER:
        partition = broker.replica_manager.hosted_partition(topic_partition)
    else:
        partition = broker.replica_manager.leader_partition(topic_partition)
    assert partition.log is not None
    offsets = partition.log.offsets_before(wanted.time_ms, wanted.max_offsets)
    if replica_id != ORDINARY_CONSUMER:
        return offsets
    visible = [offset for offset in offsets if offset <= partition.high_watermark]
    return visible if len(visible) == len(offsets) else [partition.high_watermark, *visible]


def refuse(request: OffsetsRequest, code: int) -> OffsetsResponse:
    return OffsetsResponse(
        [
            OffsetsTopicResponse(
                topic.topic,
                [
                    OffsetsPartitionResponse(partition.partition, code, [])
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
