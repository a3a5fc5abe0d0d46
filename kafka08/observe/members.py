"""The live members of groups: their registrations, and the migration order that each follows.

Our members have the key `kafka08` in their registration. Others (the JVM's, say) take their
settings from their own properties, which no znode shows: only the movement of the two stores shows
where they commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kafka08.consumer.subscription import Subscription, subscription_of
from kafka08.errors import ConfigError, ZooKeeperError
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import unless_gone
from kafka08.zk.migration_protocol import OffsetStorage, Order, decode_order
from kafka08.zk.nodes import ConsumerRegistration
from kafka08.zk.operations import Children, Get, Node

DEFAULT_COMMIT_INTERVAL_MS: Final = 60_000
"""auto.commit.interval.ms of a member whose registration does not have it."""


@dataclass(frozen=True, slots=True)
class Member:
    """An id znode of a group.

    registration   its decoded text; None if that cannot be decoded, for the reason `unreadable`
    session        the ZooKeeper session that created the znode; 0 for a persistent znode
    confirmed      the migration order that it follows now; None: none, or not one of our members
    """

    consumer_id: str
    registration: ConsumerRegistration | None
    session: int
    unreadable: str = ""
    confirmed: Order | None = None

    @property
    def pattern(self) -> str:
        """The kind of its subscription: topic names, or a regular expression."""
        return "" if self.registration is None else self.registration.pattern

    @property
    def streams(self) -> Mapping[str, int]:
        """topic or regular expression → number of streams."""
        return {} if self.registration is None else self.registration.subscription

    @property
    def subscription(self) -> Subscription | None:
        """The member's subscription; None if its registration cannot be parsed, and `fault` says
        why."""
        understood = self._understood()
        return None if isinstance(understood, str) else understood

    @property
    def fault(self) -> str | None:
        """Why every member of the group fails to rebalance with it; None if all is understood."""
        understood = self._understood()
        return understood if isinstance(understood, str) else None

    def _understood(self) -> Subscription | str:
        if self.registration is None:
            return self.unreadable
        try:
            return subscription_of(self.registration, exclude_internal_topics=True)
        except ConfigError as error:
            return str(error)

    @property
    def is_ours(self) -> bool:
        """Whether it is our own implementation, which switches stores on a migration order."""
        return self._configuration is not None

    @property
    def configured(self) -> OffsetStorage | None:
        """The offsets.storage of its configuration; None, so unknown, for other implementations."""
        if (says := self._configuration) is None:
            return None
        is_dual = says.get("dual.commit.enabled") == "true"
        return OffsetStorage.of(says.get("offsets.storage", ""), is_dual)

    @property
    def storage(self) -> OffsetStorage | None:
        """The store of the member's commits now; None if that is unknown."""
        return self.configured if self.confirmed is None else self.confirmed.storage

    @property
    def commit_interval_ms(self) -> int:
        """Its auto.commit.interval.ms, in ms."""
        interval = (self._configuration or {}).get("auto.commit.interval.ms", "")
        return int(interval) if interval.isdecimal() else DEFAULT_COMMIT_INTERVAL_MS

    @property
    def _configuration(self) -> Mapping[str, str] | None:
        return None if self.registration is None else self.registration.kafka08

    def owns(self, thread_id: str | None) -> bool:
        """Whether an owner znode's thread id is one of its streams."""
        return thread_id is not None and thread_id.rpartition("-")[0] == self.consumer_id

    def __str__(self) -> str:
        kind = "kafka08" if self.is_ours else "not kafka08"
        return f"{self.consumer_id} ({kind})"


def topics_read(members: Iterable[Member], existing: Collection[str]) -> set[str]:
    """The topics that `members` subscribe to; patterns are matched against the `existing` ones.
    A member whose registration cannot be understood adds none."""
    return {
        topic
        for member in members
        if member.subscription is not None
        for topic in member.subscription.topics(existing)
    }


def read_members(zk: ZkClient, group: str) -> tuple[Member, ...]:
    """The members registered now, by consumer id. Raises ZooKeeperError."""
    return read_members_of(zk, [group])[group]


def read_members_of(zk: ZkClient, groups: Sequence[str]) -> dict[str, tuple[Member, ...]]:
    """The members of many groups; reads of one kind share a pipeline."""
    listed = zk.pipeline([Children(paths.consumer_ids(group)) for group in groups])
    ids = [
        (group, consumer_id)
        for group, names in zip(groups, listed, strict=True)
        for consumer_id in unless_gone(names, [])
    ]
    registered = zk.pipeline([Get(paths.consumer_id(*one)) for one in ids])
    confirmations = zk.pipeline([Get(paths.migration_confirmation(*one)) for one in ids])
    members: dict[str, tuple[Member, ...]] = dict.fromkeys(groups, ())
    for (group, consumer_id), node, reply in zip(ids, registered, confirmations, strict=True):
        if (there := unless_gone(node, None)) is not None:
            confirmation = unless_gone(reply, None)
            members[group] += (_member(consumer_id, there, confirmation and confirmation.data),)
    return members


def _member(consumer_id: str, node: Node, confirmation: str | None) -> Member:
    """A member from its znode. An unreadable confirmation of a migration order counts as none."""
    session = node.ephemeral_owner
    try:
        registration = nodes.decode_consumer(node.data)
    except ZooKeeperError as error:
        return Member(consumer_id, None, session, unreadable=str(error))
    confirmed = None
    if registration.kafka08 is not None:
        with suppress(ZooKeeperError):
            confirmed = decode_order(confirmation)
    return Member(consumer_id, registration, session, confirmed=confirmed)
