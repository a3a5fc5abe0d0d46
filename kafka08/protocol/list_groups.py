"""ListGroups (key 16): the groups that this broker coordinates, in whatever state.

Error codes: 14 with a partial list while a partition of the offsets topic is loaded, 15. Source:
kafka.coordinator.GroupCoordinator 0.9.0.1 and 0.10.2.2.
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
class ListedGroup:
    group: String
    protocol_type: String
    """Empty for a group that only commits offsets."""


@dataclass(slots=True)
class ListGroupsResponse(Response):
    error_code: Int16
    groups: list[ListedGroup]
    throttle_ms: Annotated[Int32, Since(1, before="error_code")] = 0


@dataclass(slots=True)
class ListGroupsRequest(Request):
    """An empty body."""


API = Api(
    16,
    "ListGroups",
    ListGroupsRequest,
    ListGroupsResponse,
    (
        ApiVersion(0, ListGroupsRequest, ListGroupsResponse, since=Level.V0_9_0),
        ApiVersion(1, ListGroupsRequest, ListGroupsResponse, since=Level.V0_11_0),
    ),
)
