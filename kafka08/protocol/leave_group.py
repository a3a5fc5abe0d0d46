"""LeaveGroup (key 13): a member leaves its group, which rebalances at once.

Error codes: 14, 15, 16, 25. Source: kafka.coordinator.GroupCoordinator 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    Request,
    Response,
    Since,
    String,
)


@dataclass(slots=True)
class LeaveGroupResponse(Response):
    error_code: Int16
    throttle_ms: Annotated[Int32, Since(1, before="error_code")] = 0


@dataclass(slots=True)
class LeaveGroupRequest(Request):
    group: String
    member_id: String


API = Api(
    13,
    "LeaveGroup",
    LeaveGroupRequest,
    LeaveGroupResponse,
    (
        ApiVersion(0, LeaveGroupRequest, LeaveGroupResponse, since=Level.V0_9_0),
        ApiVersion(1, LeaveGroupRequest, LeaveGroupResponse, since=Level.V0_11_0),
    ),
)
