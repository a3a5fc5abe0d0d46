"""Responses about a group's committed offsets, and their meaning."""

from __future__ import annotations

import pytest

from kafka08.client.committed import (
    OF_THE_GROUP,
    committed_in_kafka,
    error_codes,
    offsets_found,
    refused_commits,
)
from kafka08.client.requests import StorageName
from kafka08.errors import (
    NO_ERROR,
    ApiError,
    NotCoordinatorForConsumer,
    OffsetMetadataTooLarge,
    OffsetsLoadInProgress,
    UnknownTopicOrPartition,
)
from kafka08.protocol.offset_commit import (
    OffsetCommitPartitionResponse,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from kafka08.protocol.offset_fetch import (
    OffsetFetchPartitionResponse,
    OffsetFetchResponse,
    OffsetFetchTopicResponse,
)
from kafka08.structs import NO_OFFSET, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LOADING, UNKNOWN = OffsetsLoadInProgress.code, UnknownTopicOrPartition.code


def fetched(*responses: tuple[int, int]) -> OffsetFetchResponse:
    """(error code, offset) of [t,0], [t,1], …"""
    partitions = [
        OffsetFetchPartitionResponse(number, offset, "", code)
        for number, (code, offset) in enumerate(responses)
    ]
    return OffsetFetchResponse([OffsetFetchTopicResponse("t", partitions)])


def committed(*codes: int) -> OffsetCommitResponse:
    partitions = [OffsetCommitPartitionResponse(number, code) for number, code in enumerate(codes)]
    return OffsetCommitResponse([OffsetCommitTopicResponse("t", partitions)])


def test_error_3_is_nothing_committed_only_where_zookeeper_was_read() -> None:
    """Of Kafka, and of a commit to either store, it is an error."""
    response = fetched((NO_ERROR, 5), (UNKNOWN, NO_OFFSET))
    assert error_codes(response, "zookeeper") == {T0: NO_ERROR, T1: NO_ERROR}
    assert error_codes(response, "kafka") == {T0: NO_ERROR, T1: UNKNOWN}
    assert error_codes(committed(UNKNOWN), "zookeeper") == {T0: UNKNOWN}


@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
def test_other_errors_are_unchanged(storage: StorageName) -> None:
    """Other errors, such as loading, come unchanged from either store."""
    assert error_codes(fetched((LOADING, NO_OFFSET)), storage) == {T0: LOADING}


@pytest.mark.parametrize("error", [NotCoordinatorForConsumer, OffsetsLoadInProgress])
def test_a_response_about_the_coordinator_is_never_nothing_committed(
    error: type[ApiError],
) -> None:
    """It counts for all partitions, whichever has it."""
    response = fetched((NO_ERROR, 5), (error.code, NO_OFFSET))
    with pytest.raises(error, match="group g"):
        committed_in_kafka(response, "g", [T0, T1])


def test_only_a_partition_that_exists_must_be_known() -> None:
    """Otherwise, as in 0.8.2.2, nothing is committed for it: nor for one that was left out."""
    response = fetched((UNKNOWN, NO_OFFSET))
    assert committed_in_kafka(response, "g", [T0, T1]) == {T0: NO_OFFSET, T1: NO_OFFSET}
    with pytest.raises(UnknownTopicOrPartition, match=r"group g does not know \[t,0\] yet"):
        committed_in_kafka(response, "g", [T0, T1], known=True)


def test_only_requested_partitions_with_an_offset_are_returned() -> None:
    """Partitions without a commit, unknown ones and others of the group are left out."""
    response = fetched((NO_ERROR, 5), (NO_ERROR, NO_OFFSET), (UNKNOWN, NO_OFFSET), (NO_ERROR, 7))
    asked = [TopicPartition("t", number) for number in range(3)]
    assert offsets_found(response, "g", asked) == {T0: 5}


@pytest.mark.parametrize("code", sorted(OF_THE_GROUP))
def test_an_error_of_the_group_is_no_response(code: int) -> None:
    """An error of the group is raised, whether one of its partitions has it or, from 0.10.2 on, the
    response."""
    at_a_partition = fetched((NO_ERROR, 5), (code, NO_OFFSET))
    of_the_response = OffsetFetchResponse([], code)
    for response in (at_a_partition, of_the_response):
        with pytest.raises(ApiError, match="group g") as raised:
            offsets_found(response, "g", [T0, T1])
        assert raised.value.code == code


def test_a_refused_commit_is_of_its_partition_alone() -> None:
    """Those beside it were stored."""
    refused = refused_commits(committed(NO_ERROR, OffsetMetadataTooLarge.code), "g")
    assert list(refused) == [T1]
    assert isinstance(refused[T1], OffsetMetadataTooLarge)
