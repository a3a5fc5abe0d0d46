"""ZooKeeperGroupHistory: the rules of `group_history` for a group of ConsumerConnectors, and some
that need a look at ZooKeeper.

1. At any time one member receives messages of a partition: the one that owns its znode.
2. A claim begins at the committed offset: in ZooKeeper at exactly this one, in Kafka at none before
   those whose commits had been acknowledged to the owner. With both stores at the larger offset.
3. An offset in ZooKeeper is at most the first message that no member has processed.
4. A member that stops commits what it has finished, unless the commit fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from kafka08.client.requests import StorageName
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.group_history import GroupHistory
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import NO_OFFSET, OFFSETS_TOPIC, TopicPartition
from kafka08.zk import nodes, paths

GROUP = "g"


class ZooKeeperGroupHistory(GroupHistory):
    """is_exact   whether the group's offsets are in ZooKeeper alone, all the time"""

    def __init__(
        self,
        zookeeper: SimZooKeeper,
        brokers: Sequence[SimBroker],
        on_violation: Callable[[str], object],
        *,
        is_safe: bool,
        is_exact: bool = False,
    ) -> None:
        super().__init__(on_violation, is_safe=is_safe)
        self._zookeeper = zookeeper
        self._brokers = brokers
        self._is_exact = is_exact

    def claimed(self, member: str, offsets: Mapping[TopicPartition, int]) -> None:
        """A member owns these partitions from now on, and begins at these offsets; NO_OFFSET: at
        the first message."""
        self.assigned(member, offsets)
        for tp, offset in offsets.items():
            self._next[member][tp] = max(offset, 0)
            self._floors[member][tp] = 0  # `found` compares with what was committed
            if self._is_exact and self._is_safe and offset != (stored := self._in_zookeeper(tp)):
                self._on_violation(
                    f"{member} begins {tp} at {offset}, though ZooKeeper has offset {stored}"
                )

    def handed(self, member: str, tp: TopicPartition, offset: int) -> None:
        owner = self.owner(tp)
        if owner != member:
            self._on_violation(f"{member} was handed {tp} offset {offset}, which {owner} owns")
        else:
            super().handed(member, tp, offset)

    def least_offsets(self) -> dict[TopicPartition, int]:
        """The least offsets that a member may find when it asks the coordinator for them now. Empty
        if a former coordinator, which does not know that yet, may respond."""
        if not self._is_safe or self._has_former_coordinator():
            return {}
        return dict(self.committed_offsets)

    def found(
        self,
        member: str,
        offsets: Mapping[TopicPartition, int],
        least: Mapping[TopicPartition, int],
    ) -> None:
        """A member has asked the coordinator, and begins at these offsets. `least`: see
        `least_offsets`, from before it asked."""
        for tp, offset in offsets.items():
            if offset < least.get(tp, NO_OFFSET):
                self._on_violation(
                    f"{member} begins {tp} at {offset}, though {least[tp]} was committed, "
                    f"{self.last_commit(tp)}"
                )

    def starts(
        self,
        member: str,
        offsets: Mapping[TopicPartition, int],
        in_stores: Mapping[StorageName, Mapping[TopicPartition, int]],
    ) -> None:
        """A member has claimed partitions and begins at `offsets`; its stores have returned
        `in_stores`."""
        for tp, offset in offsets.items():
            found = {name: of.get(tp, NO_OFFSET) for name, of in in_stores.items()}
            if offset != max(found.values(), default=offset):
                self._on_violation(f"{member} begins {tp} at {offset}, though it has found {found}")

    def stored(self, writer: str, tp: TopicPartition, offset: int) -> None:
        """The offset was written to ZooKeeper."""
        self._check_commit(writer, tp, offset)

    def stopped(
        self,
        member: str,
        finished: Mapping[TopicPartition, int],
        committed: Mapping[TopicPartition, int],
    ) -> None:
        """A member has shut down; no commit of it failed meanwhile. `finished`: the first offset of
        each partition that it had not finished."""
        for tp, offset in finished.items():
            if self._is_safe and committed.get(tp, NO_OFFSET) < offset:
                self._on_violation(
                    f"{member} has stopped and finished {tp} before {offset}, but committed "
                    f"{committed.get(tp)}"
                )

    def uneven(self, members: int, partitions: Sequence[TopicPartition]) -> str:
        """How the assignment differs from what 0.8.2.2's range assignor gives so many members with
        one stream each; "" if it does not. The first members by name get one partition more."""
        counts = Counter(self._thread(tp) for tp in partitions)
        each, more = divmod(len(partitions), members)
        due = [each + (place < more) for place in range(members)]
        found = [counts[name] for name in sorted(name or "" for name in counts)]
        return "" if found == [count for count in due if count] else f"{dict(counts)}"

    def owner(self, tp: TopicPartition) -> str | None:
        """The member that owns the partition in ZooKeeper. A former one may have started from an
        offset before a commit that is acknowledged late."""
        thread = self._thread(tp)
        return None if thread is None else thread.rpartition("-")[0]

    def _thread(self, tp: TopicPartition) -> str | None:
        """The thread id that owns the partition in ZooKeeper."""
        node = self._zookeeper.server.find(paths.owner(GROUP, tp.topic, tp.partition))
        return None if node is None or node.data is None else node.data.decode()

    def _in_zookeeper(self, tp: TopicPartition) -> int:
        node = self._zookeeper.server.find(paths.offset(GROUP, tp.topic, tp.partition))
        return (
            NO_OFFSET
            if node is None or node.data is None
            else nodes.decode_offset(node.data.decode())
        )

    def _has_former_coordinator(self) -> bool:
        """Whether a broker leads a partition of the offsets topic, but not in ZooKeeper."""
        return any(
            partition.is_leader
            and partition.topic_partition.topic == OFFSETS_TOPIC
            and (state := self._zookeeper.leader_and_isr(partition.topic_partition)) is not None
            and state.leader != broker.id
            for broker in self._brokers
            for partition in broker.partitions()
        )
