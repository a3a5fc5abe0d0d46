"""StopReplica (key 5): stop following partitions, or delete them with their logs.

Source: kafka.api.StopReplicaRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.leader_and_isr import PartitionError
from kafka08.protocol.types import (
    CONTROLLER_ITEMS_MAX,
    Flag,
    Int16,
    Int32,
    Request,
    Response,
    String,
)


@dataclass(slots=True)
class StopReplicaPartition:
    topic: String
    partition: Int32


@dataclass(slots=True)
class StopReplicaResponse(Response):
    ITEMS_MAX = CONTROLLER_ITEMS_MAX

    error_code: Int16
    partitions: list[PartitionError]


@dataclass(slots=True)
class StopReplicaRequest(Request):
    ITEMS_MAX = CONTROLLER_ITEMS_MAX

    controller_id: Int32
    controller_epoch: Int32
    delete_partitions: Flag
    """1: delete the partitions and their directories; 0: only stop fetching."""
    partitions: list[StopReplicaPartition]


API = Api(
    5,
    "StopReplica",
    StopReplicaRequest,
    StopReplicaResponse,
    (ApiVersion(0, StopReplicaRequest, StopReplicaResponse),),
)
