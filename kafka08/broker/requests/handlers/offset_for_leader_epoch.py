"""OffsetForLeaderEpoch: no log has epochs yet, so every end is unknown, without an error.

So 0.11.0.3 responds for a log in an older format; the follower then truncates to its HW. 6 where
this broker follows, 3 where it has no replica. Source: kafka.server.ReplicaManager.
lastOffsetForLeaderEpoch 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka08.broker.requests.call import Call
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import NO_ERROR, ApiError
from kafka08.log.leader_epochs import NO_END_OFFSET
from kafka08.protocol.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochTopicResponse,
)
from kafka08.structs import TopicPartition


def handle(
    broker: BrokerContext, request: OffsetForLeaderEpochRequest, call: Call
) -> OffsetForLeaderEpochResponse:
    return respond(request, lambda tp: code_of_partition(broker, tp))


def code_of_partition(broker: BrokerContext, tp: TopicPartition) -> int:
    try:
        broker.replica_manager.leader_partition(tp)
    except ApiError as error:
        return error.code
    return NO_ERROR


def refuse(request: OffsetForLeaderEpochRequest, code: int) -> OffsetForLeaderEpochResponse:
    return respond(request, lambda tp: code)


def respond(
    request: OffsetForLeaderEpochRequest, code_of: Callable[[TopicPartition], int]
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        [
            OffsetForLeaderEpochTopicResponse(
                wanted.topic,
                [
                    EpochEndOffset(
                        code_of(TopicPartition(wanted.topic, one.partition)),
                        one.partition,
                        NO_END_OFFSET,
                    )
                    for one in wanted.partitions
                ],
            )
            for wanted in request.topics
        ]
    )
