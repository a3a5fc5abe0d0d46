"""Rules about logs, high watermarks and commits, looked at again and again while a run goes on.

1. A leader's HW never falls within its epoch.
2. HW and log end: what was below a leader's HW is in the log of each later leader (safe profile).
3. Each member of the ISR has what is below its leader's HW, and the same bytes. The rest of a
   follower's log is compared in the end.
4. An offset that a group committed in Kafka never falls (safe profile).

What is looked at is what the brokers have in memory, between two of their steps. The limits of rule
2 are also those of the profile: under the classic one a log may lose messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kafka08.broker.coordinator.offset_cache import LoadState
from kafka08.broker.partition import Partition
from kafka08.log import Log
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import OFFSETS_TOPIC, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths

LOOK_SECONDS: Final = 0.1
READ_BYTES: Final = 1 << 30
"""More than a segment has."""


class Leading(NamedTuple):
    """One epoch of one process."""

    process: str
    tp: TopicPartition
    epoch: int


class Copy(NamedTuple):
    """A follower's log beside its leader's."""

    leading: Leading
    follower: str


class LogChecks:
    """wrong   told of a rule that was broken, in a sentence"""

    def __init__(
        self,
        scheduler: Scheduler,
        zookeeper: SimZooKeeper,
        brokers: Sequence[SimBroker],
        group: str,
        wrong: Callable[[str], object],
        *,
        is_safe: bool,
    ) -> None:
        self._scheduler = scheduler
        self._zookeeper = zookeeper
        self._brokers = brokers
        self._group = group
        self._wrong = wrong
        self._is_safe = is_safe
        self._high_watermarks: dict[Leading, int] = {}
        self._committed: dict[TopicPartition, tuple[int, str]] = {}
        """The highest HW, and which process had it."""
        self._compared: dict[Copy, int] = {}
        """Up to which offset both logs are known to be the same."""
        self._group_offsets: dict[TopicPartition, tuple[int, str]] = {}
        self._look_later()

    def _look_later(self) -> None:
        self._scheduler.call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        running = [broker for broker in self._brokers if broker.is_running]
        partitions = {broker: broker.partitions() for broker in running}
        for broker, found in partitions.items():
            for partition in found:
                if partition.is_leader:
                    self._look_at_leader(broker, partition)
        for broker, found in partitions.items():
            for partition in found:
                state = self._state(partition.topic_partition) if partition.is_leader else None
                # A leader that was replaced and does not know it decides nothing.
                if state is not None and (state.leader, state.leader_epoch) == (
                    broker.id,
                    partition.leader_epoch,
                ):
                    self._look_at_elected(broker, partition, {*state.isr, *partition.isr})
            self._look_at_group(broker)
        self._look_later()

    def _look_at_leader(self, broker: SimBroker, partition: Partition) -> None:
        """Rule 1."""
        leading = _leading(broker, partition)
        now, before = partition.high_watermark, self._high_watermarks.get(leading, 0)
        if now < before:
            self._wrong(
                f"{leading.process}: the HW of {leading.tp} fell from {before} to {now} in epoch "
                f"{leading.epoch}"
            )
        self._high_watermarks[leading] = now
        if now > self._committed.get(leading.tp, (0, ""))[0]:
            self._committed[leading.tp] = (now, leading.process)

    def _look_at_elected(self, broker: SimBroker, partition: Partition, isr: set[int]) -> None:
        """Rules 2 and 3."""
        leading, log = _leading(broker, partition), partition.log
        if log is None:
            return
        committed, where = self._committed.get(leading.tp, (0, ""))
        if self._is_safe and log.log_end_offset < committed:
            self._wrong(
                f"{leading.process} leads {leading.tp} with log end {log.log_end_offset}, though "
                f"{where} had HW {committed}"
            )
        for other in self._brokers:
            if other is broker or other.id not in isr or not other.is_running:
                continue
            copy = other.partition(leading.tp)
            # One that has just started has not heard of its part yet.
            if copy is not None and copy.log is not None and copy.leader_epoch >= 0:
                self._look_at_copy(leading, broker, partition, other, copy)

    def _look_at_copy(
        self,
        leading: Leading,
        broker: SimBroker,
        partition: Partition,
        other: SimBroker,
        copy: Partition,
    ) -> None:
        assert partition.log is not None
        assert copy.log is not None
        assert other.process is not None
        end = partition.high_watermark
        if copy.log.log_end_offset < end:
            if self._is_safe:
                self._wrong(
                    f"{leading.process}: the HW of {leading.tp} is {end}, but {other.process.name}"
                    f", which is in the ISR, ends at {copy.log.log_end_offset}"
                )
            return
        key = Copy(leading, other.process.name)
        start = self._compared.get(key, 0)
        if not self._is_safe:
            return
        with broker.disk.looked_at():
            ours = _bytes(partition.log, start, end)
        with other.disk.looked_at():
            theirs = _bytes(copy.log, start, end)
        if ours != theirs:
            self._wrong(
                f"{leading.tp}, offsets {start} to {end}: {leading.process}, which leads, and "
                f"{other.process.name}, which is in the ISR, have different messages"
            )
        self._compared[key] = max(start, end)

    def _look_at_group(self, broker: SimBroker) -> None:
        """Rule 4."""
        manager = broker.offset_manager()
        if not self._is_safe or manager is None:
            return
        number = manager.partition_for(self._group)
        tp = TopicPartition(OFFSETS_TOPIC, number)
        partition, state = broker.partition(tp), self._state(tp)
        if (
            partition is None
            or state is None
            or (state.leader, state.leader_epoch) != (broker.id, partition.leader_epoch)
            or manager.state(number) is not LoadState.LOADED
        ):
            return
        assert broker.process is not None
        for of, found in manager.of_group(self._group).items():
            before, where = self._group_offsets.get(of, (-1, ""))
            if found.offset < before:
                self._wrong(
                    f"{broker.process.name}: the group's offset of {of} is {found.offset}, at "
                    f"{where} it was {before}"
                )
            self._group_offsets[of] = (found.offset, broker.process.name)

    def _state(self, tp: TopicPartition) -> LeaderAndIsr | None:
        znode = self._zookeeper.server.find(paths.partition_state(tp.topic, tp.partition))
        if znode is None or znode.data is None:
            return None
        return nodes.decode_leader_and_isr(znode.data.decode(), znode.version)


def _leading(broker: SimBroker, partition: Partition) -> Leading:
    assert broker.process is not None
    return Leading(broker.process.name, partition.topic_partition, partition.leader_epoch)


def _bytes(log: Log, start: int, end: int) -> bytes:
    """The entries of [start, end)."""
    found = b""
    bases = [*(segment.base_offset for segment in log.sealed_segments), log.active_base_offset]
    while start < end:
        part = log.read(start, READ_BYTES, end)
        found += part.bytes()
        start = min((base for base in bases if base > part.segment_base_offset), default=end)
    return found
