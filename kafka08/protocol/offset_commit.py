"""OffsetCommit (key 8): store a group's offsets, version 0 in ZooKeeper, version 1 in Kafka.

Version 0 drops the metadata; version 1 ignores generation and member. Any other version closes
the connection. Error codes: 3 (v0), 12, 15, 16, 7, -1. Source: kafka.api.OffsetCommitRequest
0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.types import (
    Int16,
    Int32,
    Int64,
    NullableString,
    Request,
    Response,
    String,
)


@dataclass(slots=True)
class OffsetCommitPartitionV0:
    partition: Int32
    offset: Int64
    metadata: NullableString


@dataclass(slots=True)
class OffsetCommitTopicV0:
    topic: String
    partitions: list[OffsetCommitPartitionV0]


@dataclass(slots=True)
class OffsetCommitPartition:
    partition: Int32
    offset: Int64
    timestamp_ms: Int64
    """Commit time; -1 means the broker's now."""
    metadata: NullableString


@dataclass(slots=True)
class OffsetCommitTopic:
    topic: String
    partitions: list[OffsetCommitPartition]


@dataclass(slots=True)
class OffsetCommitPartitionResponse:
    partition: Int32
    error_code: Int16


@dataclass(slots=True)
class OffsetCommitTopicResponse:
    topic: String
    partitions: list[OffsetCommitPartitionResponse]


@dataclass(slots=True)
class OffsetCommitResponse(Response):
    topics: list[OffsetCommitTopicResponse]


@dataclass(slots=True)
class OffsetCommitRequestV0(Request):
    KEY = 8
    VERSION = 0
    RESPONSE = OffsetCommitResponse

    group: String
    topics: list[OffsetCommitTopicV0]


@dataclass(slots=True)
class OffsetCommitRequest(Request):
    KEY = 8
    VERSION = 1
    RESPONSE = OffsetCommitResponse

    group: String
    generation: Int32
    """-1: not in a group."""
    member: NullableString
    topics: list[OffsetCommitTopic]
