"""ApiVersions (key 18): which versions of which APIs the broker serves.

A version of this API that the broker does not have is answered 35 with no APIs, in the layout of
version 0; the client asks again with version 0. Source: kafka.server.KafkaApis 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Request, Response


@dataclass(slots=True)
class ApiVersionRange:
    key: Int16
    min_version: Int16
    max_version: Int16


@dataclass(slots=True)
class ApiVersionsResponse(Response):
    error_code: Int16
    apis: list[ApiVersionRange]


@dataclass(slots=True)
class ApiVersionsRequest(Request):
    """An empty body."""


API = Api(
    18,
    "ApiVersions",
    ApiVersionsRequest,
    ApiVersionsResponse,
    (ApiVersion(0, ApiVersionsRequest, ApiVersionsResponse, since=Level.V0_10_2),),
)
