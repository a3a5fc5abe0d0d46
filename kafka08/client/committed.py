"""The meaning of responses about a group's committed offsets.

    nothing committed    offset NO_OFFSET; version 0 (ZooKeeper) adds error 3
    error 3 from Kafka   the coordinator does not know the partition: it does not exist, or the
                         broker has just started and has no metadata yet. A caller that knows that
                         the partition exists asks again
    any other error      of this partition alone; the others were read, or stored

Source: kafka.server.KafkaApis (handleOffsetFetchRequest, handleOffsetCommitRequest) 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kafka08.client.requests import StorageName, commit_results, committed_results
from kafka08.errors import (
    NO_ERROR,
    ApiError,
    ConsumerCoordinatorNotAvailable,
    NotCoordinatorForConsumer,
    OffsetsLoadInProgress,
    UnknownTopicOrPartition,
    check,
    error_of,
)
from kafka08.protocol.offset_commit import OffsetCommitResponse
from kafka08.protocol.offset_fetch import OffsetFetchResponse
from kafka08.protocol.types import Response
from kafka08.structs import NO_OFFSET, TopicPartition

OF_THE_GROUP: Final = frozenset(
    error.code
    for error in (
        OffsetsLoadInProgress,
        ConsumerCoordinatorNotAvailable,
        NotCoordinatorForConsumer,
    )
)
"""Errors that stand at each partition before 0.10.2, and are the group's."""


def error_codes(response: Response, storage: StorageName) -> dict[TopicPartition, int]:
    """partition → error code of an OffsetFetch or OffsetCommit response; NO_ERROR where nothing is
    committed, in either store."""
    if isinstance(response, OffsetCommitResponse):
        return {tp: result.error_code for tp, result in commit_results(response).items()}
    assert isinstance(response, OffsetFetchResponse)
    # 0.8: version 0 returns error 3 and offset -1 for a missing znode.
    none_stored = UnknownTopicOrPartition.code if storage == "zookeeper" else NO_ERROR
    return {
        tp: NO_ERROR if result.error_code == none_stored else result.error_code
        for tp, result in committed_results(response).items()
    }


def committed_in_kafka(
    response: Response,
    group: str,
    partitions: Collection[TopicPartition],
    *,
    known: bool = False,
) -> dict[TopicPartition, int]:
    """The coordinator's offsets of `partitions`; NO_OFFSET where nothing is committed. Raises
    NotCoordinatorForConsumer, OffsetsLoadInProgress and, for `known` partitions, which do exist,
    UnknownTopicOrPartition.

    0.8: any other error of a partition counts as "nothing committed".
    """
    assert isinstance(response, OffsetFetchResponse)
    check(response.error_code, f"offsets of group {group}")
    codes = error_codes(response, "kafka")
    for error in (NotCoordinatorForConsumer, OffsetsLoadInProgress):
        if error.code in codes.values():
            raise error(f"offsets of group {group}")
    unknown = [tp for tp, code in codes.items() if code == UnknownTopicOrPartition.code]
    if known and unknown:
        raise UnknownTopicOrPartition(
            f"the coordinator of group {group} does not know {min(unknown)} yet"
        )
    results = committed_results(response)
    return {tp: results[tp].offset if tp in results else NO_OFFSET for tp in partitions}


def offsets_found(
    response: Response, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """The coordinator's offsets of those of `partitions` for which it has one. Raises the error of
    the group; see OF_THE_GROUP.

    0.8: any other error of a partition counts as "nothing committed".
    """
    assert isinstance(response, OffsetFetchResponse)
    check(response.error_code, f"group {group}")
    found = {}
    for topic in response.topics:
        for result in topic.partitions:
            if result.error_code in OF_THE_GROUP:
                check(result.error_code, f"group {group}")
            if result.error_code == NO_ERROR and result.offset != NO_OFFSET:
                tp = TopicPartition(topic.topic, result.partition)
                if tp in partitions:
                    found[tp] = result.offset
    return found


def refused_commits(response: Response, group: str) -> dict[TopicPartition, ApiError]:
    """The partitions whose commit the coordinator refused, each with its error."""
    return {
        tp: error
        for tp, code in error_codes(response, "kafka").items()
        if (error := error_of(code, f"commit of {tp} for group {group}"))
    }
