"""DeleteGroups (key 42): a coordinator deletes empty groups and their offsets. Clients alone use
it: no broker of ours has it. From 1.1 on. Error codes, one for each group: 14, 15, 16, 68, 69.
Source: org.apache.kafka.common.requests 2.8.2."""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Int32, Request, Response, String


@dataclass(slots=True)
class DeletedGroup:
    group: String
    error_code: Int16


@dataclass(slots=True)
class DeleteGroupsResponse(Response):
    throttle_ms: Int32
    groups: list[DeletedGroup]


@dataclass(slots=True)
class DeleteGroupsRequest(Request):
    groups: list[String]


API = Api(
    42,
    "DeleteGroups",
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    (ApiVersion(0, DeleteGroupsRequest, DeleteGroupsResponse, since=None),),
)
