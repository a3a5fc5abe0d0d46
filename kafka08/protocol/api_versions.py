"""ApiVersions (key 18): the versions of each API that the broker serves.

To an unknown version of this API the broker responds with error 35 and no APIs, in the layout of
version 0; the client then repeats the request with version 0. Source: kafka.server.KafkaApis
0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

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
    throttle_ms: Annotated[Int32, Since(1)] = 0


@dataclass(slots=True)
class ApiVersionsRequest(Request):
    """An empty body."""

    software: Annotated[String, Since(3)] = ""
    """The client's name for the broker's metrics: letters, digits, "-" and "."."""
    software_version: Annotated[String, Since(3)] = ""


API = Api(
    18,
    "ApiVersions",
    ApiVersionsRequest,
    ApiVersionsResponse,
    (
        ApiVersion(0, ApiVersionsRequest, ApiVersionsResponse, since=Level.V0_10_2),
        ApiVersion(1, ApiVersionsRequest, ApiVersionsResponse, since=Level.V0_11_0),
        ApiVersion(
            NAMING_VERSION,
            ApiVersionsRequest,
            ApiVersionsResponse,
            since=None,
            is_flexible=True,
        ),
    ),
)
