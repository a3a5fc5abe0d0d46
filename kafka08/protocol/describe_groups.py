"""DescribeGroups (key 15): state, protocol and members of groups, from their coordinator.

An unknown group is `Dead` without an error; one of another coordinator is 16 with empty strings.
Error codes: 14, 15, 16. Source: kafka.coordinator.GroupCoordinator 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Int32, NotNullBytes, Request, Response, String, WireForm


@dataclass(slots=True)
class DescribedMember:
    member_id: String
    client_id: String
    client_host: String
    """`/` and the address that the member joined from."""
    metadata: NotNullBytes
    assignment: NotNullBytes


@dataclass(slots=True)
class DescribedGroup:
    error_code: Int16
    group: String
    state: String
    protocol_type: String
    protocol: String
    members: list[DescribedMember]


@dataclass(slots=True)
class DescribeGroupsResponse(Response):
    groups: list[DescribedGroup]
    throttle_ms: Int32 = 0


@dataclass(slots=True)
class DescribeGroupsRequest(Request):
    groups: list[String]


class DescribeGroupsResponseV1(WireForm, of=DescribeGroupsResponse):
    """0.11.0: adds the throttle time at the start."""

    throttle_ms: Int32
    groups: list[DescribedGroup]


API = Api(
    15,
    "DescribeGroups",
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    (
        ApiVersion(0, DescribeGroupsRequest, DescribeGroupsResponse, since=Level.V0_9_0),
        ApiVersion(1, DescribeGroupsRequest, DescribeGroupsResponseV1, since=Level.V0_11_0),
    ),
)
