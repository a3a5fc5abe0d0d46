"""JoinGroup (key 11) as 0.8.2 has it: parsed, then always answered -1.

The layout differs from 0.9's of the same key and version, whose bytes close the connection.
Source: kafka.api.JoinGroupRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.types import (
    Int16,
    Int32,
    Request,
    Response,
    String,
)


@dataclass(slots=True)
class JoinGroupTopic:
    topic: String
    partitions: list[Int32]


@dataclass(slots=True)
class JoinGroupResponse(Response):
    error_code: Int16
    generation: Int32
    consumer_id: String
    partitions: list[JoinGroupTopic]


@dataclass(slots=True)
class JoinGroupRequest(Request):
    KEY = 11
    VERSION = 0
    RESPONSE = JoinGroupResponse

    group: String
    session_timeout_ms: Int32
    topics: list[String]
    consumer_id: String
    partition_assignment_strategy: String
