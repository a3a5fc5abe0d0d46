"""OffsetCommit (key 8): store a group's offsets, version 0 in ZooKeeper, the others in Kafka.

Version 0 drops the metadata; version 1 of 0.8.2.2 ignores generation and member. Error codes: 3
(v0), 12, 15, 16, 7, -1. Source: kafka.api.OffsetCommitRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
    timestamp_ms: Int64 = -1
    """Commit time; -1: the broker's present time."""
    leader_epoch: Int32 = NO_LEADER_EPOCH
    """Version 6: that of the last message before the offset; -1: not known."""


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
    throttle_ms: Int32 = 0


@dataclass(slots=True)
class OffsetCommitRequest(Request):
    """Version 0 has only the group and its offsets."""

    group: Name
    topics: list[OffsetCommitTopic]
    generation: Int32 = NO_GENERATION
    """-1: not in a group."""
    member: Name = NO_MEMBER
    retention_ms: Int64 = -1
    """How long to keep the offsets; -1: offsets.retention.minutes."""
    instance_id: NullableString = None
    """The name of a static member."""


class OffsetCommitPartitionV1(WireForm, of=OffsetCommitPartition):
    partition: Int32
    offset: Int64
    timestamp_ms: Int64
    metadata: NullableString


class OffsetCommitTopicV1(WireForm, of=OffsetCommitTopic):
    topic: Name
    partitions: list[OffsetCommitPartitionV1]


class OffsetCommitRequestV1(WireForm, of=OffsetCommitRequest):
    """0.8.2: to the offsets topic instead of ZooKeeper, with a commit time and the group member."""

    group: Name
    generation: Int32
    member: Name
    topics: list[OffsetCommitTopicV1]


class OffsetCommitRequestV2(WireForm, of=OffsetCommitRequest):
    """0.9: has one retention time instead of a commit time for each offset."""

    group: String
    generation: Int32
    member: String
    retention_ms: Int64
    topics: list[OffsetCommitTopic]


class OffsetCommitResponseV3(WireForm, of=OffsetCommitResponse):
    """0.11.0: adds the throttle time at the start."""

    throttle_ms: Int32
    topics: list[OffsetCommitTopicResponse]


class OffsetCommitRequestV5(WireForm, of=OffsetCommitRequest):
    """2.1: the broker alone decides how long offsets are kept."""

    group: String
    generation: Int32
    member: String
    topics: list[OffsetCommitTopic]


class OffsetCommitPartitionV6(WireForm, of=OffsetCommitPartition):
    partition: Int32
    offset: Int64
    leader_epoch: Int32
    metadata: NullableString


class OffsetCommitTopicV6(WireForm, of=OffsetCommitTopic):
    topic: Name
    partitions: list[OffsetCommitPartitionV6]


class OffsetCommitRequestV6(WireForm, of=OffsetCommitRequest):
    """2.1: adds leader epochs."""

    group: String
    generation: Int32
    member: String
    topics: list[OffsetCommitTopicV6]


class OffsetCommitRequestV7(WireForm, of=OffsetCommitRequest):
    """2.3: adds the name of a static member."""

    group: String
    generation: Int32
    member: String
    instance_id: NullableString
    topics: list[OffsetCommitTopicV6]


API = Api(
    8,
    "OffsetCommit",
    OffsetCommitRequest,
    OffsetCommitResponse,
    (
        ApiVersion(0, OffsetCommitRequest, OffsetCommitResponse),
        ApiVersion(1, OffsetCommitRequestV1, OffsetCommitResponse),
        ApiVersion(2, OffsetCommitRequestV2, OffsetCommitResponse, since=Level.V0_9_0),
        ApiVersion(3, OffsetCommitRequestV2, OffsetCommitResponseV3, since=Level.V0_11_0),
        ApiVersion(4, OffsetCommitRequestV2, OffsetCommitResponseV3, since=None),
        ApiVersion(5, OffsetCommitRequestV5, OffsetCommitResponseV3, since=None),
        ApiVersion(6, OffsetCommitRequestV6, OffsetCommitResponseV3, since=None),
        ApiVersion(INSTANCE_VERSION, OffsetCommitRequestV7, OffsetCommitResponseV3, since=None),
    ),
)
