"""JoinGroup (key 11): become a member of a group, or begin its next generation.

The broker responds when all members have joined, or after the rebalance timeout. The leader's
response lists the members with the metadata that each sent for the chosen protocol; the other
members get none. Error codes: 14, 15, 16, 23, 24, 25, 26. Source:
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
    WireForm,
)

MEMBER_ID_VERSION: Final = 4
"""From this version on (2.2) a new member gets its id first, with error 79, and joins with it."""

INSTANCE_VERSION: Final = 5
"""From this version on (2.3) members can be static: the request has their group.instance.id."""


@dataclass(slots=True)
class JoinGroupProtocol:
    """An assignor that a member supports, with the member's metadata for it."""

    name: String
    metadata: NotNullBytes
    """For protocol type `consumer` a Subscription (kafka08.protocol.consumer_protocol)."""


@dataclass(slots=True)
class JoinGroupMember:
    member_id: String
    metadata: NotNullBytes
    instance_id: Annotated[NullableString, Since(5, before="metadata")] = None


@dataclass(slots=True)
class JoinGroupResponse(Response):
    error_code: Int16
    generation: Int32
    protocol: String
    leader_id: String
    member_id: String
    members: list[JoinGroupMember]
    throttle_ms: Annotated[Int32, Since(2, before="error_code")] = 0


@dataclass(slots=True)
class JoinGroupRequest(Request):
    """Version 1, of 0.10.1: has a rebalance timeout beside the session timeout."""

    ITEMS_MAX = 1000
    """Protocols of a member, which the coordinator keeps; clients have one to three."""

    group: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32
    member_id: String
    """Empty if the client is not a member yet."""
    protocol_type: String
    protocols: list[JoinGroupProtocol]
    """In order of preference."""
    instance_id: Annotated[NullableString, Since(5, before="protocol_type")] = None
    """The name of a static member."""


class JoinGroupRequestV0(WireForm, of=JoinGroupRequest):
    """0.9: the session timeout is the rebalance timeout, too."""

    group: String
    session_timeout_ms: Int32
    member_id: String
    protocol_type: String
    protocols: list[JoinGroupProtocol]

    @staticmethod
    def make(
        group: str,
        session_timeout_ms: int,
        member_id: str,
        protocol_type: str,
        protocols: list[JoinGroupProtocol],
    ) -> JoinGroupRequest:
        return JoinGroupRequest(
            group, session_timeout_ms, session_timeout_ms, member_id, protocol_type, protocols
        )


API = Api(
    11,
    "JoinGroup",
    JoinGroupRequest,
    JoinGroupResponse,
    (
        ApiVersion(0, JoinGroupRequestV0, JoinGroupResponse, since=Level.V0_9_0),
        ApiVersion(1, JoinGroupRequest, JoinGroupResponse, since=Level.V0_10_2),
        ApiVersion(2, JoinGroupRequest, JoinGroupResponse, since=Level.V0_11_0),
        ApiVersion(3, JoinGroupRequest, JoinGroupResponse, since=None),
        ApiVersion(MEMBER_ID_VERSION, JoinGroupRequest, JoinGroupResponse, since=None),
        ApiVersion(INSTANCE_VERSION, JoinGroupRequest, JoinGroupResponse, since=None),
    ),
)
