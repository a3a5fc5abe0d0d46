"""Metadata (key 3): the live brokers and the leaders of partitions; may create topics.

With auto.create.topics.enable the broker creates unknown topics (and `__consumer_offsets` always);
they have error 5 until their leaders are known. One illegal name makes the whole response error 17
without brokers. Error codes: 3, 5, 9, 17, -1. Source: kafka.api.TopicMetadataRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final

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
    Since,
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
    rack: Annotated[NullableString, Since(1)] = None


@dataclass(slots=True)
class PartitionMetadata:
    error_code: Int16
    """With 9 (a replica is not available) clients can still use the leader."""
    partition: Int32
    leader: Int32
    replicas: list[Int32]
    isr: list[Int32]
    offline: Annotated[list[Int32], Since(5)] = field(default_factory=list)
    """The replicas that are not alive."""
    leader_epoch: Annotated[Int32, Since(7, before="replicas")] = NO_LEADER_EPOCH


@dataclass(slots=True)
class TopicMetadata:
    error_code: Int16
    topic: Name
    partitions: list[PartitionMetadata]
    is_internal: Annotated[Boolean, Since(1, before="partitions")] = False
    """Whether Kafka itself uses the topic (`__consumer_offsets`)."""


@dataclass(slots=True)
class MetadataResponse(Response):
    brokers: list[BrokerEndpoint]
    topics: list[TopicMetadata]
    controller_id: Annotated[Int32, Since(1, before="topics")] = NO_CONTROLLER
    cluster_id: Annotated[NullableString, Since(2, before="controller_id")] = None
    """The content of `/cluster/id`."""
    throttle_ms: Annotated[Int32, Since(3, before="brokers")] = 0


@dataclass(slots=True)
class MetadataRequest(Request):
    topics: list[String] | None
    """None: all topics."""
    allow_auto_topic_creation: Annotated[Boolean, Since(4)] = True
    """Whether an unknown topic may be created."""


class MetadataRequestV0(WireForm, of=MetadataRequest):
    """An empty list means all topics; a request for none is impossible."""

    topics: list[Name]

    @staticmethod
    def make(topics: list[str]) -> MetadataRequest:
        return MetadataRequest(topics or None)

    @staticmethod
    def show(message: MetadataRequest) -> MetadataRequest:
        return message if message.topics is not None else MetadataRequest([])


API = Api(
    3,
    "Metadata",
    MetadataRequest,
    MetadataResponse,
    (
        ApiVersion(0, MetadataRequestV0, MetadataResponse),
        ApiVersion(1, MetadataRequest, MetadataResponse, since=Level.V0_10_2),
        ApiVersion(2, MetadataRequest, MetadataResponse, since=Level.V0_10_2),
        ApiVersion(3, MetadataRequest, MetadataResponse, since=Level.V0_11_0),
        ApiVersion(4, MetadataRequest, MetadataResponse, since=Level.V0_11_0),
        ApiVersion(EPOCH_VERSION, MetadataRequest, MetadataResponse, since=None),
    ),
)
