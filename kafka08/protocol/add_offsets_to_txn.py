"""AddOffsetsToTxn (key 25): a producer announces that it will commit offsets of a group.

The transaction gets the group's partition of `__consumer_offsets`. Error codes: 14, 15, 16, 42, 47,
49, 51. Source: kafka.coordinator.transaction.TransactionCoordinator 0.11.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Int32, Int64, Request, Response, String


@dataclass(slots=True)
class AddOffsetsToTxnResponse(Response):
    throttle_ms: Int32
    error_code: Int16


@dataclass(slots=True)
class AddOffsetsToTxnRequest(Request):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group: String


API = Api(
    25,
    "AddOffsetsToTxn",
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    (ApiVersion(0, AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, since=Level.V0_11_0),),
)
