"""OffsetForLeaderEpoch: where leader epochs end in the logs that this broker leads.

-1 without an error for an unknown epoch, and for a log in an older format, which has none; the
follower then truncates to its HW. 6 where this broker follows, 3 where it has no replica. Source:
kafka.server.ReplicaManager.lastOffsetForLeaderEpoch 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Callable

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
        ends = iter([end_of(broker, *one) for turn in turns for one in turn])
        return respond(request, lambda *_: next(ends))

    if len(wanted) <= PARTITIONS_AT_ONCE:
        return look()
    return call.run_in_greenlet("OffsetForLeaderEpoch", look, is_large=True)


def end_of(broker: BrokerContext, tp: TopicPartition, epoch: int) -> EpochEndOffset:
    try:
        log = broker.replica_manager.leader_partition(tp).leader_log()
    except ApiError as error:
        return EpochEndOffset(error.code, tp.partition, NO_END_OFFSET)
    end_offset = log.records.epochs.end_offset(epoch, log.log_end_offset)
    return EpochEndOffset(NO_ERROR, tp.partition, end_offset)


def refuse(request: OffsetForLeaderEpochRequest, code: int) -> OffsetForLeaderEpochResponse:
    return respond(request, lambda tp, _: EpochEndOffset(code, tp.partition, NO_END_OFFSET))


def respond(
    request: OffsetForLeaderEpochRequest,
    end_of_epoch: Callable[[TopicPartition, int], EpochEndOffset],
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        [
            OffsetForLeaderEpochTopicResponse(
                wanted.topic,
                [
                    end_of_epoch(TopicPartition(wanted.topic, one.partition), one.leader_epoch)
                    for one in wanted.partitions
                ],
            )
            for wanted in request.topics
        ]
    )
