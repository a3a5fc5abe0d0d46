"""CreatePartitions (key 37): the controller adds partitions to topics. Clients alone use it: no
broker of ours has it. From 1.0 on. Error codes, one for each topic: 3, 7, 37, 39, 41. Source:
org.apache.kafka.common.requests 2.8.2."""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Boolean,
    Int16,
    Int32,
    NullableString,
    Request,
    Response,
    String,
)


@dataclass(slots=True)
class AddedPartition:
    replicas: list[Int32]


@dataclass(slots=True)
class GrownTopic:
    topic: String
    total: Int32
    assignment: list[AddedPartition] | None
    """Of the new partitions; None: the controller chooses."""


@dataclass(slots=True)
class GrownTopicResult:
    topic: String
    error_code: Int16
    message: NullableString


@dataclass(slots=True)
class CreatePartitionsResponse(Response):
    throttle_ms: Int32
    topics: list[GrownTopicResult]


@dataclass(slots=True)
class CreatePartitionsRequest(Request):
    topics: list[GrownTopic]
    timeout_ms: Int32
    validate_only: Boolean
    """Only check the request; add nothing."""


API = Api(
    37,
    "CreatePartitions",
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    (ApiVersion(0, CreatePartitionsRequest, CreatePartitionsResponse, since=None),),
)
