"""ControlledShutdown (key 7): a broker asks the controller to move its leaders away.

Done when the error is 0 and no partition is left. The request header of version 0 has no client id;
0.9 brought version 1, whose header has one. Later brokers serve version 0 without listing it.
Source: kafka.api.ControlledShutdownRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    Request,
    Response,
    String,
)


@dataclass(slots=True)
class RemainingPartition:
    topic: String
    partition: Int32


@dataclass(slots=True)
class ControlledShutdownResponse(Response):
    error_code: Int16
    partitions_remaining: list[RemainingPartition]


@dataclass(slots=True)
class ControlledShutdownRequest(Request):
    broker_id: Int32


API = Api(
    7,
    "ControlledShutdown",
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    (
        ApiVersion(
            0,
            ControlledShutdownRequest,
            ControlledShutdownResponse,
            has_client_id=False,
            listed=False,
        ),
        ApiVersion(1, ControlledShutdownRequest, ControlledShutdownResponse, since=Level.V0_9_0),
    ),
)
