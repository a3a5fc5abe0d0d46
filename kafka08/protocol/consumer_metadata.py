"""ConsumerMetadata (key 10; GroupCoordinator since 0.9): the broker that stores a group's offsets.

FindCoordinator since 0.11: version 1 also finds the broker that coordinates a producer's
transactions.

Error 15 with id -1, host "" and port -1 until the offsets topic, which this creates, has a leader.
Source: kafka.api.ConsumerMetadataRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    Name,
    NullableString,
    Request,
    Response,
    Since,
    String,
    ZeroOrOne,
)

GROUP: Final = 0
TRANSACTION: Final = 1


@dataclass(slots=True)
class ConsumerMetadataResponse(Response):
    error_code: Int16
    coordinator_id: Int32
    host: String
    port: Int32
    message: Annotated[NullableString, Since(1, before="coordinator_id")] = None
    throttle_ms: Annotated[Int32, Since(1, before="error_code")] = 0


@dataclass(slots=True)
class ConsumerMetadataRequest(Request):
    group: Name
    """A group or a transactional id, as `coordinator_type` says."""
    coordinator_type: Annotated[ZeroOrOne, Since(1)] = GROUP


API = Api(
    10,
    "ConsumerMetadata",
    ConsumerMetadataRequest,
    ConsumerMetadataResponse,
    (
        ApiVersion(0, ConsumerMetadataRequest, ConsumerMetadataResponse),
        ApiVersion(1, ConsumerMetadataRequest, ConsumerMetadataResponse, since=Level.V0_11_0),
    ),
)
