"""Offsets (key 2; ListOffsets since 0.9): the offsets of a log at or before a time.

`time_ms` is LATEST_OFFSET, EARLIEST_OFFSET (kafka08.structs) or milliseconds. Version 0 returns the
start offsets of segments, descending, at most `max_offsets`; an empty list without an error if none
is old enough. Version 1 returns one message, version 4 also the epoch of its leader.
Error codes: 3, 6, -1. Source: kafka.api.OffsetRequest 0.8.2.2.
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
    Request,
    Response,
    String,
    WireForm,
    ZeroOrOne,
)
from kafka08.structs import NO_LEADER_EPOCH, NO_OFFSET

ISOLATION_VERSION: Final = 2
"""From this version on the log's end may be that for a reader of committed messages."""

EPOCH_VERSION: Final = 4


@dataclass(slots=True)
class OffsetsPartition:
    partition: Int32
    time_ms: Int64
    max_offsets: Int32
    current_epoch: Int32 = NO_LEADER_EPOCH
    """Version 4: of the leader, as the client knows it; NO_LEADER_EPOCH: not compared."""


@dataclass(slots=True)
class OffsetsTopic:
    topic: Name
    partitions: list[OffsetsPartition]


@dataclass(slots=True)
class OffsetsPartitionResponse:
    partition: Int32
    error_code: Int16
    offsets: list[Int64]
    """Only version 0 has them; later ones have `timestamp_ms` and `offset`."""
    timestamp_ms: Int64 = -1
    offset: Int64 = NO_OFFSET
    """Version 1: the first message at or after the time, and its timestamp; -1 without one."""
    leader_epoch: Int32 = NO_LEADER_EPOCH
    """Version 4: of the leader that appended the message before the offset, if it is known."""

    @property
    def found(self) -> list[int]:
        """The offsets of either version, in descending order."""
        return self.offsets or ([] if self.offset == NO_OFFSET else [self.offset])


@dataclass(slots=True)
class OffsetsTopicResponse:
    topic: Name
    partitions: list[OffsetsPartitionResponse]


@dataclass(slots=True)
class OffsetsResponse(Response):
    topics: list[OffsetsTopicResponse]
    throttle_ms: Int32 = 0


@dataclass(slots=True)
class OffsetsRequest(Request):
    replica_id: Int32
    topics: list[OffsetsTopic]
    isolation_level: ZeroOrOne = 0
    """Version 2: as in Fetch (kafka08.protocol.fetch)."""


class OffsetsPartitionV1(WireForm, of=OffsetsPartition):
    partition: Int32
    time_ms: Int64

    @staticmethod
    def make(partition: int, time_ms: int) -> OffsetsPartition:
        return OffsetsPartition(partition, time_ms, max_offsets=1)


class OffsetsTopicV1(WireForm, of=OffsetsTopic):
    topic: String
    partitions: list[OffsetsPartitionV1]


class OffsetsRequestV1(WireForm, of=OffsetsRequest):
    """0.10.1: requests exactly one offset."""

    replica_id: Int32
    topics: list[OffsetsTopicV1]


class OffsetsPartitionResponseV1(WireForm, of=OffsetsPartitionResponse):
    partition: Int32
    error_code: Int16
    timestamp_ms: Int64
    offset: Int64

    @staticmethod
    def make(
        partition: int, error_code: int, timestamp_ms: int, offset: int
    ) -> OffsetsPartitionResponse:
        return OffsetsPartitionResponse(partition, error_code, [], timestamp_ms, offset)


class OffsetsTopicResponseV1(WireForm, of=OffsetsTopicResponse):
    topic: String
    partitions: list[OffsetsPartitionResponseV1]


class OffsetsResponseV1(WireForm, of=OffsetsResponse):
    """0.10.1: returns an offset by message timestamp, and that timestamp."""

    topics: list[OffsetsTopicResponseV1]


class OffsetsRequestV2(WireForm, of=OffsetsRequest):
    """0.11.0: adds the isolation level."""

    replica_id: Int32
    isolation_level: ZeroOrOne
    topics: list[OffsetsTopicV1]


class OffsetsResponseV2(WireForm, of=OffsetsResponse):
    """0.11.0: adds the throttle time at the start."""

    throttle_ms: Int32
    topics: list[OffsetsTopicResponseV1]


class OffsetsPartitionV4(WireForm, of=OffsetsPartition):
    partition: Int32
    current_epoch: Int32
    time_ms: Int64

    @staticmethod
    def make(partition: int, current_epoch: int, time_ms: int) -> OffsetsPartition:
        return OffsetsPartition(partition, time_ms, 1, current_epoch)


class OffsetsTopicV4(WireForm, of=OffsetsTopic):
    topic: String
    partitions: list[OffsetsPartitionV4]


class OffsetsRequestV4(WireForm, of=OffsetsRequest):
    """2.1: adds the leader epoch that the client knows."""

    replica_id: Int32
    isolation_level: ZeroOrOne
    topics: list[OffsetsTopicV4]


class OffsetsPartitionResponseV4(WireForm, of=OffsetsPartitionResponse):
    partition: Int32
    error_code: Int16
    timestamp_ms: Int64
    offset: Int64
    leader_epoch: Int32

    @staticmethod
    def make(
        partition: int, error_code: int, timestamp_ms: int, offset: int, leader_epoch: int
    ) -> OffsetsPartitionResponse:
        return OffsetsPartitionResponse(
            partition, error_code, [], timestamp_ms, offset, leader_epoch
        )


class OffsetsTopicResponseV4(WireForm, of=OffsetsTopicResponse):
    topic: String
    partitions: list[OffsetsPartitionResponseV4]


class OffsetsResponseV4(WireForm, of=OffsetsResponse):
    """2.1: adds the leader epoch of the offset."""

    throttle_ms: Int32
    topics: list[OffsetsTopicResponseV4]


API = Api(
    2,
    "Offsets",
    OffsetsRequest,
    OffsetsResponse,
    (
        ApiVersion(0, OffsetsRequest, OffsetsResponse),
        ApiVersion(1, OffsetsRequestV1, OffsetsResponseV1, since=Level.V0_10_2),
        ApiVersion(ISOLATION_VERSION, OffsetsRequestV2, OffsetsResponseV2, since=Level.V0_11_0),
        ApiVersion(3, OffsetsRequestV2, OffsetsResponseV2, since=None),
        ApiVersion(EPOCH_VERSION, OffsetsRequestV4, OffsetsResponseV4, since=None),
    ),
)
