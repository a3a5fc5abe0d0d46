"""DeleteAcls (key 31): remove the access control entries that match filters.

A broker without an authorizer responds with 54 for each. Source: kafka.server.KafkaApis 0.11.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int8, Int16, Int32, NullableString, Request, Response, String


@dataclass(slots=True)
class AclFilter:
    """None matches every value."""

    resource_type: Int8
    resource_name: NullableString
    principal: NullableString
    host: NullableString
    operation: Int8
    permission_type: Int8


@dataclass(slots=True)
class DeletedAcl:
    error_code: Int16
    message: NullableString
    resource_type: Int8
    resource_name: String
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@dataclass(slots=True)
class AclFilterResult:
    error_code: Int16
    message: NullableString
    acls: list[DeletedAcl]


@dataclass(slots=True)
class DeleteAclsResponse(Response):
    throttle_ms: Int32
    results: list[AclFilterResult]


@dataclass(slots=True)
class DeleteAclsRequest(Request):
    filters: list[AclFilter]


API = Api(
    31,
    "DeleteAcls",
    DeleteAclsRequest,
    DeleteAclsResponse,
    (ApiVersion(0, DeleteAclsRequest, DeleteAclsResponse, since=Level.V0_11_0),),
)
