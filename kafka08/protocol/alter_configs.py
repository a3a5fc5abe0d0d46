"""AlterConfigs (key 33): replace all overrides of topics.

Error codes, one for each resource: 40, 42, -1. Source: kafka.server.AdminManager.alterConfigs
0.11.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Boolean,
    Int8,
    Int16,
    Int32,
    NullableString,
    Request,
    Response,
    String,
)


@dataclass(slots=True)
class ConfigEntry:
    key: String
    value: NullableString


@dataclass(slots=True)
class AlteredResource:
    resource_type: Int8
    resource_name: String
    configs: list[ConfigEntry]
    """The new overrides; none removes all."""


@dataclass(slots=True)
class AlteredResourceResult:
    error_code: Int16
    message: NullableString
    resource_type: Int8
    resource_name: String


@dataclass(slots=True)
class AlterConfigsResponse(Response):
    throttle_ms: Int32
    resources: list[AlteredResourceResult]


@dataclass(slots=True)
class AlterConfigsRequest(Request):
    resources: list[AlteredResource]
    validate_only: Boolean
    """Only check the request; change nothing."""


API = Api(
    33,
    "AlterConfigs",
    AlterConfigsRequest,
    AlterConfigsResponse,
    (ApiVersion(0, AlterConfigsRequest, AlterConfigsResponse, since=Level.V0_11_0),),
)
