"""The protocol type `consumer`: the bytes that consumers exchange through the group APIs.

    Subscription   version:i16  topics:[string] user_data:bytes?                      in JoinGroup
        from version 1 on  owned:[topic:string partitions:[i32]]    from 2 on  generation:i32
    Assignment     version:i16  topics:[topic:string partitions:[i32]] user_data:bytes?   SyncGroup

The broker does not parse these bytes. Clients write version 0, cooperative members version 2 of
the Subscription. Unknown later fields are ignored. A negative version is refused.
Source: org.apache.kafka.clients.consumer.internals.ConsumerProtocol 0.10.2.2 and 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from kafka08.errors import ProtocolError
from kafka08.protocol.codec import VERSION, decode_body, encode_body
from kafka08.protocol.grouping import by_topic
from kafka08.protocol.types import (
    Buffer,
    Bytes,
    Int32,
    String,
)
from kafka08.structs import TopicPartition

PROTOCOL_TYPE: Final = "consumer"
WRITTEN_VERSION: Final = 0
OWNED_VERSION: Final = 1
OWNER_VERSION: Final = 2
NO_GENERATION: Final = -1


@dataclass(slots=True)
class Subscription:
    """The topics to which a member subscribes."""

    topics: list[String]
    user_data: Bytes
    """User data of the assignor; Java 0.10 writes null, others no bytes."""


@dataclass(slots=True)
class AssignedTopic:
    """The partitions of a member, of one topic."""

    topic: String
    partitions: list[Int32]


@dataclass(slots=True)
class Owned:
    """The field that version 1 of a Subscription appends: what the member has and keeps."""

    topics: list[AssignedTopic]


@dataclass(slots=True)
class OwnedSince:
    """The field that version 2 appends: the generation in which it got them."""

    generation: Int32


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


def encode_owner(message: Subscription, owned: Owned, since: OwnedSince) -> bytes:
    """A Subscription of version 2."""
    fields = encode_body(message) + encode_body(owned) + encode_body(since)
    return VERSION.pack(OWNER_VERSION) + fields


def decode_owner(data: Buffer) -> tuple[Subscription, Owned, OwnedSince]:
    """A Subscription with what its member owns; of version 0 nothing. ProtocolError."""
    version, end = _version_of(Subscription, data)
    message, end = decode_body(Subscription, data, end)
    owned, since = Owned([]), OwnedSince(NO_GENERATION)
    if version >= OWNED_VERSION:
        owned, end = decode_body(Owned, data, end)
    if version >= OWNER_VERSION:
        since, _ = decode_body(OwnedSince, data, end)
    return message, owned, since


def decode(cls: type[M], data: Buffer) -> M:
    """The Subscription or Assignment in `data`. ProtocolError for a negative version, and for
    malformed or no bytes. A member that its leader omitted gets no bytes."""
    return decode_body(cls, data, _version_of(cls, data)[1])[0]


def _version_of(cls: type, data: Buffer) -> tuple[int, int]:
    """The version, and where the fields begin."""
    if len(data) < VERSION.size:
        raise ProtocolError(f"{cls.__name__}: no version in {len(data)} bytes")
    (version,) = VERSION.unpack_from(data)
    if version < 0:
        raise ProtocolError(f"{cls.__name__}: version {version} is below 0")
    return version, VERSION.size
