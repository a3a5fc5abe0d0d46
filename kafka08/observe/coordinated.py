"""A group that has a coordinator, as ListGroups and DescribeGroups show it. Plain data.

From 0.9.0 on a coordinator knows the members of a group. Of a group that only commits offsets (a
ZooKeeper group with offsets.storage=kafka, say) it knows only the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka08.errors import ProtocolError
from kafka08.protocol import consumer_protocol
from kafka08.protocol.consumer_protocol import PROTOCOL_TYPE, Assignment, Subscription
from kafka08.protocol.describe_groups import DescribedGroup, DescribedMember
from kafka08.structs import Broker, TopicPartition

DEAD: Final = "Dead"
"""The state that DescribeGroups returns for an unknown group."""
STABLE: Final = "Stable"
REBALANCING: Final = frozenset({"PreparingRebalance", "AwaitingSync"})


@dataclass(frozen=True, slots=True)
class CoordinatedMember:
    """A member, as its coordinator describes it.

    host     the address that it joined from, as `/10.0.0.7`
    topics   its subscription, sorted
    owns     the partitions that the group's leader assigned to it, sorted; empty during a rebalance
    fault    why its subscription or assignment cannot be decoded; None if both can be, and for
             protocol types other than `consumer`
    """

    member_id: str
    client_id: str
    host: str
    topics: tuple[str, ...] = ()
    owns: tuple[TopicPartition, ...] = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class CoordinatedGroup:
    """A group and its coordinator. `members` are sorted by id.

    state           Empty, PreparingRebalance, AwaitingSync, Stable or Dead
    protocol_type   `consumer` for consumers; empty for a group that only commits
    protocol        the assignor that the members agreed on; empty before that
    """

    name: str
    coordinator: Broker
    state: str
    protocol_type: str
    protocol: str
    members: tuple[CoordinatedMember, ...]

    @property
    def exists(self) -> bool:
        return self.state != DEAD

    @property
    def is_simple(self) -> bool:
        """Whether it only commits offsets, as far as its coordinator remembers: a group without
        members loses its protocol type when another broker becomes its coordinator."""
        return not self.members and not self.protocol_type

    def owner_of(self, partition: TopicPartition) -> CoordinatedMember | None:
        return next((m for m in self.members if partition in m.owns), None)


@dataclass(frozen=True, slots=True)
class CoordinatedGroups:
    """The groups of all brokers that responded, by name.

    failed_requests  what is unknown because a request failed, each with its reason
    old_brokers      the number of brokers of 0.8, which coordinate none
    """

    groups: tuple[CoordinatedGroup, ...]
    failed_requests: tuple[str, ...] = ()
    old_brokers: int = 0


def group_of(described: DescribedGroup, coordinator: Broker) -> CoordinatedGroup:
    """The group of a DescribeGroups response without an error."""
    members = sorted(described.members, key=lambda member: member.member_id)
    return CoordinatedGroup(
        described.group,
        coordinator,
        described.state,
        described.protocol_type,
        described.protocol,
        tuple(_member(member, described) for member in members),
    )


def _member(described: DescribedMember, group: DescribedGroup) -> CoordinatedMember:
    """Decodes a member's metadata and assignment. Both belong to the chosen protocol, so during a
    rebalance there are none."""
    identity = (described.member_id, described.client_id, described.client_host)
    if group.protocol_type != PROTOCOL_TYPE or group.state in REBALANCING:
        return CoordinatedMember(*identity)
    try:
        wants = consumer_protocol.decode(Subscription, described.metadata)
        gets = (
            consumer_protocol.decode(Assignment, described.assignment).topics
            if described.assignment
            else []
        )
    except ProtocolError as error:
        return CoordinatedMember(*identity, fault=str(error))
    owns = sorted(TopicPartition(topic.topic, n) for topic in gets for n in topic.partitions)
    return CoordinatedMember(*identity, tuple(sorted(wants.topics)), tuple(owns))
