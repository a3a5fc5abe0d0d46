"""DescribeGroups (key 15): state, protocol and members of groups, from their coordinator.

An unknown group is `Dead` without an error; one of another coordinator is 16 with empty strings.
Error codes: 14, 15, 16. Source: kafka.coordinator.GroupCoordinator 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    NotNullBytes,
    Request,
    Response,
    Since,
    String,
)


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
    throttle_ms: Annotated[Int32, Since(1, before="groups")] = 0


@dataclass(slots=True)
class DescribeGroupsRequest(Request):
    groups: list[String]


API = Api(
    15,
    "DescribeGroups",
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    (
        ApiVersion(0, DescribeGroupsRequest, DescribeGroupsResponse, since=Level.V0_9_0),
        ApiVersion(1, DescribeGroupsRequest, DescribeGroupsResponse, since=Level.V0_11_0),
    ),
)
