"""The live members of groups: what they registered, and which order of a migration they follow.

A member of ours is known by the key `kafka08` in its registration. Any other (the JVM's, say) goes
by its own properties, which cannot be seen from outside: what it really does shows only in how the
two stores move.
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
"""auto.commit.interval.ms of a member that does not say."""


@dataclass(frozen=True, slots=True)
class Member:
    """An id znode of a group.

    registration   what it says; None if that cannot be read, for the reason `unreadable`
    session        the ZooKeeper session that the znode lives with; 0: made persistent
    answer         the order that it follows now; None: it follows none, or is not ours
    """

    consumer_id: str
    registration: ConsumerRegistration | None
    session: int
    unreadable: str = ""
    answer: Order | None = None

    @property
    def pattern(self) -> str:
        """How its streams are named: as topics, or by a regular expression."""
        return "" if self.registration is None else self.registration.pattern

    @property
    def streams(self) -> Mapping[str, int]:
        """topic or regular expression → number of streams."""
        return {} if self.registration is None else self.registration.subscription

    @property
    def subscription(self) -> Subscription | None:
        """What it reads; None if nobody understands that: then `fault` says why."""
        understood = self._understood()
        return None if isinstance(understood, str) else understood

    @property
    def fault(self) -> str | None:
        """Why every member fails to rebalance with it; None if it is understood."""
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
        """Whether it switches by itself when it is ordered to."""
        return self._configuration is not None

    @property
    def configured(self) -> OffsetStorage | None:
        """Where its configuration commits; None: it is not ours, and not known."""
        if (says := self._configuration) is None:
            return None
        is_dual = says.get("dual.commit.enabled") == "true"
        return OffsetStorage.of(says.get("offsets.storage", ""), is_dual)

    @property
    def storage(self) -> OffsetStorage | None:
        """Where it commits now, as far as is known."""
        return self.configured if self.answer is None else self.answer.storage

    @property
    def commit_interval_ms(self) -> int:
        """Its auto.commit.interval.ms."""
        interval = (self._configuration or {}).get("auto.commit.interval.ms", "")
        return int(interval) if interval.isdecimal() else DEFAULT_COMMIT_INTERVAL_MS

    @property
    def _configuration(self) -> Mapping[str, str] | None:
        return None if self.registration is None else self.registration.kafka08

    def owns(self, thread_id: str | None) -> bool:
        """Whether a thread id, as it stands in owner znodes, is one of its streams."""
        return thread_id is not None and thread_id.rpartition("-")[0] == self.consumer_id

    def __str__(self) -> str:
        kind = "kafka08" if self.is_ours else "not kafka08"
        return f"{self.consumer_id} ({kind})"


def topics_read(members: Iterable[Member], existing: Collection[str]) -> set[str]:
    """The topics that `members` subscribe to; patterns are matched against the `existing` ones.
    Those of a member whose registration is not understood are not known."""
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
    """The same of many groups, each kind of read as one pipeline."""
    listed = zk.pipeline([Children(paths.consumer_ids(group)) for group in groups])
    ids = [
        (group, consumer_id)
        for group, names in zip(groups, listed, strict=True)
        for consumer_id in unless_gone(names, [])
    ]
    registered = zk.pipeline([Get(paths.consumer_id(*one)) for one in ids])
    answers = zk.pipeline([Get(paths.migration_answer(*one)) for one in ids])
    members: dict[str, tuple[Member, ...]] = dict.fromkeys(groups, ())
    for (group, consumer_id), node, answer in zip(ids, registered, answers, strict=True):
        if (there := unless_gone(node, None)) is not None:
            replied = unless_gone(answer, None)
            members[group] += (_member(consumer_id, there, replied and replied.data),)
    return members


def _member(consumer_id: str, node: Node, answer: str | None) -> Member:
    """What a member says of itself. An answer that cannot be read is none."""
    session = node.ephemeral_owner
    try:
        registration = nodes.decode_consumer(node.data)
    except ZooKeeperError as error:
        return Member(consumer_id, None, session, unreadable=str(error))
    follows = None
    if registration.kafka08 is not None:
        with suppress(ZooKeeperError):
            follows = decode_order(answer)
    return Member(consumer_id, registration, session, answer=follows)
