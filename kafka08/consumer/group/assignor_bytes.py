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
from kafka08.protocol.consumer_protocol import Assignment, Subscription, assigned_topics
from kafka08.protocol.types import Buffer
from kafka08.structs import TopicPartition


def encode_subscription(assignor: Assignor, topics: Sequence[str]) -> bytes:
    """The subscription to `topics`, with the user data of `assignor`."""
    said = assignor.subscription(topics)
    return consumer_protocol.encode(Subscription(list(said.topics), said.user_data))


def decode_subscription(data: Buffer) -> MemberSubscription:
    found = consumer_protocol.decode(Subscription, data)
    return MemberSubscription(tuple(found.topics), _as_bytes(found.user_data))


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
    partitions = [TopicPartition(one.topic, number) for one in found.topics
                  for number in one.partitions]  # fmt: skip
    return MemberAssignment(partitions, _as_bytes(found.user_data))


def _as_bytes(data: Buffer | None) -> bytes | None:
    return None if data is None else bytes(data)
