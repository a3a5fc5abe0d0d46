"""UpdateMetadata (key 6): the controller fills every broker's metadata cache.

`live_brokers` replaces what the broker knew; partitions are merged into it, and a leader of
LEADER_DURING_DELETE removes one. Source: kafka.api.UpdateMetadataRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.protocol.metadata import BrokerEndpoint
from kafka08.protocol.types import (
    Int16,
    Int32,
    Request,
    Response,
)


@dataclass(slots=True)
class UpdateMetadataResponse(Response):
    error_code: Int16


@dataclass(slots=True)
class UpdateMetadataRequest(Request):
    controller_id: Int32
    controller_epoch: Int32
    partition_states: list[PartitionStateInfo]
    live_brokers: list[BrokerEndpoint]


API = Api(
    6,
    "UpdateMetadata",
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    (ApiVersion(0, UpdateMetadataRequest, UpdateMetadataResponse),),
)
