"""EndTxn (key 26): a producer commits or aborts its transaction.

The response follows when the decision is stored; the markers are written afterwards. Error codes:
14, 15, 16, 42, 47, 48, 49, 51. Source: kafka.coordinator.transaction.TransactionCoordinator
0.11.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Boolean, Int16, Int32, Int64, Request, Response, String


@dataclass(slots=True)
class EndTxnResponse(Response):
    throttle_ms: Int32
    error_code: Int16


@dataclass(slots=True)
class EndTxnRequest(Request):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    commits: Boolean
    """False: aborts."""


API = Api(
    26,
    "EndTxn",
    EndTxnRequest,
    EndTxnResponse,
    (ApiVersion(0, EndTxnRequest, EndTxnResponse, since=Level.V0_11_0),),
)
