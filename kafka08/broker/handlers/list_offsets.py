"""ListOffsets at 0.10.2: version 1 returns one offset, by time or at an end; 0 is unchanged.

-1 is the HW for a consumer and the LEO for others, -2 the log start, both with the time -1. A time
selects the first message with a timestamp at or after it, -1 and -1 if there is none. A duplicate
partition is 42. A topic of a format without timestamps cannot be searched by time (43). Source:
KafkaApis.handleOffsetRequestV1 0.10.2.2.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from kafka08.broker.call import Call, NoResponse
from kafka08.broker.context import BrokerContext
from kafka08.broker.handlers import offsets
from kafka08.errors import ApiError, CorruptLog, InvalidRequest, code_of
from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.log.time_index import TimestampOffset
from kafka08.protocol.grouping import by_partition
from kafka08.protocol.offsets import (
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
    OffsetsTopicResponse,
)
from kafka08.structs import (
    DEBUGGING_CONSUMER,
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    NO_OFFSET,
    ORDINARY_CONSUMER,
    TopicPartition,
)

logger = logging.getLogger(__name__)

refuse = offsets.refuse
NOT_FOUND: Final = TimestampOffset(NO_TIMESTAMP, NO_OFFSET)


def handle(
    broker: BrokerContext, request: OffsetsRequest, call: Call
) -> OffsetsResponse | NoResponse:
    if request.version == 0:
        return offsets.handle(broker, request, call)
    times = Counter(
        TopicPartition(topic.topic, partition.partition)
        for topic in request.topics
        for partition in topic.partitions
    )
    topics: dict[str, list[OffsetsPartitionResponse]] = {}
    for tp, wanted in by_partition(request.topics).items():
        result = OffsetsPartitionResponse(tp.partition, 0, [])
        try:
            if times[tp] > 1:
                raise InvalidRequest(f"{tp} appears twice")
            found = find(broker, tp, wanted.time_ms, request.replica_id)
            result.timestamp_ms, result.offset = found
        except (ApiError, CorruptLog) as error:
            result.error_code = code_of(error)
            logger.debug(
                "Offset request with correlation id %d from client %s on partition %s failed due "
                "to %s",
                call.header.correlation_id,
                call.header.client_id,
                tp,
                error,
            )
        topics.setdefault(tp.topic, []).append(result)
    return OffsetsResponse([OffsetsTopicResponse(*item) for item in topics.items()])


def find(
    broker: BrokerContext, tp: TopicPartition, time_ms: int, replica_id: int
) -> TimestampOffset:
    """An end of the log, or the first message with a timestamp of `time_ms` or later, for a
    consumer up to the HW. UnknownTopicOrPartition, NotLeaderForPartition, ReplicaNotAvailable,
    UnsupportedForMessageFormat."""
    manager = broker.replica_manager
    partition = (
        manager.hosted_partition(tp)
        if replica_id == DEBUGGING_CONSUMER
        else manager.leader_partition(tp)
    )
    assert partition.log is not None
    is_consumer = replica_id == ORDINARY_CONSUMER
    end = partition.high_watermark if is_consumer else partition.log.log_end_offset
    if time_ms == LATEST_OFFSET:
        return TimestampOffset(NO_TIMESTAMP, end)
    if time_ms == EARLIEST_OFFSET:
        return TimestampOffset(NO_TIMESTAMP, partition.log.log_start_offset)
    found = partition.log.offset_at_time(time_ms)
    # 0.10: a consumer gets the message at the HW, which it may not read yet.
    return NOT_FOUND if found is None or found.offset > end else found
