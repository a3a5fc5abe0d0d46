"""OffsetForLeaderEpoch (key 23): where a leader epoch ends in the leader's log.

A follower truncates its log to that offset before it fetches, and a consumer learns whether what it
has read is still there. -1 without an error for an epoch that the leader does not know. In version
3 it is the end of the latest epoch up to the one that was asked for, and the response names it.
Error codes: 3, 6; 74 and 75 in version 3. Source: kafka.server.epoch.LeaderEpochFileCache
0.11.0.2 and 3.9.1.
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
    Request,
    Response,
    Since,
    String,
)
from kafka08.structs import NO_LEADER_EPOCH, ORDINARY_CONSUMER

CONSUMER_VERSION: Final = 3
"""The first version for which a consumer needs no right on the whole cluster."""


@dataclass(slots=True)
class OffsetForLeaderEpochPartition:
    partition: Int32
    leader_epoch: Int32
    """The follower's latest; -1 if its log has none."""
    current_epoch: Annotated[Int32, Since(2, before="leader_epoch")] = NO_LEADER_EPOCH
    """The leader's epoch as its client knows it, for the broker to check; -1: none."""


@dataclass(slots=True)
class OffsetForLeaderEpochTopic:
    topic: String
    partitions: list[OffsetForLeaderEpochPartition]


@dataclass(slots=True)
class EpochEndOffset:
    error_code: Int16
    partition: Int32
    end_offset: Int64
    """The first offset of the next epoch; of the latest epoch the LEO; -1 if unknown."""
    leader_epoch: Annotated[Int32, Since(1, before="end_offset")] = NO_LEADER_EPOCH
    """The epoch that ends there."""


@dataclass(slots=True)
class OffsetForLeaderEpochTopicResponse:
    topic: String
    partitions: list[EpochEndOffset]


@dataclass(slots=True)
class OffsetForLeaderEpochResponse(Response):
    topics: list[OffsetForLeaderEpochTopicResponse]
    throttle_ms: Annotated[Int32, Since(2, before="topics")] = 0


@dataclass(slots=True)
class OffsetForLeaderEpochRequest(Request):
    topics: list[OffsetForLeaderEpochTopic]
    replica_id: Annotated[Int32, Since(3, before="topics")] = ORDINARY_CONSUMER


API = Api(
    23,
    "OffsetForLeaderEpoch",
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    (
        ApiVersion(
            0, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, since=Level.V0_11_0
        ),
        ApiVersion(
            CONSUMER_VERSION,
            OffsetForLeaderEpochRequest,
            OffsetForLeaderEpochResponse,
            since=None,
        ),
    ),
)
