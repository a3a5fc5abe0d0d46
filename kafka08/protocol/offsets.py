"""Offsets (key 2): log offsets before a time, at the grain of whole segments.

`time_ms` is LATEST_OFFSET, EARLIEST_OFFSET (kafka08.structs) or milliseconds; the answer's offsets
descend and are at most `max_offsets`. Nothing old enough gives an empty list without an error.
Error codes: 3, 6, -1. Source: kafka.api.OffsetRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    Int64,
    Name,
    Request,
    Response,
)


@dataclass(slots=True)
class OffsetsPartition:
    partition: Int32
    time_ms: Int64
    max_offsets: Int32


@dataclass(slots=True)
class OffsetsTopic:
    topic: Name
    partitions: list[OffsetsPartition]


@dataclass(slots=True)
class OffsetsPartitionResponse:
    partition: Int32
    error_code: Int16
    offsets: list[Int64]


@dataclass(slots=True)
class OffsetsTopicResponse:
    topic: Name
    partitions: list[OffsetsPartitionResponse]


@dataclass(slots=True)
class OffsetsResponse(Response):
    topics: list[OffsetsTopicResponse]


@dataclass(slots=True)
class OffsetsRequest(Request):
    replica_id: Int32
    topics: list[OffsetsTopic]


API = Api(
    2,
    "Offsets",
    OffsetsRequest,
    OffsetsResponse,
    (ApiVersion(0, OffsetsRequest, OffsetsResponse),),
)
