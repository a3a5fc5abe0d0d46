"""ApiVersions (key 18): the versions of each API that the broker serves.

To an unknown version of this API the broker responds with error 35 and no APIs, in the layout of
version 0; the client then repeats the request with version 0. Source: kafka.server.KafkaApis
0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Int32, Request, Response, String, WireForm

NAMING_VERSION: Final = 3
"""In this version, which is flexible, a client says its name."""


@dataclass(slots=True)
class ApiVersionRange:
    key: Int16
    min_version: Int16
    max_version: Int16


@dataclass(slots=True)
class ApiVersionsResponse(Response):
    error_code: Int16
    apis: list[ApiVersionRange]
    throttle_ms: Int32 = 0


@dataclass(slots=True)
class ApiVersionsRequest(Request):
    """An empty body."""

    software: String = ""
    """Version 3: the client's name for the broker's metrics: letters, digits, "-" and "."."""
    software_version: String = ""


class ApiVersionsRequestV3(WireForm, of=ApiVersionsRequest):
    """2.4: adds name and version of the client."""

    software: String
    software_version: String


class ApiVersionsResponseV1(WireForm, of=ApiVersionsResponse):
    """0.11.0: adds the throttle time, at the end."""

    error_code: Int16
    apis: list[ApiVersionRange]
    throttle_ms: Int32


API = Api(
    18,
    "ApiVersions",
    ApiVersionsRequest,
    ApiVersionsResponse,
    (
        ApiVersion(0, ApiVersionsRequest, ApiVersionsResponse, since=Level.V0_10_2),
        ApiVersion(1, ApiVersionsRequest, ApiVersionsResponseV1, since=Level.V0_11_0),
        ApiVersion(
            NAMING_VERSION,
            ApiVersionsRequestV3,
            ApiVersionsResponseV1,
            since=None,
            is_flexible=True,
        ),
    ),
)
