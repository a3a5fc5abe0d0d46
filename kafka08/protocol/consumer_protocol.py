"""The protocol type `consumer`: the bytes that consumers exchange through the group APIs.

    Subscription   version:i16  topics:[string] user_data:bytes?                      in JoinGroup
    Assignment     version:i16  topics:[topic:string partitions:[i32]] user_data:bytes?   SyncGroup

The broker does not parse these bytes. Clients write version 0. Later versions append fields, so
they are read as version 0, and the rest is ignored. A negative version is refused.
Source: org.apache.kafka.clients.consumer.internals.ConsumerProtocol 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from kafka08.errors import ProtocolError
from kafka08.protocol.codec import VERSION, decode_body, encode_body
from kafka08.protocol.grouping import by_topic
from kafka08.protocol.types import Buffer, Bytes, Int32, String
from kafka08.structs import TopicPartition

PROTOCOL_TYPE: Final = "consumer"
WRITTEN_VERSION: Final = 0


@dataclass(slots=True)
class Subscription:
    """The topics to which a member subscribes."""

    topics: list[String]
    user_data: Bytes
    """User data of the assignor; Java 0.10 writes null, others no bytes."""


@dataclass(slots=True)
class AssignedTopic:
    topic: String
    partitions: list[Int32]


@dataclass(slots=True)
class Assignment:
    """The partitions of a member."""

    topics: list[AssignedTopic]
    user_data: Bytes


M = TypeVar("M", Subscription, Assignment)


def assigned_topics(partitions: Iterable[TopicPartition]) -> list[AssignedTopic]:
    """The partitions by topic, in their order."""
    return [
        AssignedTopic(topic, [number for number, _ in items])
        for topic, items in by_topic(dict.fromkeys(partitions)).items()
    ]


def encode(message: Subscription | Assignment) -> bytes:
    return VERSION.pack(WRITTEN_VERSION) + encode_body(message)


def decode(cls: type[M], data: Buffer) -> M:
    """The Subscription or Assignment in `data`. ProtocolError for a negative version, and for
    malformed or no bytes. A member that its leader omitted gets no bytes."""
    if len(data) < VERSION.size:
        raise ProtocolError(f"{cls.__name__}: no version in {len(data)} bytes")
    (version,) = VERSION.unpack_from(data)
    if version < 0:
        raise ProtocolError(f"{cls.__name__}: version {version} is below 0")
    return decode_body(cls, data, VERSION.size)[0]
