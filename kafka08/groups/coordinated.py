"""A group that has a coordinator, as ListGroups and DescribeGroups show it. Plain data.

From 0.9.0 on a coordinator knows who is in a group. Of a group that only commits offsets (one of
ZooKeeper with offsets.storage=kafka, say) it knows no more than the name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka08.errors import ProtocolError
from kafka08.groups.facts import PartitionFacts
from kafka08.protocol import consumer_protocol
from kafka08.protocol.consumer_protocol import PROTOCOL_TYPE, Assignment, Subscription
from kafka08.protocol.describe_groups import DescribedGroup, DescribedMember
from kafka08.structs import Broker, TopicPartition

DEAD: Final = "Dead"
"""The state of a group that the coordinator does not know."""
STABLE: Final = "Stable"
REBALANCING: Final = frozenset({"PreparingRebalance", "AwaitingSync"})


@dataclass(frozen=True, slots=True)
class CoordinatedMember:
    """A member, as its coordinator knows it.

    host     where it joined from, as `/10.0.0.7`
    topics   that it subscribes to, sorted
    owns     what the group's leader gave to it, sorted; nothing during a rebalance
    fault    why its subscription or assignment is not understood; None if they are, and in a group
             that is not of consumers
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
        members loses its protocol type with its coordinator."""
        return not self.members and not self.protocol_type

    def owner_of(self, partition: TopicPartition) -> CoordinatedMember | None:
        return next((m for m in self.members if partition in m.owns), None)


@dataclass(frozen=True, slots=True)
class CoordinatedGroups:
    """The groups of all brokers that answered, by name; `unanswered` says what could not be asked,
    and why."""

    groups: tuple[CoordinatedGroup, ...]
    unanswered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CoordinatedFacts:
    """What the brokers say of one group at about one time.

    partitions   sorted: those with a committed offset, and all of the topics of these and of those
                 that members subscribe to. Their owners are in `group`
    topics       topic → its partitions, of all that exist
    """

    group: CoordinatedGroup
    partitions: tuple[PartitionFacts, ...]
    topics: Mapping[str, Collection[int]] = field(repr=False, default_factory=dict)
    unanswered: tuple[str, ...] = ()


def group_of(described: DescribedGroup, coordinator: Broker) -> CoordinatedGroup:
    """The group in an answer that has no error."""
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
    """Its bytes belong to the protocol that was chosen: during a rebalance there are none."""
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
