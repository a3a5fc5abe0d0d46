"""SyncGroup (key 14): the leader of a group sends the assignments, and every member gets its own.

Only the leader's request has assignments. A member without one gets zero bytes, which is not an
empty Assignment. Error codes: 15, 16, 22, 25, 27, -1. Source:
kafka.coordinator.GroupCoordinator 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    NotNullBytes,
    NullableString,
    Request,
    Response,
    Since,
    String,
)

INSTANCE_VERSION: Final = 3


@dataclass(slots=True)
class SyncGroupAssignment:
    member_id: String
    assignment: NotNullBytes
    """For protocol type `consumer` an Assignment (kafka08.protocol.consumer_protocol)."""


@dataclass(slots=True)
class SyncGroupResponse(Response):
    error_code: Int16
    assignment: NotNullBytes
    throttle_ms: Annotated[Int32, Since(1, before="error_code")] = 0


@dataclass(slots=True)
class SyncGroupRequest(Request):
    group: String
    generation: Int32
    member_id: String
    assignments: list[SyncGroupAssignment]
    instance_id: Annotated[NullableString, Since(3, before="assignments")] = None
    """The name of a static member."""


API = Api(
    14,
    "SyncGroup",
    SyncGroupRequest,
    SyncGroupResponse,
    (
        ApiVersion(0, SyncGroupRequest, SyncGroupResponse, since=Level.V0_9_0),
        ApiVersion(1, SyncGroupRequest, SyncGroupResponse, since=Level.V0_11_0),
        ApiVersion(2, SyncGroupRequest, SyncGroupResponse, since=None),
        ApiVersion(INSTANCE_VERSION, SyncGroupRequest, SyncGroupResponse, since=None),
    ),
)
