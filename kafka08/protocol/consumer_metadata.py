"""ConsumerMetadata (key 10; GroupCoordinator since 0.9): the broker that stores a group's offsets.

Error 15 with id -1, host "" and port -1 until the offsets topic, which this creates, has a leader.
Source: kafka.api.ConsumerMetadataRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    Name,
    Request,
    Response,
    String,
)


@dataclass(slots=True)
class ConsumerMetadataResponse(Response):
    error_code: Int16
    coordinator_id: Int32
    host: String
    port: Int32


@dataclass(slots=True)
class ConsumerMetadataRequest(Request):
    group: Name


API = Api(
    10,
    "ConsumerMetadata",
    ConsumerMetadataRequest,
    ConsumerMetadataResponse,
    (ApiVersion(0, ConsumerMetadataRequest, ConsumerMetadataResponse),),
)
