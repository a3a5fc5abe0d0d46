"""Produce (key 0): append message sets to partitions.

Answered when `required_acks` is met: 1 after the leader's own append, -1 when every in-sync
replica has the messages, n > 1 when n of them have. With 0 there is no answer at all; on an error
the broker closes the connection. Error codes: 2, 3, 6, 7, 10, 17, 18, 19, 20, -1. Source:
kafka.api.ProducerRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    Int64,
    MessageSet,
    Name,
    Request,
    Response,
)


@dataclass(slots=True)
class ProducePartition:
    partition: Int32
    message_set: MessageSet


@dataclass(slots=True)
class ProduceTopic:
    topic: Name
    partitions: list[ProducePartition]


@dataclass(slots=True)
class ProducePartitionResponse:
    partition: Int32
    error_code: Int16
    base_offset: Int64
    """Offset given to the first message of the set; -1 on error and for an empty set."""


@dataclass(slots=True)
class ProduceTopicResponse:
    topic: Name
    partitions: list[ProducePartitionResponse]


@dataclass(slots=True)
class ProduceResponse(Response):
    topics: list[ProduceTopicResponse]


@dataclass(slots=True)
class ProduceRequest(Request):
    required_acks: Int16
    timeout_ms: Int32
    """How long to wait for `required_acks` other than 0 and 1; then error 7, though appended."""
    topics: list[ProduceTopic]


API = Api(
    0,
    "Produce",
    ProduceRequest,
    ProduceResponse,
    (ApiVersion(0, ProduceRequest, ProduceResponse),),
)
