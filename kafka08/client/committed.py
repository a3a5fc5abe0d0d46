"""What the answers about a group's committed offsets mean.

    nothing committed    offset NO_OFFSET; version 0 (ZooKeeper) puts error 3 beside it
    error 3 from Kafka   the coordinator does not know the partition: nobody does, or it has just
                         started and will. Of a partition that exists this says nothing, so whoever
                         knows that it does asks again
    any other error      of this partition alone; those beside it were read, or stored

Source: kafka.server.KafkaApis (handleOffsetFetchRequest, handleOffsetCommitRequest) 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Collection

from kafka08.client.requests import StorageName, commit_results, committed_results
from kafka08.errors import (
    NO_ERROR,
    ApiError,
    NotCoordinatorForConsumer,
    OffsetsLoadInProgress,
    UnknownTopicOrPartition,
    error_of,
)
from kafka08.protocol.offset_commit import OffsetCommitResponse
from kafka08.protocol.offset_fetch import OffsetFetchResponse
from kafka08.protocol.types import Response
from kafka08.structs import NO_OFFSET, TopicPartition


def error_codes(response: Response, storage: StorageName) -> dict[TopicPartition, int]:
    """partition → error code of an answer to OffsetFetch or OffsetCommit; NO_ERROR where nothing is
    committed, in either store."""
    if isinstance(response, OffsetCommitResponse):
        return {tp: answer.error_code for tp, answer in commit_results(response).items()}
    assert isinstance(response, OffsetFetchResponse)
    # 0.8: version 0 answers a missing znode with error 3 and offset -1.
    none_stored = UnknownTopicOrPartition.code if storage == "zookeeper" else NO_ERROR
    return {
        tp: NO_ERROR if answer.error_code == none_stored else answer.error_code
        for tp, answer in committed_results(response).items()
    }


def committed_in_kafka(
    response: Response,
    group: str,
    partitions: Collection[TopicPartition],
    *,
    known: bool = False,
) -> dict[TopicPartition, int]:
    """What a coordinator says of `partitions`; NO_OFFSET where nothing is committed. Raises
    NotCoordinatorForConsumer, OffsetsLoadInProgress and, of `known` partitions, which do exist,
    UnknownTopicOrPartition.

    0.8: any other error of a partition counts as "nothing committed".
    """
    assert isinstance(response, OffsetFetchResponse)
    codes = error_codes(response, "kafka")
    for error in (NotCoordinatorForConsumer, OffsetsLoadInProgress):
        if error.code in codes.values():
            raise error(f"group {group}")
    unknown = [tp for tp, code in codes.items() if code == UnknownTopicOrPartition.code]
    if known and unknown:
        raise UnknownTopicOrPartition(f"{min(unknown)}: offsets of group {group}")
    answers = committed_results(response)
    return {tp: answers[tp].offset if tp in answers else NO_OFFSET for tp in partitions}


def refused_commits(response: Response, group: str) -> dict[TopicPartition, ApiError]:
    """The partitions whose commit a coordinator has refused, each with its error."""
    return {
        tp: error
        for tp, code in error_codes(response, "kafka").items()
        if (error := error_of(code, f"commit of {tp} for group {group}"))
    }
