"""IncrementalAlterConfigs (key 44): change some overrides of topics or brokers, leaving the others
alone. Clients alone use it: no broker of ours has it. From 2.3 on. Error codes, one for each
resource: 3, 40, 42. Source: org.apache.kafka.common.requests 2.8.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka08.protocol.alter_configs import AlteredResourceResult
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Boolean, Int8, Int32, NullableString, Request, Response, String

SET: Final = 0
DELETE: Final = 1


@dataclass(slots=True)
class ConfigChange:
    key: String
    operation: Int8
    """SET or DELETE."""
    value: NullableString


@dataclass(slots=True)
class ChangedResource:
    resource_type: Int8
    resource_name: String
    changes: list[ConfigChange]


@dataclass(slots=True)
class IncrementalAlterConfigsResponse(Response):
    throttle_ms: Int32
    resources: list[AlteredResourceResult]


@dataclass(slots=True)
class IncrementalAlterConfigsRequest(Request):
    resources: list[ChangedResource]
    validate_only: Boolean
    """Only check the request; change nothing."""


API = Api(
    44,
    "IncrementalAlterConfigs",
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    (ApiVersion(0, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, since=None),),
)
