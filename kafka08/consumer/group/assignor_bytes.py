"""Subscriptions and assignments of assignors, as the bytes of JoinGroup and SyncGroup.

A member's JoinGroup has the subscription of each of its assignors. From those of one assignor the
leader computes the assignments, which its SyncGroup sends to the other members. Decoding raises
ProtocolError; encoding raises what the assignor does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka08.client.metadata import ClusterMetadata
from kafka08.consumer.group.assignors import Assignor, MemberAssignment, MemberSubscription
from kafka08.protocol import consumer_protocol
from kafka08.protocol.codec import encode_body
from kafka08.protocol.consumer_protocol import (
    NO_GENERATION,
    AssignedTopic,
    Assignment,
    Owned,
    OwnedSince,
    Subscription,
    assigned_topics,
)
from kafka08.protocol.types import Buffer
from kafka08.structs import TopicPartition


def is_cooperative(assignor: Assignor) -> bool:
    return bool(getattr(assignor, "is_cooperative", False))


def encode_subscription(
    assignor: Assignor,
    topics: Sequence[str],
    owned: Sequence[TopicPartition] = (),
    generation: int = NO_GENERATION,
) -> bytes:
    """The subscription to `topics`, with the user data of `assignor`; for a cooperative one, with
    the partitions that the member owns since `generation`."""
    said = assignor.subscription(topics)
    if not is_cooperative(assignor):
        return consumer_protocol.encode(Subscription(list(said.topics), said.user_data))
    since = OwnedSince(generation)
    # Java before 3.2 reads the generation there.
    data = encode_body(since) if said.user_data is None else said.user_data
    return consumer_protocol.encode_owner(
        Subscription(list(said.topics), data), Owned(assigned_topics(owned)), since
    )


def decode_subscription(data: Buffer) -> MemberSubscription:
    found, owned, since = consumer_protocol.decode_owner(data)
    return MemberSubscription(
        tuple(found.topics),
        _as_bytes(found.user_data),
        tuple(_partitions(owned.topics)),
        since.generation,
    )


def encode_assignments(
    assignor: Assignor,
    cluster: ClusterMetadata,
    subscriptions: Mapping[str, MemberSubscription],
) -> dict[str, bytes]:
    """member id → its assignment by `assignor`; an empty one for a member that it left out."""
    given = assignor.assign(cluster, subscriptions)
    return {
        member: _encode_assignment(given.get(member, MemberAssignment()))
        for member in subscriptions
    }


def _encode_assignment(assignment: MemberAssignment) -> bytes:
    topics = assigned_topics(assignment.partitions)
    return consumer_protocol.encode(Assignment(topics, assignment.user_data))


def decode_assignment(data: Buffer) -> MemberAssignment:
    """No bytes: the leader left this member out, and it has no partitions."""
    if not len(data):
        return MemberAssignment()
    found = consumer_protocol.decode(Assignment, data)
    return MemberAssignment(_partitions(found.topics), _as_bytes(found.user_data))


def _partitions(topics: Sequence[AssignedTopic]) -> list[TopicPartition]:
    return [TopicPartition(one.topic, number) for one in topics for number in one.partitions]


def _as_bytes(data: Buffer | None) -> bytes | None:
    return None if data is None else bytes(data)
