"""OffsetFetch (key 9): read a group's offsets, version 0 from ZooKeeper, version 1 from Kafka.

Without a commit: offset -1 and metadata "", with error 3 in version 0 and no error in version 1.
Error codes: 3, 14 (loading), 16. Source: kafka.api.OffsetFetchRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Boolean,
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

EPOCH_VERSION: Final = 5
"""From this version on a response has leader epochs."""
STABLE_VERSION: Final = 7
"""From this version on an offset that an open transaction replaces can be refused: error 88."""


@dataclass(slots=True)
class OffsetFetchTopic:
    topic: Name
    partitions: list[Int32]


@dataclass(slots=True)
class OffsetFetchPartitionResponse:
    partition: Int32
    offset: Int64
    metadata: NullableString
    error_code: Int16
    leader_epoch: Annotated[Int32, Since(5, before="metadata")] = NO_LEADER_EPOCH
    """Of the last message before the offset."""


@dataclass(slots=True)
class OffsetFetchTopicResponse:
    topic: Name
    partitions: list[OffsetFetchPartitionResponse]


@dataclass(slots=True)
class OffsetFetchResponse(Response):
    topics: list[OffsetFetchTopicResponse]
    error_code: Annotated[Int16, Since(2)] = 0
    """An error of the whole group; the response then names no partitions."""
    throttle_ms: Annotated[Int32, Since(3, before="topics")] = 0


@dataclass(slots=True)
class OffsetFetchRequest(Request):
    group: String
    topics: list[OffsetFetchTopic] | None
    """None: all partitions for which the group has an offset."""
    is_stable: Annotated[Boolean, Since(7)] = False
    """Error 88 for a partition of which an open transaction has an offset."""


def probe() -> OffsetFetchRequest:
    """A request to which brokers of every release respond at once, and do nothing."""
    return OffsetFetchRequest("", [], version=1)


class OffsetFetchRequestV0(WireForm, of=OffsetFetchRequest):
    group: Name
    topics: list[OffsetFetchTopic]


API = Api(
    9,
    "OffsetFetch",
    OffsetFetchRequest,
    OffsetFetchResponse,
    (
        ApiVersion(0, OffsetFetchRequestV0, OffsetFetchResponse),
        # The same layout, but from the offsets topic.
        ApiVersion(1, OffsetFetchRequestV0, OffsetFetchResponse),
        ApiVersion(2, OffsetFetchRequest, OffsetFetchResponse, since=Level.V0_10_2),
        ApiVersion(3, OffsetFetchRequest, OffsetFetchResponse, since=Level.V0_11_0),
        ApiVersion(EPOCH_VERSION, OffsetFetchRequest, OffsetFetchResponse, since=None),
        ApiVersion(
            STABLE_VERSION, OffsetFetchRequest, OffsetFetchResponse, since=None, is_flexible=True
        ),
    ),
)
