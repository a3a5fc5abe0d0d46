"""Heartbeat (key 12): keeps a member in its group, and tells it that the group rebalances (27).

Error codes: 15, 16, 22, 25, 27. Source: kafka.coordinator.GroupCoordinator 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    NullableString,
    Request,
    Response,
    Since,
    String,
)

INSTANCE_VERSION: Final = 3


@dataclass(slots=True)
class HeartbeatResponse(Response):
    error_code: Int16
    throttle_ms: Annotated[Int32, Since(1, before="error_code")] = 0


@dataclass(slots=True)
class HeartbeatRequest(Request):
    """The layout of 0.8.2's stub (kafka08.protocol.stubs)."""

    group: String
    generation: Int32
    member_id: String
    instance_id: Annotated[NullableString, Since(3)] = None
    """The name of a static member."""


API = Api(
    12,
    "Heartbeat",
    HeartbeatRequest,
    HeartbeatResponse,
    (
        ApiVersion(0, HeartbeatRequest, HeartbeatResponse, since=Level.V0_9_0),
        ApiVersion(1, HeartbeatRequest, HeartbeatResponse, since=Level.V0_11_0),
        ApiVersion(2, HeartbeatRequest, HeartbeatResponse, since=None),
        ApiVersion(INSTANCE_VERSION, HeartbeatRequest, HeartbeatResponse, since=None),
    ),
)
