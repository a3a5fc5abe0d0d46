"""LeaderAndIsr (key 4): the controller tells brokers which partitions to lead and to follow.

The broker responds to a stale `controller_epoch` with error 11 and no partitions. A partition whose
leader epoch is not above the known one gets 13; one that does not list this broker as a replica is
left out of the response. Source: kafka.api.LeaderAndIsrRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.metadata import BrokerEndpoint
from kafka08.protocol.types import (
    CONTROLLER_ITEMS_MAX,
    Int16,
    Int32,
    Request,
    Response,
    String,
)
from kafka08.structs import LeaderAndIsr


@dataclass(slots=True)
class PartitionStateInfo:
    """Leader, ISR and replicas of one partition (also in UpdateMetadata)."""

    topic: String
    partition: Int32
    controller_epoch: Int32
    leader: Int32
    leader_epoch: Int32
    isr: list[Int32]
    zk_version: Int32
    replicas: list[Int32]

    @property
    def leader_and_isr(self) -> LeaderAndIsr:
        """The state without the replicas."""
        epoch = self.controller_epoch
        return LeaderAndIsr(self.leader, self.leader_epoch, tuple(self.isr), self.zk_version, epoch)


@dataclass(slots=True)
class PartitionError:
    topic: String
    partition: Int32
    error_code: Int16


@dataclass(slots=True)
class LeaderAndIsrResponse(Response):
    ITEMS_MAX = CONTROLLER_ITEMS_MAX

    error_code: Int16
    partitions: list[PartitionError]


@dataclass(slots=True)
class LeaderAndIsrRequest(Request):
    ITEMS_MAX = CONTROLLER_ITEMS_MAX

    controller_id: Int32
    controller_epoch: Int32
    partition_states: list[PartitionStateInfo]
    leaders: list[BrokerEndpoint]
    """Only the live brokers that lead a partition of this request."""


API = Api(
    4,
    "LeaderAndIsr",
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    (ApiVersion(0, LeaderAndIsrRequest, LeaderAndIsrResponse),),
)
