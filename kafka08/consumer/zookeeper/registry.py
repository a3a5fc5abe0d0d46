"""A member's znodes: its registration, its view of the group, the partitions it owns.

Every write that only this member may make (claim, release, and commits in offset_store.py) is one
ZooKeeper transaction that also checks that the member's own id znode exists. That znode is created
once per session and expires with it, so a write meant for an earlier session fails as a whole, and
a claim gets all its partitions or none. More than WHOLE_MAX partitions take several transactions; a
claim releases what it has claimed if a later one is refused. Other members see the same znodes as
from 0.8.2.2.

Watches only call `on_change`; then the view is read again, of registrations and topics only the
changed ones (znode_cache.py). Sources:
kafka.consumer.ZookeeperConsumerConnector, kafka.utils.ZkUtils 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from kafka08.consumer.subscription import Subscription, subscription_of
from kafka08.consumer.zookeeper.assignment import GroupView
from kafka08.consumer.zookeeper.assignors import Assignment
from kafka08.consumer.zookeeper.znode_cache import ZnodeCache
from kafka08.errors import NodeExists, NoNode, SessionLost, ZooKeeperError
from kafka08.runtime import ClientRuntime, Event
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.bulk import portions
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import ANY_VERSION, Check, Create, Delete, Node

ID_POLL_MS: Final = 200
"""The time between attempts to register while the member's id is taken."""


class PartitionsOwned(ZooKeeperError):
    """Another member has not released a partition of the claim; nothing was claimed."""

    def __init__(self, path: str, owner: str | None) -> None:
        super().__init__(f"{path} belongs to {owner or 'a member that is leaving'}")
        self.path = path


class RegistrationGone(ZooKeeperError):
    """The member's own id znode is missing, although its session lives."""


class ConsumerIdTaken(ZooKeeperError):
    """Another process has registered with the member's id."""


class _Topic(NamedTuple):
    """A topic by its znode: its partition numbers, ascending, and the transaction that made it."""

    partitions: tuple[int, ...]
    created: int


