"""A member of a ZooKeeper group in a run: it uses its ConsumerConnector in random ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Self

from kafka08.client.requests import StorageName
from kafka08.consumer.zookeeper.config import ConsumerConfig
from kafka08.consumer.zookeeper.connector import ConsumerConnector
from kafka08.consumer.zookeeper.kafka_stream import KafkaStream
from kafka08.consumer.zookeeper.member import ZooKeeperMember
from kafka08.consumer.zookeeper.member_storage import MemberStorage
from kafka08.consumer.zookeeper.offset_store import KafkaOffsetStore
from kafka08.consumer.zookeeper.ownership import Ownership
from kafka08.consumer.zookeeper.rebalancer import Rebalancer
from kafka08.errors import ApiError, ConsumerTimeout, KafkaError
from kafka08.simulation.polling_member import BATCH_MESSAGES, WORK_S, WorkFailed
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.workload import POLL_S, TIMEOUT_MS, TOPIC, Target, checked_value
from kafka08.simulation.zookeeper_group_history import GROUP, ZooKeeperGroupHistory
from kafka08.structs import NO_OFFSET, TopicPartition

WHIMS: Final = 3
"""How often a member leaves the group, or fails: each time the others wait for a rebalance, and one
that begins again every hundred messages would never catch up."""
BY_HAND: Final = 20
"""A member that commits by hand does so after so many messages."""
IDLE_COMMITS: Final = 0.1
"""How often it does so when no message comes."""


@dataclass(frozen=True, slots=True)
class ConnectorHabits:
    """in_batches      whether it reads batches instead of single messages
    by_hand         whether it commits by hand instead of automatically
    work_seconds    the work for a message
    long_work       the share of messages with `long_seconds` of work
    leaves          the share of messages after which it leaves the group, and comes back
    fails           the share of messages whose work fails: it leaves without having finished it
    """

    in_batches: bool
    by_hand: bool
    work_seconds: float
    long_work: float
    long_seconds: float
    leaves: float
    fails: float

    @classmethod
    def draw(cls, random: Random, *, long_seconds: float) -> Self:
        return cls(
            in_batches=random.random() < 0.3,
            by_hand=random.random() < 0.3,
            work_seconds=random.choice([0.0, 0.001, 0.05, 0.2]),
            long_work=random.choice([0.0, 0.0, 0.001]),
            long_seconds=long_seconds,
            leaves=random.choice([0.0, 0.0, 0.01]),
            fails=random.choice([0.0, 0.0, 0.01]),
        )


class WatchedMember(ZooKeeperMember):
    """A member whose claims, commits, and offsets from Kafka are noted.

    committed   the offsets of its commits that did not fail, of the partitions that it owns
    is_sure     False once a commit has failed, or the session was lost
    """

    def __init__(
        self, config: ConsumerConfig, runtime: SimClientRuntime, history: ZooKeeperGroupHistory
    ) -> None:
        super().__init__(config, False, runtime)
        self._history = history
        self.committed: dict[TopicPartition, int] = {}
        self.is_sure = True
        self._in_stores: dict[StorageName, dict[TopicPartition, int]] = {}
        """What its stores have returned for the last claim."""
        self.on_claim: Callable[[Collection[TopicPartition]], object] = lambda _: None

    def _make_rebalancer(self, subscription: Any) -> Rebalancer:
        rebalancer = super()._make_rebalancer(subscription)
        assert self._ownership is not None
        self._watch(self._ownership)
        return rebalancer

    def _watch(self, ownership: Ownership) -> None:
        history, member = self._history, self.consumer_id
        take, give_up, drop = ownership.take, ownership.give_up, ownership.drop
        commit, commit_once = ownership.commit, ownership._commit
        fetch_committed = ownership.fetch_committed

        def taken(partitions: Any) -> None:
            offsets = {p.topic_partition: p.consumed_offset for p in partitions}
            for tp in offsets:
                self.committed.pop(tp, None)
            history.claimed(member, offsets)
            self.on_claim(offsets.keys())
            take(partitions)

        def given_up(
            partitions: Collection[TopicPartition],
            *,
            commit: bool,
            on_revoked: Callable[[], object] = lambda: None,
        ) -> None:
            give_up(partitions, commit=commit, on_revoked=on_revoked)
            history.revoked(member, partitions)

        def dropped() -> None:
            self.is_sure = False
            drop()
            history.revoked(member, self._history.partitions_of(member))

        def noted(offsets: Mapping[TopicPartition, int]) -> None:
            try:
                commit_once(dict(offsets))
            except KafkaError:
                self.is_sure = False
                raise
            self.committed.update(offsets)

        def asked(offsets: Mapping[TopicPartition, int] | None = None, **how: int) -> None:
            try:
                commit(offsets, **how)
            except KafkaError:
                self.is_sure = False
                raise

        def fetched(partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
            self._in_stores.clear()
            offsets = fetch_committed(partitions)
            history.starts(member, offsets, self._in_stores)
            return offsets

        for name, call in {
            "fetch_committed": fetched,
            "take": taken,
            "give_up": given_up,
            "drop": dropped,
            "_commit": noted,
            "commit": asked,
        }.items():
            setattr(ownership, name, call)

    def _member_storage(self, id_path: str) -> MemberStorage:
        storage = super()._member_storage(id_path)
        store = storage._zookeeper
        fetch = store.fetch

        def found(partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
            offsets = self._in_stores["zookeeper"] = fetch(partitions)
            return offsets

        store.fetch = found  # type: ignore[method-assign]
        return storage

    def _kafka_store(self) -> KafkaOffsetStore:
        store = super()._kafka_store()
        commit_each, fetch_once = store.commit_each, store.fetch_once

        def noted(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, ApiError]:
            refused = commit_each(offsets)
            stored = {
                tp: offset
                for tp, offset in offsets.items()
                if offset != NO_OFFSET and tp not in refused  # NO_OFFSET is never sent
            }
            self._history.committed(self.consumer_id, stored)
            return refused

        def found(
            partitions: Collection[TopicPartition], give_up_at: float = float("inf")
        ) -> dict[TopicPartition, int]:
            least = self._history.least_offsets()
            offsets = self._in_stores["kafka"] = fetch_once(partitions, give_up_at)
            self._history.found(self.consumer_id, offsets, least)
            return offsets

        store.commit_each = noted  # type: ignore[method-assign]
        store.fetch_once = found  # type: ignore[method-assign]
        return store


class WatchedConnector(ConsumerConnector):
    """A connector with such a member."""

    watched: WatchedMember

    def __init__(
        self, config: ConsumerConfig, runtime: SimClientRuntime, history: ZooKeeperGroupHistory
    ) -> None:
        self._history = history
        super().__init__(config, runtime=runtime)

    def _make_member(
        self, config: ConsumerConfig, _: bool, runtime: SimClientRuntime
    ) -> ZooKeeperMember:
        self.watched = WatchedMember(config, runtime, self._history)
        return self.watched


class ConnectorMember:
    """One member of the group, which reads until `end` is called."""

    def __init__(
        self,
        runtime: SimClientRuntime,
        target: Target,
        history: ZooKeeperGroupHistory,
        storage: StorageName,
        habits: ConnectorHabits,
        others: Sequence[str] = (),
    ) -> None:
        """`others`: further topics that it reads, without work."""
        self.runtime = runtime
        self.is_ending = False
        self.has_ended = False
        self._history = history
        self._habits = habits
        self._others = others
        self._work_left = WORK_S
        self._whims_left = WHIMS
        self._config = ConsumerConfig(
            {
                "group.id": GROUP,
                "zookeeper.connect": target.zookeeper,
                "auto.offset.reset": "smallest",
                "auto.commit.enable": not habits.by_hand,
                "auto.commit.interval.ms": runtime.random.choice([100, 1000]),
                "offsets.storage": storage,
                # A group with offsets in Kafka may be on its way there.
                "dual.commit.enabled": storage == "kafka" and runtime.random.random() < 0.3,
                "consumer.timeout.ms": 200,
                "fetch.wait.max.ms": runtime.random.choice([100, 1000]),
                "socket.timeout.ms": TIMEOUT_MS,
                "offsets.channel.socket.timeout.ms": TIMEOUT_MS,
                "zookeeper.session.timeout.ms": runtime.random.choice([4000, 6000]),
                "rebalance.backoff.ms": runtime.random.choice([200, 2000]),
            }
        )

    def run(self) -> None:
        while not self.is_ending:
            try:
                connector = WatchedConnector(self._config, self.runtime, self._history)
            except KafkaError:
                self.runtime.sleep(POLL_S)
                continue
            use = _Use(self, connector, self._habits, self._history, self._others)
            try:
                use.read()
            except (KafkaError, WorkFailed):
                self.runtime.sleep(POLL_S)
            finally:
                use.stop()
        self.has_ended = True

    def end(self) -> None:
        self.is_ending = True

    def keep_calm(self) -> None:
        """Let it stay in the group from now on."""
        self._whims_left = 0

    def work(self, *, is_long: bool) -> None:
        """Work for a message, but not beyond the limit of all work: the run must end."""
        habits = self._habits
        seconds = habits.long_seconds if is_long else habits.work_seconds
        if seconds and self._work_left > 0:
            self._work_left -= seconds
            self.runtime.sleep(seconds)

    def leaves(self) -> bool:
        """Whether it leaves the group now."""
        return self._has_whim(self._habits.leaves)

    def fails(self) -> bool:
        """Whether the work for a message fails."""
        return self._has_whim(self._habits.fails)

    def _has_whim(self, share: float) -> bool:
        if not self._whims_left or self.runtime.random.random() >= share:
            return False
        self._whims_left -= 1
        return True


class _Use:
    """One connector, until it is shut down."""

    def __init__(
        self,
        member: ConnectorMember,
        connector: WatchedConnector,
        habits: ConnectorHabits,
        history: ZooKeeperGroupHistory,
        others: Sequence[str],
    ) -> None:
        self._member = member
        self._connector = connector
        self._habits = habits
        self._history = history
        self._others = others
        self._has_stopped = False
        self._random = member.runtime.random
        self._name = connector.consumer_id
        self._current: tuple[TopicPartition, int] | None = None
        """The partition of the messages in work, and the offset after them."""
        self._finished: dict[TopicPartition, int] = {}
        """The first offset that it has not finished, since it claimed the partition."""
        self._since_commit = 0
        self._claims: Counter[TopicPartition] = Counter()
        """How often this connector has claimed each partition."""
        connector.watched.on_claim = self._forget

    def read(self) -> None:
        """Read until the member must end or leaves. Raises what a stream raises, and WorkFailed."""
        streams = self._connector.create_message_streams(dict.fromkeys([TOPIC, *self._others], 1))
        for topic in self._others:
            self._member.runtime.spawn(self._read_other, *streams[topic], name=topic)
        [stream] = streams[TOPIC]
        while not self._member.is_ending:
            try:
                if self._habits.in_batches:
                    self._read_batches(stream)
                else:
                    self._read_messages(stream)
                return
            except ConsumerTimeout:
                # A log that has lost messages may have moved the position back.
                self._since_commit += self._random.random() < IDLE_COMMITS
                self._commit_by_hand(0)

    def _read_other(self, stream: KafkaStream[bytes, bytes]) -> None:
        """Read the stream of another topic until the connector is shut down."""
        while not self._has_stopped:
            try:
                for message in stream:
                    checked_value(message)
                    tp = TopicPartition(message.topic, message.partition)
                    self._history.handed(self._name, tp, message.offset)
                    self._history.processed(tp, message.offset)
                return
            except ConsumerTimeout:
                pass
            except KafkaError:
                self._member.runtime.sleep(POLL_S)

    def _read_messages(self, stream: KafkaStream[bytes, bytes]) -> None:
        for message in stream:
            checked_value(message)
            tp = TopicPartition(message.topic, message.partition)
            self._process(tp, [message.offset])
            if self._member.is_ending or self._member.leaves():
                return

    def _read_batches(self, stream: KafkaStream[bytes, bytes]) -> None:
        for batch in stream.batches(BATCH_MESSAGES):
            self._process(batch.topic_partition, list(batch.offsets))
            if self._member.is_ending or self._member.leaves():
                return

    def _process(self, tp: TopicPartition, offsets: list[int]) -> None:
        """Work on messages that the member has just received."""
        if self._current is not None:
            self._finished[self._current[0]] = self._current[1]
            self._current = None
        claims = self._claims[tp]
        for offset in offsets:
            self._history.handed(self._name, tp, offset)
        for offset in offsets:
            self._member.work(is_long=self._random.random() < self._habits.long_work)
            if self._member.fails():
                raise WorkFailed
            self._history.processed(tp, offset)
        if claims == self._claims[tp]:  # else they were handed out in an earlier ownership
            self._current = (tp, offsets[-1] + 1)
        self._since_commit += len(offsets)
        self._commit_by_hand(BY_HAND)

    def _commit_by_hand(self, least: int) -> None:
        """Commit if it does so by hand, and has read more than so many messages since."""
        if self._habits.by_hand and self._since_commit > least:
            self._since_commit = 0
            current = self._current if self._random.random() < 0.5 else None
            try:
                self._connector.commit_offsets(None if current is None else dict([current]))
            except (KafkaError, ValueError):  # the partition may belong to another member by now
                self._since_commit = 1  # once more when no message comes

    def _forget(self, claimed: Collection[TopicPartition]) -> None:
        self._claims.update(claimed)
        for tp in claimed:
            self._finished.pop(tp, None)
        if self._current is not None and self._current[0] in claimed:
            self._current = None  # it begins again at the committed offset

    def stop(self) -> None:
        connector, owned = self._connector, self._connector.assignment
        finished = {tp: offset for tp, offset in self._finished.items() if tp in owned}
        watched = connector.watched
        watched.is_sure = True
        self._has_stopped = True
        connector.shutdown()
        self._history.revoked(self._name, self._history.partitions_of(self._name))
        if watched.is_sure and not self._habits.by_hand:
            self._history.stopped(self._name, finished, watched.committed)
