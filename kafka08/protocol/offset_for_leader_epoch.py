"""OffsetForLeaderEpoch (key 23): where a leader epoch ends in the leader's log.

A follower truncates its log to that offset before it fetches. -1 without an error for an epoch that
the leader does not know. Error codes: 3, 6. Source: kafka.server.epoch.LeaderEpochFileCache
0.11.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Int32, Int64, Request, Response, String


@dataclass(slots=True)
class OffsetForLeaderEpochPartition:
    partition: Int32
    leader_epoch: Int32
    """The follower's latest; -1 if its log has none."""


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


@dataclass(slots=True)
class OffsetForLeaderEpochTopicResponse:
    topic: String
    partitions: list[EpochEndOffset]


@dataclass(slots=True)
class OffsetForLeaderEpochResponse(Response):
    topics: list[OffsetForLeaderEpochTopicResponse]


@dataclass(slots=True)
class OffsetForLeaderEpochRequest(Request):
    topics: list[OffsetForLeaderEpochTopic]


API = Api(
    23,
    "OffsetForLeaderEpoch",
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    (
        ApiVersion(
            0, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, since=Level.V0_11_0
        ),
    ),
)
