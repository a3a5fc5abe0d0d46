"""OffsetCommit (key 8): store a group's offsets, version 0 in ZooKeeper, the others in Kafka.

Version 0 drops the metadata; version 1 of 0.8.2.2 ignores generation and member. Error codes: 3
(v0), 12, 15, 16, 7, -1. Source: kafka.api.OffsetCommitRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    Int64,
    Name,
    NullableString,
    Request,
    Response,
    Since,
    String,
    WireForm,
)
from kafka08.structs import NO_LEADER_EPOCH

NO_GENERATION = -1
NO_MEMBER = ""
INSTANCE_VERSION: Final = 7


@dataclass(slots=True)
class OffsetCommitPartition:
    partition: Int32
    offset: Int64
    metadata: NullableString
    timestamp_ms: Annotated[Int64, Since(1, before="metadata", until=2)] = -1
    """Commit time; -1: the broker's present time."""
    leader_epoch: Annotated[Int32, Since(6, before="metadata")] = NO_LEADER_EPOCH
    """That of the last message before the offset; -1: not known."""


@dataclass(slots=True)
class OffsetCommitTopic:
    topic: Name
    partitions: list[OffsetCommitPartition]


@dataclass(slots=True)
class OffsetCommitPartitionResponse:
    partition: Int32
    error_code: Int16


@dataclass(slots=True)
class OffsetCommitTopicResponse:
    topic: Name
    partitions: list[OffsetCommitPartitionResponse]


@dataclass(slots=True)
class OffsetCommitResponse(Response):
    topics: list[OffsetCommitTopicResponse]
    throttle_ms: Annotated[Int32, Since(3, before="topics")] = 0


@dataclass(slots=True)
class OffsetCommitRequest(Request):
    group: String
    topics: list[OffsetCommitTopic]
    generation: Annotated[Int32, Since(2, before="topics")] = NO_GENERATION
    """-1: not in a group."""
    member: Annotated[String, Since(2, before="topics")] = NO_MEMBER
    retention_ms: Annotated[Int64, Since(2, before="topics", until=5)] = -1
    """How long to keep the offsets; -1: offsets.retention.minutes."""
    instance_id: Annotated[NullableString, Since(7, before="topics")] = None
    """The name of a static member."""


class OffsetCommitRequestV0(WireForm, of=OffsetCommitRequest):
    group: Name
    topics: list[OffsetCommitTopic]


class OffsetCommitRequestV1(WireForm, of=OffsetCommitRequest):
    """0.8.2: to the offsets topic instead of ZooKeeper, with a commit time and the group member."""

    group: Name
    generation: Int32
    member: Name
    topics: list[OffsetCommitTopic]


API = Api(
    8,
    "OffsetCommit",
    OffsetCommitRequest,
    OffsetCommitResponse,
    (
        ApiVersion(0, OffsetCommitRequestV0, OffsetCommitResponse),
        ApiVersion(1, OffsetCommitRequestV1, OffsetCommitResponse),
        ApiVersion(2, OffsetCommitRequest, OffsetCommitResponse, since=Level.V0_9_0),
        ApiVersion(3, OffsetCommitRequest, OffsetCommitResponse, since=Level.V0_11_0),
        ApiVersion(4, OffsetCommitRequest, OffsetCommitResponse, since=None),
        ApiVersion(5, OffsetCommitRequest, OffsetCommitResponse, since=None),
        ApiVersion(6, OffsetCommitRequest, OffsetCommitResponse, since=None),
        ApiVersion(INSTANCE_VERSION, OffsetCommitRequest, OffsetCommitResponse, since=None),
    ),
)
