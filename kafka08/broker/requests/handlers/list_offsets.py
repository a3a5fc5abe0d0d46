"""ListOffsets at 0.10.2: version 1 returns one offset, by time or at an end; 0 is unchanged.

-1 is the HW for a consumer (version 2 that reads only committed messages: the last stable offset)
and the LEO for others, -2 the log start, both with the time -1. A time
selects the first message with a timestamp at or after it, -1 and -1 if there is none. A duplicate
partition is 42. A topic of a format without timestamps cannot be searched by time (43). Source:
KafkaApis.handleOffsetRequestV1 0.10.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.handlers import offsets
from kafka08.errors import (
    ApiError,
    CorruptLog,
    InvalidRequest,
    NotLeaderForPartition,
    code_of,
)
from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.log.time_index import TimestampOffset
from kafka08.log.time_search import SearchTooLong, TimeSearch
from kafka08.protocol.fetch import READ_COMMITTED
from kafka08.protocol.offsets import (
    OffsetsPartition,
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
    OffsetsTopicResponse,
)
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches
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
UNPACKED_AT_ONCE_BYTES: Final = 128 << 10
"""The most bytes that the searches of one request unpack in the event loop: a connection may send
64 in one turn. Those that need more take a thread."""
SEARCHED_AT_ONCE_BYTES: Final = 1 << 20
"""The most bytes of message files that the searches of one request read in the event loop."""
SEARCHED_AT_LEAST_BYTES: Final = 8 << 10
"""The share of one search in a request with many: about two index intervals, which takes less time
than a thread."""
Search: TypeAlias = Callable[[TimeSearch], TimestampOffset | None]


def handle(
    broker: BrokerContext, request: OffsetsRequest, call: Call
) -> OffsetsResponse | NoResponse:
    if request.version == 0:
        return offsets.handle(broker, request, call)
    count = sum(len(topic.partitions) for topic in request.topics)
    if count <= PARTITIONS_AT_ONCE:
        share = max(1, count)
        max_bytes = max(SEARCHED_AT_LEAST_BYTES, SEARCHED_AT_ONCE_BYTES // share)
        max_unpacked_bytes = UNPACKED_AT_ONCE_BYTES // share
        # One search that takes too long ends all of them: the request begins again in a greenlet.
        with suppress(SearchTooLong):
            return respond(
                broker, request, call, lambda search: search.run(max_bytes, max_unpacked_bytes)
            )

    def search_in_thread(search: TimeSearch) -> TimestampOffset | None:
        return broker.runtime.run_in_turn(call.host, search.run)

    return call.run_in_greenlet(
        "ListOffsets", lambda: respond(broker, request, call, search_in_thread)
    )


def respond(
    broker: BrokerContext, request: OffsetsRequest, call: Call, search: Search
) -> OffsetsResponse:
    """Switches if `search` does, and after each PARTITIONS_AT_ONCE partitions."""
    wanted: dict[TopicPartition, OffsetsPartition] = {}
    repeated: set[TopicPartition] = set()
    asked = [(topic.topic, one) for topic in request.topics for one in topic.partitions]
    for turn in yielding_batches(asked, broker.runtime, PARTITIONS_AT_ONCE):
        for name, partition in turn:
            tp = TopicPartition(name, partition.partition)
            if tp in wanted:
                repeated.add(tp)
            wanted[tp] = partition
    topics: dict[str, list[OffsetsPartitionResponse]] = {}
    for piece in yielding_batches(list(wanted.items()), broker.runtime, PARTITIONS_AT_ONCE):
        for tp, partition in piece:
            wanted_ms = None if tp in repeated else partition.time_ms
            result = answer(broker, request, call, tp, wanted_ms, search)
            topics.setdefault(tp.topic, []).append(result)
    return OffsetsResponse([OffsetsTopicResponse(*item) for item in topics.items()])


def answer(
    broker: BrokerContext,
    request: OffsetsRequest,
    call: Call,
    tp: TopicPartition,
    time_ms: int | None,
    search: Search,
) -> OffsetsPartitionResponse:
    """The response for one partition; `time_ms` None: it was named twice. Switches if `search`
    does."""
    result = OffsetsPartitionResponse(tp.partition, 0, [])
    try:
        if time_ms is None:
            raise InvalidRequest(f"{tp} appears twice")
        result.timestamp_ms, result.offset = find(broker, request, tp, time_ms, search)
    except (ApiError, CorruptLog) as error:
        result.error_code = code_of(error)
        logger.debug(
            "Offset request with correlation id %d from client %s on partition %s failed due to %s",
            call.header.correlation_id,
            call.header.client_id,
            tp,
            error,
        )
    return result


def find(
    broker: BrokerContext, request: OffsetsRequest, tp: TopicPartition, time_ms: int, search: Search
) -> TimestampOffset:
    """An end of the log, or the first message with a timestamp of `time_ms` or later, for a
    consumer up to the HW, or to the last stable offset. Switches if `search` does.
    UnknownTopicOrPartition, NotLeaderForPartition, ReplicaNotAvailable,
    UnsupportedForMessageFormat, CorruptLog."""
    manager, replica_id = broker.replica_manager, request.replica_id
    find_partition = (
        manager.hosted_partition if replica_id == DEBUGGING_CONSUMER else manager.leader_partition
    )
    partition = find_partition(tp)
    assert partition.log is not None
    is_consumer = replica_id == ORDINARY_CONSUMER
    end = partition.high_watermark if is_consumer else partition.log.log_end_offset
    if is_consumer and request.isolation_level == READ_COMMITTED:
        end = partition.last_stable_offset
    if time_ms == LATEST_OFFSET:
        return TimestampOffset(NO_TIMESTAMP, end)
    if time_ms == EARLIEST_OFFSET:
        return TimestampOffset(NO_TIMESTAMP, partition.log.log_start_offset)
    leader_epoch = partition.leader_epoch

    def check() -> None:
        if find_partition(tp) is not partition or partition.leader_epoch != leader_epoch:
            raise NotLeaderForPartition(f"leadership of {tp} changed during the search")

    def run(one: TimeSearch) -> TimestampOffset | None:
        """Meanwhile a new leader may have made this broker cut the log."""
        try:
            found = search(one)
        except CorruptLog:
            check()
            raise
        check()
        return found

    found = partition.log.offset_at_time(time_ms, run)
    # 0.10: a consumer gets the message at the HW, which it must not read yet.
    return NOT_FOUND if found is None or found.offset > end else found
