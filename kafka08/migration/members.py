"""The live members of a group, as a migration sees them: who follows orders, and who must be told.

A member of ours is known by the key `kafka08` in its registration. Any other (the JVM's, say) goes
by its own properties, which cannot be seen from outside: they have to be set by hand, and what it
really does shows only in how the two stores move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kafka08.errors import ZooKeeperError
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.failures import unless_gone
from kafka08.zk.nodes import ConsumerRegistration
from kafka08.zk.operations import Children, Get
from kafka08.zk.orders import Order, Storage, decode_order

DEFAULT_COMMIT_INTERVAL_MS = 60_000
"""auto.commit.interval.ms of a member that does not say."""


@dataclass(frozen=True, slots=True)
class Member:
    """One registered member.

    configured           where its configuration commits; None: it is not ours, and not known
    commit_interval_ms   its auto.commit.interval.ms
    answer               the order that it follows now; None: it follows none
    """

    consumer_id: str
    configured: Storage | None = None
    commit_interval_ms: int = DEFAULT_COMMIT_INTERVAL_MS
    answer: Order | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it switches by itself when it is ordered to."""
        return self.configured is not None

    @property
    def storage(self) -> Storage | None:
        """Where it commits now, as far as is known."""
        return self.configured if self.answer is None else self.answer.storage

    def owns(self, thread_id: str | None) -> bool:
        """Whether a thread id, as it stands in owner znodes, is one of its streams."""
        return thread_id is not None and thread_id.rpartition("-")[0] == self.consumer_id

    def __str__(self) -> str:
        kind = "kafka08" if self.is_ours else "not kafka08"
        return f"{self.consumer_id} ({kind})"


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
            members[group] += (_member(consumer_id, there.data, replied and replied.data),)
    return members


def _member(consumer_id: str, registration: str | None, answer: str | None) -> Member:
    """What a member says of itself. Text that cannot be read is not of ours, and no answer."""
    try:
        decoded = nodes.decode_consumer(registration)
    except ZooKeeperError:
        return Member(consumer_id)
    with suppress(ZooKeeperError):
        return member_of(consumer_id, decoded, decode_order(answer))
    return member_of(consumer_id, decoded)


def member_of(
    consumer_id: str, registration: ConsumerRegistration, answer: Order | None = None
) -> Member:
    says = registration.kafka08
    if says is None:
        return Member(consumer_id)
    storage = Storage.of(says.get("offsets.storage", ""), says.get("dual.commit.enabled") == "true")
    interval = says.get("auto.commit.interval.ms", "")
    return Member(
        consumer_id,
        storage,
        int(interval) if interval.isdecimal() else DEFAULT_COMMIT_INTERVAL_MS,
        answer,
    )


def behind(members: Iterable[Member], order: Order) -> list[str]:
    """The members of ours that have not answered `order`."""
    return [m.consumer_id for m in members if m.is_ours and m.answer != order]


def instructions(members: Iterable[Member], storage: Storage) -> list[str]:
    """What somebody has to do for `storage` by hand, one line for each member that is not ours."""
    keys = " and ".join(f"{key}={value}" for key, value in storage.properties.items())
    return [
        f"{member.consumer_id} is not a kafka08 member: set {keys} in its consumer.properties and "
        "restart it"
        for member in members
        if not member.is_ours
    ]
