"""UpdateMetadata (key 6): the controller fills every broker's metadata cache.

`live_brokers` replaces the cached brokers. Partitions are merged into the cache; the leader
LEADER_DURING_DELETE removes one. Source: kafka.api.UpdateMetadataRequest 0.8.2.2,
org.apache.kafka.common.requests.UpdateMetadataRequest 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.protocol.metadata import BrokerEndpoint
from kafka08.protocol.types import (
    CONTROLLER_ITEMS_MAX,
    Int16,
    Int32,
    NullableString,
    Request,
    Response,
    String,
    WireForm,
)
from kafka08.structs import Endpoint

PLAINTEXT: Final = 0
SECURITY_PROTOCOLS: Final = {
    PLAINTEXT: "PLAINTEXT",
    1: "SSL",
    2: "SASL_PLAINTEXT",
    3: "SASL_SSL",
}
"""Number of a security protocol → its name, which before 0.10.2 is also its listener's name."""
NUMBERS: Final = {name: number for number, name in SECURITY_PROTOCOLS.items()}


@dataclass(slots=True)
class ListenerEndpoint:
    """The address of one listener of a broker."""

    port: Int32
    host: String
    listener: String
    security_protocol: Int16


@dataclass(slots=True)
class LiveBroker:
    broker_id: Int32
    endpoints: list[ListenerEndpoint]
    rack: NullableString

    @classmethod
    def of(cls, broker_id: int, endpoints: Iterable[Endpoint], rack: str | None) -> LiveBroker:
        """A broker with these listeners, without those of unknown security protocols."""
        listed = [
            ListenerEndpoint(e.port, e.host or "", e.listener, NUMBERS[e.security_protocol])
            for e in endpoints
            if e.security_protocol in NUMBERS
        ]
        return cls(broker_id, listed, rack)

    @classmethod
    def plaintext(cls, broker_id: int, host: str, port: int) -> LiveBroker:
        """A broker with one PLAINTEXT listener of that name and no rack."""
        listener = SECURITY_PROTOCOLS[PLAINTEXT]
        return cls(broker_id, [ListenerEndpoint(port, host, listener, PLAINTEXT)], rack=None)


@dataclass(slots=True)
class UpdateMetadataResponse(Response):
    error_code: Int16


@dataclass(slots=True)
class UpdateMetadataRequest(Request):
    """Version 3, of 0.10.2: each listener has a name."""

    ITEMS_MAX = CONTROLLER_ITEMS_MAX

    controller_id: Int32
    controller_epoch: Int32
    partition_states: list[PartitionStateInfo]
    live_brokers: list[LiveBroker]


class LiveBrokerV0(WireForm, of=LiveBroker):
    broker_id: Int32
    host: String
    port: Int32

    make = LiveBroker.plaintext

    @staticmethod
    def show(message: LiveBroker) -> BrokerEndpoint:
        """The first PLAINTEXT listener; no address without one."""
        for endpoint in message.endpoints:
            if endpoint.security_protocol == PLAINTEXT:
                return BrokerEndpoint(message.broker_id, endpoint.host, endpoint.port)
        return BrokerEndpoint(message.broker_id, "", -1)


class UpdateMetadataRequestV0(WireForm, of=UpdateMetadataRequest):
    """A broker has one address."""

    controller_id: Int32
    controller_epoch: Int32
    partition_states: list[PartitionStateInfo]
    live_brokers: list[LiveBrokerV0]


class ListenerEndpointV1(WireForm, of=ListenerEndpoint):
    port: Int32
    host: String
    security_protocol: Int16

    @staticmethod
    def make(port: int, host: str, security_protocol: int) -> ListenerEndpoint:
        listener = SECURITY_PROTOCOLS.get(security_protocol, "")
        return ListenerEndpoint(port, host, listener, security_protocol)


class LiveBrokerV1(WireForm, of=LiveBroker):
    broker_id: Int32
    endpoints: list[ListenerEndpointV1]

    @staticmethod
    def make(broker_id: int, endpoints: list[ListenerEndpoint]) -> LiveBroker:
        return LiveBroker(broker_id, endpoints, rack=None)


class UpdateMetadataRequestV1(WireForm, of=UpdateMetadataRequest):
    """0.9: has an address for each security protocol."""

    controller_id: Int32
    controller_epoch: Int32
    partition_states: list[PartitionStateInfo]
    live_brokers: list[LiveBrokerV1]


class LiveBrokerV2(WireForm, of=LiveBroker):
    broker_id: Int32
    endpoints: list[ListenerEndpointV1]
    rack: NullableString


class UpdateMetadataRequestV2(WireForm, of=UpdateMetadataRequest):
    """0.10.0: racks."""

    controller_id: Int32
    controller_epoch: Int32
    partition_states: list[PartitionStateInfo]
    live_brokers: list[LiveBrokerV2]


API = Api(
    6,
    "UpdateMetadata",
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    (
        ApiVersion(0, UpdateMetadataRequestV0, UpdateMetadataResponse),
        ApiVersion(1, UpdateMetadataRequestV1, UpdateMetadataResponse, since=Level.V0_9_0),
        ApiVersion(2, UpdateMetadataRequestV2, UpdateMetadataResponse, since=Level.V0_10_2),
        ApiVersion(3, UpdateMetadataRequest, UpdateMetadataResponse, since=Level.V0_10_2),
    ),
)
