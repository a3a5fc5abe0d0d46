"""Fetch (key 1): read message sets, by consumers and by followers alike.

Answered at once if `max_wait_ms` <= 0, if any partition is in error, or if `min_bytes` can be
read; otherwise parked until they can, or until the wait is over. `max_bytes` cuts each
partition's set exactly there, so the last message is usually partial. Error codes: 1, 3, 6, 9,
-1. Source: kafka.api.FetchRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.types import (
    Int16,
    Int32,
    Int64,
    MessageSet,
    Request,
    Response,
    String,
)


@dataclass(slots=True)
class FetchPartition:
    partition: Int32
    offset: Int64
    max_bytes: Int32


@dataclass(slots=True)
class FetchTopic:
    topic: String
    partitions: list[FetchPartition]


@dataclass(slots=True)
class FetchPartitionResponse:
    partition: Int32
    error_code: Int16
    high_watermark: Int64
    """First offset a consumer may not see yet; -1 on error."""
    message_set: MessageSet


@dataclass(slots=True)
class FetchTopicResponse:
    topic: String
    partitions: list[FetchPartitionResponse]


@dataclass(slots=True)
class FetchResponse(Response):
    topics: list[FetchTopicResponse]


@dataclass(slots=True)
class FetchRequest(Request):
    KEY = 1
    VERSION = 0
    RESPONSE = FetchResponse

    replica_id: Int32
    """Broker id of a follower, or ORDINARY_CONSUMER or DEBUGGING_CONSUMER (kafka08.structs)."""
    max_wait_ms: Int32
    min_bytes: Int32
    topics: list[FetchTopic]
