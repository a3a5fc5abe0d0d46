"""Offsets (key 2; ListOffsets since 0.9): the offsets of a log at or before a time.

`time_ms` is LATEST_OFFSET, EARLIEST_OFFSET (kafka08.structs) or milliseconds. Version 0 returns the
start offsets of segments, descending, at most `max_offsets`; an empty list without an error if none
is old enough. Version 1 returns one message, version 4 also the epoch of its leader.
Error codes: 3, 6, -1. Source: kafka.api.OffsetRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    Int64,
    Name,
    Request,
    Response,
    Since,
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
    max_offsets: Annotated[Int32, Since(0, until=1)] = 1
    current_epoch: Annotated[Int32, Since(4, before="time_ms")] = NO_LEADER_EPOCH
    """Of the leader, as the client knows it; NO_LEADER_EPOCH: not compared."""


@dataclass(slots=True)
class OffsetsTopic:
    topic: Name
    partitions: list[OffsetsPartition]


@dataclass(slots=True)
class OffsetsPartitionResponse:
    partition: Int32
    error_code: Int16
    offsets: Annotated[list[Int64], Since(0, until=1)] = field(default_factory=list)
    """Later versions have `timestamp_ms` and `offset`."""
    timestamp_ms: Annotated[Int64, Since(1)] = -1
    offset: Annotated[Int64, Since(1)] = NO_OFFSET
    """The first message at or after the time, and its timestamp; -1 without one."""
    leader_epoch: Annotated[Int32, Since(4)] = NO_LEADER_EPOCH
    """Of the leader that appended the message before the offset, if it is known."""

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
    throttle_ms: Annotated[Int32, Since(2, before="topics")] = 0


@dataclass(slots=True)
class OffsetsRequest(Request):
    replica_id: Int32
    topics: list[OffsetsTopic]
    isolation_level: Annotated[ZeroOrOne, Since(2, before="topics")] = 0
    """As in Fetch (kafka08.protocol.fetch)."""


API = Api(
    2,
    "Offsets",
    OffsetsRequest,
    OffsetsResponse,
    (
        ApiVersion(0, OffsetsRequest, OffsetsResponse),
        ApiVersion(1, OffsetsRequest, OffsetsResponse, since=Level.V0_10_2),
        ApiVersion(ISOLATION_VERSION, OffsetsRequest, OffsetsResponse, since=Level.V0_11_0),
        ApiVersion(3, OffsetsRequest, OffsetsResponse, since=None),
        ApiVersion(EPOCH_VERSION, OffsetsRequest, OffsetsResponse, since=None),
    ),
)
