"""Heartbeat (key 12): keeps a member in its group, and tells it that the group rebalances (27).

Error codes: 15, 16, 22, 25, 27. Source: kafka.coordinator.GroupCoordinator 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    NullableString,
    Request,
    Response,
    String,
    WireForm,
)

INSTANCE_VERSION: Final = 3


@dataclass(slots=True)
class HeartbeatResponse(Response):
    error_code: Int16
    throttle_ms: Int32 = 0


@dataclass(slots=True)
class HeartbeatRequest(Request):
    """The layout of 0.8.2's stub (kafka08.protocol.stubs)."""

    group: String
    generation: Int32
    member_id: String
    instance_id: NullableString = None
    """The name of a static member."""


class HeartbeatResponseV1(WireForm, of=HeartbeatResponse):
    """0.11.0: adds the throttle time at the start."""

    throttle_ms: Int32
    error_code: Int16


class HeartbeatRequestV3(WireForm, of=HeartbeatRequest):
    """2.3: adds the name of a static member."""

    group: String
    generation: Int32
    member_id: String
    instance_id: NullableString


API = Api(
    12,
    "Heartbeat",
    HeartbeatRequest,
    HeartbeatResponse,
    (
        ApiVersion(0, HeartbeatRequest, HeartbeatResponse, since=Level.V0_9_0),
        ApiVersion(1, HeartbeatRequest, HeartbeatResponseV1, since=Level.V0_11_0),
        ApiVersion(2, HeartbeatRequest, HeartbeatResponseV1, since=None),
        ApiVersion(INSTANCE_VERSION, HeartbeatRequestV3, HeartbeatResponseV1, since=None),
    ),
)
