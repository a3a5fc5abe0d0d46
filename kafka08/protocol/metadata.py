"""Metadata (key 3): the live brokers and the leaders of partitions; may create topics.

With auto.create.topics.enable the broker creates unknown topics (and `__consumer_offsets` always);
they have error 5 until their leaders are known. One illegal name makes the whole response error 17
without brokers. Error codes: 3, 5, 9, 17, -1. Source: kafka.api.TopicMetadataRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Boolean,
    Int16,
    Int32,
    Name,
    NullableString,
    Request,
    Response,
    String,
    WireForm,
)
from kafka08.structs import NO_CONTROLLER, NO_LEADER_EPOCH

EPOCH_VERSION: Final = 7
"""From this version on a response has the epochs of leaders."""
EXACT_EPOCH_VERSION: Final = 9
"""The first version of 2.4: earlier brokers name outdated epochs while partitions are moved.
Source: org.apache.kafka.clients.Metadata 3.9.1."""


@dataclass(slots=True)
class BrokerEndpoint:
    """A broker with its address (also in LeaderAndIsr and UpdateMetadata)."""

    broker_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


@dataclass(slots=True)
class PartitionMetadata:
    error_code: Int16
    """With 9 (a replica is not available) clients can still use the leader."""
    partition: Int32
    leader: Int32
    replicas: list[Int32]
    isr: list[Int32]
    offline: list[Int32] = field(default_factory=list)
    """Version 5: the replicas that are not alive."""
    leader_epoch: Int32 = NO_LEADER_EPOCH
    """Version 7."""


@dataclass(slots=True)
class TopicMetadata:
    error_code: Int16
    topic: Name
    partitions: list[PartitionMetadata]
    is_internal: Boolean = False
    """Whether Kafka itself uses the topic (`__consumer_offsets`)."""


@dataclass(slots=True)
class MetadataResponse(Response):
    brokers: list[BrokerEndpoint]
    topics: list[TopicMetadata]
    controller_id: Int32 = NO_CONTROLLER
    cluster_id: NullableString = None
    """The content of `/cluster/id`."""
    throttle_ms: Int32 = 0


@dataclass(slots=True)
class MetadataRequest(Request):
    topics: list[String] | None
    """None: all topics."""
    allow_auto_topic_creation: Boolean = True
    """Version 4: whether an unknown topic may be created."""


class MetadataRequestV0(WireForm, of=MetadataRequest):
    """An empty list means all topics; a request for none is impossible."""

    topics: list[Name]

    @staticmethod
    def make(topics: list[str]) -> MetadataRequest:
        return MetadataRequest(topics or None)

    @staticmethod
    def show(message: MetadataRequest) -> MetadataRequest:
        return message if message.topics is not None else MetadataRequest([])


class BrokerEndpointV1(WireForm, of=BrokerEndpoint):
    broker_id: Int32
    host: String
    port: Int32
    rack: NullableString


class TopicMetadataV1(WireForm, of=TopicMetadata):
    error_code: Int16
    topic: String
    is_internal: Boolean
    partitions: list[PartitionMetadata]


class MetadataResponseV1(WireForm, of=MetadataResponse):
    """0.10.0: adds racks, the controller, and internal topics; the request may name no topic."""

    brokers: list[BrokerEndpointV1]
    controller_id: Int32
    topics: list[TopicMetadataV1]


class MetadataResponseV2(WireForm, of=MetadataResponse):
    """0.10.1: adds the cluster id."""

    brokers: list[BrokerEndpointV1]
    cluster_id: NullableString
    controller_id: Int32
    topics: list[TopicMetadataV1]


class MetadataResponseV3(WireForm, of=MetadataResponse):
    """0.11.0: adds the throttle time at the start."""

    throttle_ms: Int32
    brokers: list[BrokerEndpointV1]
    cluster_id: NullableString
    controller_id: Int32
    topics: list[TopicMetadataV1]


class MetadataRequestV4(WireForm, of=MetadataRequest):
    """0.11.0: may forbid the creation of topics."""

    topics: list[String] | None
    allow_auto_topic_creation: Boolean


class PartitionMetadataV7(WireForm, of=PartitionMetadata):
    error_code: Int16
    partition: Int32
    leader: Int32
    leader_epoch: Int32
    replicas: list[Int32]
    isr: list[Int32]
    offline: list[Int32]


class TopicMetadataV7(WireForm, of=TopicMetadata):
    error_code: Int16
    topic: String
    is_internal: Boolean
    partitions: list[PartitionMetadataV7]


class MetadataResponseV7(WireForm, of=MetadataResponse):
    """1.0: adds the replicas that are offline. 2.1: adds leader epochs."""

    throttle_ms: Int32
    brokers: list[BrokerEndpointV1]
    cluster_id: NullableString
    controller_id: Int32
    topics: list[TopicMetadataV7]


API = Api(
    3,
    "Metadata",
    MetadataRequest,
    MetadataResponse,
    (
        ApiVersion(0, MetadataRequestV0, MetadataResponse),
        ApiVersion(1, MetadataRequest, MetadataResponseV1, since=Level.V0_10_2),
        ApiVersion(2, MetadataRequest, MetadataResponseV2, since=Level.V0_10_2),
        ApiVersion(3, MetadataRequest, MetadataResponseV3, since=Level.V0_11_0),
        ApiVersion(4, MetadataRequestV4, MetadataResponseV3, since=Level.V0_11_0),
        ApiVersion(EPOCH_VERSION, MetadataRequestV4, MetadataResponseV7, since=None),
    ),
)
