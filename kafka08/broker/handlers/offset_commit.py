"""OffsetCommit, version 0 into ZooKeeper, version 1 into `__consumer_offsets`.

Version 0: per partition 3 if the topic is unknown here, 12 for too long metadata, else the offset
goes to /consumers/<group>/offsets/<topic>/<partition>; whether the partition exists is not asked
and the metadata is dropped. Version 1: see OffsetManager.commit. Generation and member are ignored.
Source: kafka.server.KafkaApis 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from kafka08.broker.call import Call, Later
from kafka08.broker.context import BrokerContext
from kafka08.broker.coordinator.offset_manager import CODES_OF_GROUPS, java_length
from kafka08.errors import (
    NO_ERROR,
    OffsetMetadataTooLarge,
    UnknownError,
    UnknownTopicOrPartition,
)
from kafka08.protocol.offset_commit import (
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from kafka08.protocol.types import Response
from kafka08.structs import OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)

ZOOKEEPER_VERSION: Final = 0
"""The one version that keeps offsets in ZooKeeper."""


def handle(broker: BrokerContext, request: OffsetCommitRequest, call: Call) -> Response | Later:
    if request.version == ZOOKEEPER_VERSION:
        return call.run_slowly("OffsetCommit v0", lambda: commit_to_zookeeper(broker, request))
    answers: list[Response] = []
    parked = False

    def done(codes: Mapping[TopicPartition, int]) -> None:
        response = respond(request, codes.__getitem__)
        if parked:
            call.answer(response)
        else:
            answers.append(response)

    broker.offset_manager.commit(request.group, offsets_of(request), done)
    parked = True
    return answers[0] if answers else Later.PARKED


def refuse(request: OffsetCommitRequest, code: int) -> Response:
    code = CODES_OF_GROUPS.get(code, code)
    return respond(request, lambda _: code)


def commit_to_zookeeper(broker: BrokerContext, request: OffsetCommitRequest) -> Response:
    """Write all offsets in one burst. Switches."""
    codes: dict[TopicPartition, int] = {}
    accepted: dict[TopicPartition, int] = {}
    for topic in request.topics:
        for item in topic.partitions:
            tp = TopicPartition(topic.topic, item.partition)
            if topic.topic not in broker.metadata_cache:
                codes[tp] = UnknownTopicOrPartition.code
            elif java_length(item.metadata) > broker.config.offset_metadata_max_bytes:
                codes[tp] = OffsetMetadataTooLarge.code
            else:
                accepted[tp] = item.offset
    failed = broker.store.commit_offsets(request.group, accepted)
    for tp, error in failed.items():
        log.error("cannot commit offset %d of %s: %s", accepted[tp], tp, error)
        codes[tp] = UnknownError.code
    return respond(request, lambda tp: codes.get(tp, NO_ERROR))


def offsets_of(request: OffsetCommitRequest) -> dict[TopicPartition, OffsetAndMetadata]:
    """The offsets by partition; the last of a partition that stands twice wins."""
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
    return OffsetCommitResponse(
        [
            OffsetCommitTopicResponse(
                topic.topic,
                [
                    OffsetCommitPartitionResponse(
                        item.partition, code_of(TopicPartition(topic.topic, item.partition))
                    )
                    for item in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
