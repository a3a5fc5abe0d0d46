"""InitProducerId (key 22): a producer id and its epoch, for a producer that starts.

Without a transactional id any broker gives a new id with epoch 0. With one the coordinator gives
the id of the last producer of that name with the next epoch, which fences the former producer.
Error codes: 14, 15, 16, 42, 50, 51, -1. Source:
kafka.coordinator.transaction.TransactionCoordinator 0.11.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Int32, Int64, NullableString, Request, Response


@dataclass(slots=True)
class InitProducerIdResponse(Response):
    throttle_ms: Int32
    error_code: Int16
    producer_id: Int64
    """-1 on error."""
    producer_epoch: Int16
    """-1 on error."""


@dataclass(slots=True)
class InitProducerIdRequest(Request):
    transactional_id: NullableString
    transaction_timeout_ms: Int32
    """After this time the coordinator aborts a transaction that its producer has not ended."""


API = Api(
    22,
    "InitProducerId",
    InitProducerIdRequest,
    InitProducerIdResponse,
    (ApiVersion(0, InitProducerIdRequest, InitProducerIdResponse, since=Level.V0_11_0),),
)
