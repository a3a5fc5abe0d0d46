"""JoinGroup (key 11) and Heartbeat (key 12) of 0.8.2: stubs that always respond with error -1.

0.9 gave both keys to the group coordinator. Its JoinGroup has another layout with the same version
number, and 0.8.2.2 closes the connection after it. Source: kafka.api.JoinGroupRequest,
kafka.api.HeartbeatRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Int32, Request, Response, String


@dataclass(slots=True)
class JoinGroupStubTopic:
    topic: String
    partitions: list[Int32]


@dataclass(slots=True)
class JoinGroupStubResponse(Response):
    error_code: Int16
    generation: Int32
    consumer_id: String
    partitions: list[JoinGroupStubTopic]


@dataclass(slots=True)
class JoinGroupStubRequest(Request):
    group: String
    session_timeout_ms: Int32
    topics: list[String]
    consumer_id: String
    partition_assignment_strategy: String


@dataclass(slots=True)
class HeartbeatStubResponse(Response):
    error_code: Int16


@dataclass(slots=True)
class HeartbeatStubRequest(Request):
    group: String
    generation: Int32
    consumer_id: String


JOIN_GROUP = Api(
    11,
    "JoinGroup",
    JoinGroupStubRequest,
    JoinGroupStubResponse,
    (ApiVersion(0, JoinGroupStubRequest, JoinGroupStubResponse, until=Level.V0_9_0),),
)
HEARTBEAT = Api(
    12,
    "Heartbeat",
    HeartbeatStubRequest,
    HeartbeatStubResponse,
    (ApiVersion(0, HeartbeatStubRequest, HeartbeatStubResponse, until=Level.V0_9_0),),
)
