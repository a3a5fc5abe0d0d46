"""Requests and answers by partition: grouped for the wire and back, nothing lost on the way."""

from __future__ import annotations

import pytest

from kafka08.client.requests import (
    commit_request,
    commit_version,
    committed_request,
    fetch_request,
    fetch_version,
    offsets_request,
    produce_request,
)
from kafka08.protocol.api_versions import ApiVersionRange
from kafka08.protocol.codec import decode_request, encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offsets import (
    OffsetsPartition,
    OffsetsRequest,
    OffsetsTopic,
)
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.structs import LATEST_OFFSET, OffsetAndMetadata, TopicPartition

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def test_fetch_and_offsets() -> None:
    """An ordinary consumer's replica id is -1."""
    assert fetch_request(
        {T0: (5, 100), U0: (0, 7), T1: (6, 200)}, max_wait_ms=9, min_bytes=1
    ) == FetchRequest(
        -1,
        9,
        1,
        [
            FetchTopic("t", [FetchPartition(0, 5, 100), FetchPartition(1, 6, 200)]),
            FetchTopic("u", [FetchPartition(0, 0, 7)]),
        ],
    )
    assert offsets_request({T1: LATEST_OFFSET}, max_offsets=3) == OffsetsRequest(
        -1, [OffsetsTopic("t", [OffsetsPartition(1, -1, 3)])]
    )


def test_produce() -> None:
    """A Produce request has one set per partition."""
    assert produce_request({T0: b"x"}, required_acks=-1, timeout_ms=5) == ProduceRequest(
        -1, 5, [ProduceTopic("t", [ProducePartition(0, b"x")])]
    )


def test_commit_in_both_stores() -> None:
    """ZooKeeper's version has no time; Kafka's comes from no generation and no member."""
    offsets = {T0: OffsetAndMetadata(5, "m", 77)}
    topics = [OffsetCommitTopic("t", [OffsetCommitPartition(0, 5, "m", 77)])]
    zookeeper = commit_request("g", offsets, "zookeeper")
    assert zookeeper == OffsetCommitRequest("g", topics, version=0)
    assert commit_request("g", offsets, "kafka") == OffsetCommitRequest(
        "g", topics, generation=-1, member="", version=1
    )
    _, sent = decode_request(encode_request(zookeeper, 1, None)[4:])
    assert sent.topics == [OffsetCommitTopic("t", [OffsetCommitPartition(0, 5, "m", -1)])]


def test_committed_offsets_of_both_stores() -> None:
    """The version says which store is meant; a partition named twice is asked for once."""
    zookeeper = committed_request("g", [T0, T1, T0], "zookeeper")
    assert zookeeper.version == 0
    kafka = committed_request("g", [T0, T1, T0], "kafka")
    assert kafka.version == 1
    assert kafka.topics is not None
    assert kafka.topics == zookeeper.topics
    assert [(topic.topic, topic.partitions) for topic in kafka.topics] == [("t", [0, 1])]


@pytest.mark.parametrize(
    ("served", "preferred", "version"),
    [
        ((0, 0), 0, 0),
        ((0, 3), 0, 0),
        ((0, 3), 2, 2),
        ((0, 17), 2, 2),
        ((4, 18), 0, 4),
        ((4, 18), 2, 4),
    ],
)
def test_a_fetch_is_one_that_the_broker_converts(
    served: tuple[int, int], preferred: int, version: int
) -> None:
    """Brokers from 4.0 on convert nothing, and close the connection on a lower one."""
    versions = VersionRanges([ApiVersionRange(1, *served)])
    assert fetch_version(versions, preferred) == version


@pytest.mark.parametrize(("served", "version"), [((0, 1), 1), ((0, 9), 1), ((2, 10), 2)])
def test_a_commit_is_the_first_for_the_offsets_topic(served: tuple[int, int], version: int) -> None:
    """Of those that the broker serves."""
    assert commit_version(VersionRanges([ApiVersionRange(8, *served)])) == version
