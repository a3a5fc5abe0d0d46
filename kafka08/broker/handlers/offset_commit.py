"""OffsetCommit, version 0 into ZooKeeper, the others into `__consumer_offsets`.

Version 0: per partition 3 if the topic is unknown here, 12 for too long metadata, else the offset
goes to /consumers/<group>/offsets/<topic>/<partition>; it does not check that the partition exists
and drops the metadata. Version 1: see OffsetManager.commit. Generation and member are ignored.

From level 0.9 on: 3 if the topic is unknown here; for other topics generation and member decide,
see Group.check_commit. Source: kafka.server.KafkaApis 0.8.2.2, 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from kafka08.broker.call import Call, NoResponse
from kafka08.broker.context import BrokerContext
from kafka08.broker.coordinator.append_codes import CODES_OF_GROUPS
from kafka08.broker.coordinator.offset_manager import java_length
from kafka08.errors import (
    NO_ERROR,
    OffsetMetadataTooLarge,
    UnknownError,
    UnknownTopicOrPartition,
)
from kafka08.levels import Level
from kafka08.log_limit import caused_by
from kafka08.protocol.grouping import by_partition, by_topic
from kafka08.protocol.offset_commit import (
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from kafka08.protocol.types import NULL_NAME, Response
from kafka08.structs import OffsetAndMetadata, TopicPartition
from kafka08.zk.group_store import GroupStore

logger = logging.getLogger(__name__)

ZOOKEEPER_VERSION: Final = 0
"""The version that stores offsets in ZooKeeper."""


def handle(
    broker: BrokerContext, request: OffsetCommitRequest, call: Call
) -> Response | NoResponse:
    if request.version == ZOOKEEPER_VERSION:
        return call.run_in_greenlet("OffsetCommit v0", lambda: commit_to_zookeeper(broker, request))
    responses: list[Response] = []
    parked = False

    def done(codes: Mapping[TopicPartition, int]) -> None:
        response = respond(request, codes.__getitem__)
        if parked:
            call.respond(response)
        else:
            responses.append(response)

    offsets = offsets_of(request)
    if request.group is NULL_NAME or any(tp.topic is NULL_NAME for tp in offsets):
        raise UnknownError("a group or a topic whose name is null")
    if broker.config.level >= Level.V0_9_0:
        commit_to_coordinator(broker, request, offsets, done)
    else:
        broker.offset_manager.commit(request.group, offsets, done)
    parked = True
    return responses[0] if responses else NoResponse.PARKED


def commit_to_coordinator(
    broker: BrokerContext,
    request: OffsetCommitRequest,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    done: Callable[[Mapping[TopicPartition, int]], object],
) -> None:
    """Calls `done` with a code per partition; at once if no topic is known."""
    known = {tp: offset for tp, offset in offsets.items() if tp.topic in broker.metadata_cache}
    unknown = dict.fromkeys(offsets.keys() - known.keys(), UnknownTopicOrPartition.code)
    if known:
        broker.group_coordinator.commit(request, known, lambda codes: done(codes | unknown))
    else:
        done(unknown)


def refuse(request: OffsetCommitRequest, code: int) -> Response:
    code = CODES_OF_GROUPS.get(code, code)
    return respond(request, lambda _: code)


def commit_to_zookeeper(broker: BrokerContext, request: OffsetCommitRequest) -> Response:
    """Write all offsets in one burst. A group without a name has error -1. Switches."""
    codes: dict[TopicPartition, int] = {}
    accepted: dict[TopicPartition, int] = {}
    for tp, item in by_partition(request.topics).items():
        if tp.topic not in broker.metadata_cache:
            codes[tp] = UnknownTopicOrPartition.code
        elif java_length(item.metadata) > broker.config.offset_metadata_max_bytes:
            codes[tp] = OffsetMetadataTooLarge.code
        elif request.group:
            accepted[tp] = item.offset
        else:
            codes[tp] = UnknownError.code
    failed = GroupStore(broker.store.zk).commit_offsets(request.group, accepted)
    for tp, error in failed.items():
        logger.error(
            "cannot commit offset %d of %s: %s", accepted[tp], tp, error, extra=caused_by("")
        )
        codes[tp] = UnknownError.code
    return respond(request, lambda tp: codes.get(tp, NO_ERROR))


def offsets_of(request: OffsetCommitRequest) -> dict[TopicPartition, OffsetAndMetadata]:
    """The offsets by partition; of a duplicate partition the last one."""
    return {
        TopicPartition(topic.topic, item.partition): OffsetAndMetadata(
            item.offset, item.metadata, item.timestamp_ms
        )
        for topic in request.topics
        for item in topic.partitions
    }


def respond(
    request: OffsetCommitRequest, code_of: Callable[[TopicPartition], int]
) -> OffsetCommitResponse:
    """One code per partition, without duplicates; a topic without partitions is left out."""
    codes = {tp: code_of(tp) for tp in by_partition(request.topics)}
    return OffsetCommitResponse(
        [
            OffsetCommitTopicResponse(
                topic, [OffsetCommitPartitionResponse(number, code) for number, code in items]
            )
            for topic, items in by_topic(codes).items()
        ]
    )
