"""DeleteRecords (key 21): raise the log start offset of partitions, each on its leader.

The response follows when every live replica has the new start. Error codes, one for each partition:
1, 3, 7, 17, 44. Source: kafka.server.ReplicaManager.deleteRecords 0.11.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Int32, Int64, Request, Response, String

HIGH_WATERMARK: Final = -1
"""As an offset: all messages below the high watermark."""
NO_LOW_WATERMARK: Final = -1


@dataclass(slots=True)
class DeleteRecordsPartition:
    partition: Int32
    offset: Int64
    """The new log start offset, or HIGH_WATERMARK. A lower one than the present changes nothing."""


@dataclass(slots=True)
class DeleteRecordsTopic:
    topic: String
    partitions: list[DeleteRecordsPartition]


@dataclass(slots=True)
class DeleteRecordsPartitionResponse:
    partition: Int32
    low_watermark: Int64
    """The lowest log start offset of the live replicas; -1 on error."""
    error_code: Int16


@dataclass(slots=True)
class DeleteRecordsTopicResponse:
    topic: String
    partitions: list[DeleteRecordsPartitionResponse]


@dataclass(slots=True)
class DeleteRecordsResponse(Response):
    throttle_ms: Int32
    topics: list[DeleteRecordsTopicResponse]


@dataclass(slots=True)
class DeleteRecordsRequest(Request):
    topics: list[DeleteRecordsTopic]
    timeout_ms: Int32
    """How long to wait for the replicas; then error 7."""


API = Api(
    21,
    "DeleteRecords",
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    (ApiVersion(0, DeleteRecordsRequest, DeleteRecordsResponse, since=Level.V0_11_0),),
)
