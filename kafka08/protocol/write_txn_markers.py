"""WriteTxnMarkers (key 27): a transaction coordinator ends transactions in partitions.

The leader of each partition appends a control batch. Error codes, one for each partition: 3, 6, 7,
19, 43, 47, 52. Source: kafka.server.KafkaApis.handleWriteTxnMarkersRequest 0.11.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.add_partitions_to_txn import TxnTopic, TxnTopicResult
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Boolean, Int16, Int32, Int64, Request, Response


@dataclass(slots=True)
class TxnMarker:
    """The end of a producer's transaction in some partitions."""

    producer_id: Int64
    producer_epoch: Int16
    commits: Boolean
    topics: list[TxnTopic]
    coordinator_epoch: Int32
    """The leader epoch of the coordinator's partition; a lower one than the last is 52."""


@dataclass(slots=True)
class TxnMarkerResult:
    producer_id: Int64
    topics: list[TxnTopicResult]


@dataclass(slots=True)
class WriteTxnMarkersResponse(Response):
    markers: list[TxnMarkerResult]


@dataclass(slots=True)
class WriteTxnMarkersRequest(Request):
    markers: list[TxnMarker]


API = Api(
    27,
    "WriteTxnMarkers",
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    (ApiVersion(0, WriteTxnMarkersRequest, WriteTxnMarkersResponse, since=Level.V0_11_0),),
)
