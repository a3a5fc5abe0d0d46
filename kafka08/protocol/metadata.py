"""Metadata (key 3): which brokers are alive and who leads what; may create topics.

No topics named means all. An unknown name is created when auto.create.topics.enable is set (and
`__consumer_offsets` always), answered with 5 until its leaders are known. One illegal name fails
the whole answer with 17 and no brokers. Error codes: 3, 5, 9, 17, -1. Source:
kafka.api.TopicMetadataRequest 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int32,
    Name,
    Request,
    Response,
    String,
)


@dataclass(slots=True)
class BrokerEndpoint:
    """A broker as the wire lists it (also in LeaderAndIsr and UpdateMetadata)."""

    broker_id: Int32
    host: String
    port: Int32


@dataclass(slots=True)
class PartitionMetadata:
    error_code: Int16
    """9 (a replica is dead) does not stop anyone from using the leader."""
    partition: Int32
    leader: Int32
    replicas: list[Int32]
    isr: list[Int32]


@dataclass(slots=True)
class TopicMetadata:
    error_code: Int16
    topic: Name
    partitions: list[PartitionMetadata]


@dataclass(slots=True)
class MetadataResponse(Response):
    brokers: list[BrokerEndpoint]
    topics: list[TopicMetadata]


@dataclass(slots=True)
class MetadataRequest(Request):
    topics: list[Name]


API = Api(
    3,
    "Metadata",
    MetadataRequest,
    MetadataResponse,
    (ApiVersion(0, MetadataRequest, MetadataResponse),),
)
