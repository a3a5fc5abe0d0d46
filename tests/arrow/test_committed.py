"""A group's committed offsets by way of the brokers: what "nothing committed" is in each store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.arrow.committed import committed_only
from kafka08.errors import NO_ERROR, UnknownTopicOrPartition
from kafka08.protocol.offset_fetch import (
    OffsetFetchPartitionResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopicResponse,
)
from kafka08.protocol.types import Request, Response
from kafka08.structs import NO_OFFSET, TopicPartition
from tests.arrow.logs import T0, LogCluster
from tests.client.fake_cluster import PORT

T1 = TopicPartition("t", 1)
NOT_THERE = (UnknownTopicOrPartition.code, NO_OFFSET)


class GroupCluster(LogCluster):
    """[t,0] and [t,1]; [t,0] is committed at 5, and responses have the next of `of_t1` for [t,1].
    The coordinator is b1."""

    def __init__(self, *of_t1: tuple[int, int]) -> None:
        super().__init__({"t": {0: 1, 1: 1}}, brokers=(1,))
        self.of_t1: Iterator[tuple[int, int]] = iter(of_t1)
        self.network.broker("b1", PORT, self.respond_to_group)

    def respond_to_group(self, request: Request) -> Response | None:
        if not isinstance(request, OffsetFetchRequest):
            return self.respond(1, request)
        code, offset = next(self.of_t1)
        partitions = [
            OffsetFetchPartitionResponse(0, 5, "", NO_ERROR),
            OffsetFetchPartitionResponse(1, offset, "", code),
        ]
        return OffsetFetchResponse([OffsetFetchTopicResponse("t", partitions)])


def test_error_3_from_zookeeper_is_nothing_committed() -> None:
    """OffsetFetch 0 answers error 3 for a missing znode: the partition is left out without a
    retry."""
    cluster = GroupCluster(NOT_THERE)
    assert committed_only(cluster.client, "g", [T0, T1], "zookeeper") == {T0: 5}
    assert cluster.clock.slept == []


def test_no_offset_from_kafka_is_nothing_committed() -> None:
    """OffsetFetch 1 answers offset -1 without an error: the partition is left out."""
    cluster = GroupCluster((NO_ERROR, NO_OFFSET))
    assert committed_only(cluster.client, "g", [T0, T1], "kafka") == {T0: 5}


def test_a_coordinator_that_does_not_know_a_partition_yet_is_asked_again() -> None:
    """Error 3 of OffsetFetch 1 comes from a coordinator that has just started; it does not mean
    that nothing is committed, so the request is retried."""
    cluster = GroupCluster(NOT_THERE, NOT_THERE, (NO_ERROR, 7))
    assert committed_only(cluster.client, "g", [T0, T1], "kafka") == {T0: 5, T1: 7}
    assert len(cluster.clock.slept) == 2


def test_a_partition_that_stays_unknown_to_the_coordinator_is_an_error() -> None:
    """After the last retry the error names partition, group and store: the read does not start
    elsewhere."""
    cluster = GroupCluster(*[NOT_THERE] * 4)
    with pytest.raises(UnknownTopicOrPartition, match=r"\[t,1\] of group g in kafka"):
        committed_only(cluster.client, "g", [T0, T1], "kafka")
