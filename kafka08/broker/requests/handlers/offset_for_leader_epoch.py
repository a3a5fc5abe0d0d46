"""OffsetForLeaderEpoch: where leader epochs end in the logs that this broker leads.

-1 without an error for an unknown epoch, and for a log in an older format, which has none; the
follower then truncates to its HW. 6 where this broker follows, 3 where it has no replica. Source:
kafka.server.ReplicaManager.lastOffsetForLeaderEpoch 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import NO_ERROR, ApiError
from kafka08.log.leader_epochs import NO_END_OFFSET
from kafka08.protocol.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochTopicResponse,
)
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches
from kafka08.structs import TopicPartition


def handle(
    broker: BrokerContext, request: OffsetForLeaderEpochRequest, call: Call
) -> OffsetForLeaderEpochResponse | NoResponse:
    wanted = [
        (TopicPartition(topic.topic, one.partition), one.leader_epoch)
        for topic in request.topics
        for one in topic.partitions
    ]

    def look() -> OffsetForLeaderEpochResponse:
        """Switches if there are more than PARTITIONS_AT_ONCE partitions."""
        turns = yielding_batches(wanted, broker.runtime, PARTITIONS_AT_ONCE)
        return respond(request, [end_of(broker, *one) for turn in turns for one in turn])

    return call.run_by_count("OffsetForLeaderEpoch", len(wanted), look, is_large=True)


def end_of(broker: BrokerContext, tp: TopicPartition, epoch: int) -> EpochEndOffset:
    try:
        log = broker.replica_manager.leader_partition(tp).leader_log()
    except ApiError as error:
        return EpochEndOffset(error.code, tp.partition, NO_END_OFFSET)
    end_offset = log.records.epochs.end_offset(epoch, log.log_end_offset)
    return EpochEndOffset(NO_ERROR, tp.partition, end_offset)


def refuse(request: OffsetForLeaderEpochRequest, code: int) -> OffsetForLeaderEpochResponse:
    numbers = (one.partition for topic in request.topics for one in topic.partitions)
    return respond(request, (EpochEndOffset(code, number, NO_END_OFFSET) for number in numbers))


def respond(
    request: OffsetForLeaderEpochRequest, ends: Iterable[EpochEndOffset]
) -> OffsetForLeaderEpochResponse:
    """`ends`: one for each partition of the request, in its order."""
    left = iter(ends)
    return OffsetForLeaderEpochResponse(
        [
            OffsetForLeaderEpochTopicResponse(
                wanted.topic, list(islice(left, len(wanted.partitions)))
            )
            for wanted in request.topics
        ]
    )