class GroupRegistry:
    """The znodes of one member of a group, for the session of `zk`.

    stopping     ends the wait for an id that is taken
    note         configuration keys for the registration, which a migration of offsets reads
    on_change    called, in any thread, when the last `view` may be out of date
    on_release   called, in any thread, when a partition that blocked a claim may be free
    """

    def __init__(
        self,
        zk: ZkClient,
        group: str,
        consumer_id: str,
        *,
        exclude_internal_topics: bool,
        runtime: ClientRuntime,
        stopping: Event,
        note: Mapping[str, str] | None = None,
        on_change: Callable[[], None],
        on_release: Callable[[], None],
    ) -> None:
        self._zk = zk
        self._runtime = runtime
        self._group = group
        self._consumer_id = consumer_id
        self._exclude_internal_topics = exclude_internal_topics
        self._stopping = stopping
        self._note = note
        self._on_change = on_change
        self._on_release = on_release
        self._registrations = ZnodeCache(
            zk, lambda node: self._subscription_of(node.data), on_change, runtime
        )
        self._topics = ZnodeCache(zk, _topic_of, on_change, runtime)
        self._parents: set[str] = set()
        """Topics whose owners' parent znode is known to exist in this session."""
        self._uncertain: set[TopicPartition] = set()
        """Partitions whose owner znode may be ours although we do not count it as owned: the
        response to a claim or a release was lost."""

    @property
    def session_id(self) -> int | None:
        return self._zk.session_id

    @property
    def id_path(self) -> str:
        return paths.consumer_id(self._group, self._consumer_id)

    def register(self, subscription: Subscription, timestamp_ms: int) -> int:
        """Create the id znode, unless this session has created it. Waits until that of an earlier
        session expires, as 0.8.2.2 does, but no longer than such a session can live: then
        ConsumerIdTaken. Returns the znode's session: while a connection is replaced it may differ
        from the one that `session_id` returned before."""
        stat = self._zk.stat(self.id_path)
        if stat is None or stat.ephemeral_owner != self._zk.session_id:
            registration = replace(subscription.registration(timestamp_ms), kafka08=self._note)
            self._create_id(nodes.encode_consumer(registration))
            stat = self._zk.stat(self.id_path)
        if stat is None:
            raise RegistrationGone(f"{self.id_path} was removed from outside")
        return stat.ephemeral_owner

    def begin_session(self) -> None:
        """Discard everything that was read or checked in an earlier session."""
        self._registrations.forget()
        self._topics.forget()
        self._parents.clear()

    def view(self, own: Subscription) -> GroupView | None:
        """Members, topics and partitions, watched from before they are read; None while no broker
        is registered. RegistrationGone, other ZooKeeperErrors, and ConfigError for a registration
        that cannot be understood."""
        # Watched only while there is none: no other change of the brokers calls for a rebalance.
        if not self._zk.children_or_empty(paths.BROKER_IDS) and not self._watched(paths.BROKER_IDS):
            return None
        members = self._members()
        if self._consumer_id not in members:
            raise RegistrationGone(f"{self.id_path} was removed from outside")
        topics: tuple[str, ...] = ()
        if not own.is_static:
            topics = tuple(self._watched(paths.BROKER_TOPICS))
        elif not all(member.is_static for member in members.values()):
            topics = tuple(self._zk.children_or_empty(paths.BROKER_TOPICS))
        found = self._own_topics(own.topics(topics))
        self._parents.intersection_update(found)
        return GroupView(
            members,
            topics,
            {name: () if topic is None else topic.partitions for name, topic in found.items()},
            {name: topic.created for name, topic in found.items() if topic is not None},
        )

    def claim(self, wanted: Assignment) -> None:
        """Own all these partitions. If one is taken, PartitionsOwned, and none is claimed; a watch
        calls `on_release` when the other owner releases it."""
        self._make_parents({tp.topic for tp in wanted})
        tps = sorted(wanted)
        owners = [Create(self._owner_path(tp), wanted[tp], ephemeral=True) for tp in tps]
        claimed = 0
        try:
            for portion in portions(owners):
                self._zk.multi([Check(self.id_path, ANY_VERSION), *portion])
                claimed += len(portion)
        except NodeExists as error:
            self.release(tps[:claimed])
            raise self._blocked_by(error.path, wanted) from error
        except NoNode:
            self._parents.clear()  # one of them, or our registration, was removed from outside
            self.release(tps[:claimed])
            raise
        except SessionLost:
            self._uncertain.update(wanted)
            raise

    def release(self, partitions: Collection[TopicPartition]) -> None:
        """Release these partitions; one whose znode is gone counts as released."""
        if not partitions:
            return
        try:
            try:
                self._delete_owners(partitions)
            except NoNode:
                for tp in sorted(partitions):
                    self._release_if_ours(tp)
        except ZooKeeperError:
            self._uncertain.update(partitions)
            raise

    def tidy(self) -> None:
        """Release the partitions that a failed call has left in doubt. Call it before a claim."""
        for tp in sorted(self._uncertain):
            self._release_if_ours(tp)
            self._uncertain.discard(tp)

    def _create_id(self, data: str) -> None:
        # The session of a former process with this id is gone in that time.
        give_up_at = self._runtime.monotonic() + 2 * self._zk.granted_timeout_ms / 1000
        while self._runtime.monotonic() < give_up_at:
            try:
                self._zk.create_ephemeral(self.id_path, data)
                return
            except NodeExists:
                if self._stopping.wait(ID_POLL_MS / 1000):
                    break
        raise ConsumerIdTaken(
            f"{self.id_path} belongs to another live session: two processes use one consumer.id; "
            "give each its own, or none"
        )

    def _members(self) -> dict[str, Subscription]:
        """consumer id → subscription; leaves out a member that leaves meanwhile (its watch
        fires)."""
        ids = self._watched(paths.consumer_ids(self._group))
        by_path = {paths.consumer_id(self._group, i): i for i in ids}
        found = self._registrations.refresh(by_path)
        return {by_path[path]: subscription for path, subscription in found.items()}

    def _own_topics(self, topics: Iterable[str]) -> dict[str, _Topic | None]:
        """Each of these topics; None for one that does not exist yet. Either way the topic's znode
        is watched."""
        by_path = {paths.topic(name): name for name in sorted(topics)}
        found = self._topics.refresh(by_path, absent_too=True)
        return {name: found.get(path) for path, name in by_path.items()}

    def _subscription_of(self, text: str | None) -> Subscription:
        registration = nodes.decode_consumer(text)
        exclude = self._exclude_internal_topics
        return subscription_of(registration, exclude_internal_topics=exclude)

    def _make_parents(self, topics: Collection[str]) -> None:
        for topic in sorted(set(topics) - self._parents):
            self._zk.ensure(paths.owners(self._group, topic))
            self._parents.add(topic)

    def _blocked_by(self, path: str, wanted: Assignment) -> PartitionsOwned:
        """The error for an owner znode that blocks the claim; sets a watch on its release."""
        node = self._zk.watch_data(path, self._released)
        if node is None:
            self._on_release()
            return PartitionsOwned(path, None)
        if node.data in wanted.values():
            # We own it without knowing, or an earlier session of ours does.
            self._uncertain.update(wanted)
        return PartitionsOwned(path, node.data)

    def _delete_owners(self, partitions: Collection[TopicPartition]) -> None:
        deletes = [Delete(self._owner_path(tp)) for tp in sorted(partitions)]
        for portion in portions(deletes):
            self._zk.multi([Check(self.id_path, ANY_VERSION), *portion])

    def _release_if_ours(self, tp: TopicPartition) -> None:
        stat = self._zk.stat(self._owner_path(tp))
        if stat is not None and stat.ephemeral_owner == self._zk.session_id:
            self._delete_owners([tp])

    def _owner_path(self, tp: TopicPartition) -> str:
        return paths.owner(self._group, *tp)

    def _watched(self, path: str) -> list[str]:
        return self._zk.watch_children(path, self._changed)

    def _changed(self, _: str) -> None:
        self._on_change()

    def _released(self, _: str) -> None:
        self._on_release()


def _topic_of(node: Node) -> _Topic:
    return _Topic(tuple(sorted(nodes.decode_assignment(node.data))), node.created_zxid)
