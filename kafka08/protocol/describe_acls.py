"""DescribeAcls (key 29): the access control entries that match a filter.

A broker without an authorizer responds with 54. Source: kafka.server.KafkaApis 0.11.0.2,
org.apache.kafka.common.requests 3.9.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int8,
    Int16,
    Int32,
    NullableString,
    Request,
    Response,
    Since,
    String,
)

ANY: Final = 1
"""A filter's number that matches every type, pattern, operation or permission."""
LITERAL: Final = 3


@dataclass(slots=True)
class DescribedAcl:
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@dataclass(slots=True)
class DescribedAclResource:
    resource_type: Int8
    resource_name: String
    acls: list[DescribedAcl]
    pattern_type: Annotated[Int8, Since(1, before="acls")] = LITERAL


@dataclass(slots=True)
class DescribeAclsResponse(Response):
    throttle_ms: Int32
    error_code: Int16
    message: NullableString
    resources: list[DescribedAclResource]


@dataclass(slots=True)
class DescribeAclsRequest(Request):
    """A filter; None matches every value."""

    resource_type: Int8
    resource_name: NullableString
    principal: NullableString
    host: NullableString
    operation: Int8
    permission_type: Int8
    pattern_type: Annotated[Int8, Since(1, before="principal")] = ANY
    """Whether names are meant as they are, or as prefixes."""


API = Api(
    29,
    "DescribeAcls",
    DescribeAclsRequest,
    DescribeAclsResponse,
    (
        ApiVersion(0, DescribeAclsRequest, DescribeAclsResponse, since=Level.V0_11_0),
        ApiVersion(1, DescribeAclsRequest, DescribeAclsResponse, since=None),
    ),
)
