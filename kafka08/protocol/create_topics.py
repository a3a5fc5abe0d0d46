"""CreateTopics (key 19): the controller creates topics, and waits for their leaders.

Error codes, one for each topic: 7, 17, 36, 37, 38, 39, 40, 41, 42, 44, -1. Source:
kafka.server.AdminManager 0.10.2.2.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Annotated

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Boolean,
    Int16,
    Int32,
    NullableString,
    Request,
    Response,
    Since,
    String,
    WireForm,
)

NO_COUNT = -1


@dataclass(slots=True)
class ReplicaAssignment:
    partition: Int32
    replicas: list[Int32]
    """The preferred leader first."""


@dataclass(slots=True)
class TopicConfigEntry:
    key: String
    value: NullableString
    """Null, which 0.11 can read, is refused for its topic (-1)."""


@dataclass(slots=True)
class NewTopic:
    topic: String
    partitions: Int32
    """NO_COUNT together with an assignment."""
    replication_factor: Int16
    """NO_COUNT together with an assignment."""
    assignment: list[ReplicaAssignment]
    configs: list[TopicConfigEntry]


@dataclass(slots=True)
class CreateTopicResult:
    topic: String
    error_code: Int16
    message: Annotated[NullableString, Since(1)] = None
    """English text for a person; null on success, for 7 and for 41."""


@dataclass(slots=True)
class CreateTopicsResponse(Response):
    topics: list[CreateTopicResult]
    throttle_ms: Annotated[Int32, Since(2, before="topics")] = 0


@dataclass(slots=True)
class CreateTopicsRequest(Request):
    topics: list[NewTopic]
    timeout_ms: Int32
    """How long to wait for the leaders; 0 or less: not at all."""
    validate_only: Annotated[Boolean, Since(1)] = False
    """Only check the request; create nothing."""


class TopicConfigEntryOf0_10(WireForm, of=TopicConfigEntry):
    key: String
    value: String


class NewTopicOf0_10(WireForm, of=NewTopic):
    topic: String
    partitions: Int32
    replication_factor: Int16
    assignment: list[ReplicaAssignment]
    configs: list[TopicConfigEntryOf0_10]


class CreateTopicsRequestV0Of0_10(WireForm, of=CreateTopicsRequest):
    """0.10.1. Cannot encode validate_only: without the field the broker would create the topics."""

    topics: list[NewTopicOf0_10]
    timeout_ms: Int32

    @staticmethod
    def show(message: CreateTopicsRequest) -> CreateTopicsRequest:
        if message.validate_only:
            raise struct.error("validate_only needs version 1")
        return message


class CreateTopicsRequestV1Of0_10(WireForm, of=CreateTopicsRequest):
    """0.10.2: adds validate_only."""

    topics: list[NewTopicOf0_10]
    timeout_ms: Int32
    validate_only: Boolean


API = Api(
    19,
    "CreateTopics",
    CreateTopicsRequest,
    CreateTopicsResponse,
    (
        ApiVersion(
            0,
            CreateTopicsRequestV0Of0_10,
            CreateTopicsResponse,
            since=Level.V0_10_2,
            until=Level.V0_11_0,
        ),
        ApiVersion(
            1,
            CreateTopicsRequestV1Of0_10,
            CreateTopicsResponse,
            since=Level.V0_10_2,
            until=Level.V0_11_0,
        ),
        ApiVersion(0, CreateTopicsRequest, CreateTopicsResponse, since=Level.V0_11_0),
        ApiVersion(1, CreateTopicsRequest, CreateTopicsResponse, since=Level.V0_11_0),
        ApiVersion(2, CreateTopicsRequest, CreateTopicsResponse, since=Level.V0_11_0),
    ),
)
