"""CreateAcls (key 30): add access control entries.

A broker without an authorizer responds with 54 for each. Source: kafka.server.KafkaApis 0.11.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int8, Int16, Int32, NullableString, Request, Response, String


@dataclass(slots=True)
class AclCreation:
    resource_type: Int8
    resource_name: String
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@dataclass(slots=True)
class AclCreationResult:
    error_code: Int16
    message: NullableString


@dataclass(slots=True)
class CreateAclsResponse(Response):
    throttle_ms: Int32
    results: list[AclCreationResult]


@dataclass(slots=True)
class CreateAclsRequest(Request):
    creations: list[AclCreation]


API = Api(
    30,
    "CreateAcls",
    CreateAclsRequest,
    CreateAclsResponse,
    (ApiVersion(0, CreateAclsRequest, CreateAclsResponse, since=Level.V0_11_0),),
)
