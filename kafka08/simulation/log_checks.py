"""Rules about logs, high watermarks and commits, checked ten times a second and after truncations.

1. A leader's HW never falls within its epoch.
2. The log of each later leader has all messages below an earlier leader's HW.
3. Each member of the ISR has all messages below its leader's HW, with the same bytes. The rest of a
   follower's log is compared in the end.
4. No coordinator has an offset of the group before one whose commit to Kafka was acknowledged.

The checks read the memory of the brokers, between two of their steps. Rules 2 to 4 hold under the
safe profile: under the classic one a log may lose messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kafka08.broker.coordinator.offset_cache import LoadState
from kafka08.broker.partition import Partition
from kafka08.errors import KafkaError
from kafka08.log import Log
from kafka08.log.names import LOG_SUFFIX
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import NO_OFFSET, OFFSETS_TOPIC, TopicPartition

CHECK_SECONDS: Final = 0.1
READ_BYTES: Final = 1 << 30
"""More than a segment has."""


class Leading(NamedTuple):
    """One process's leadership in one epoch."""

    process: str
    tp: TopicPartition
    epoch: int


class Copy(NamedTuple):
    """A follower's log, compared with its leader's."""

    leading: Leading
    follower: str


class LogChecks:
    """group          the name of the group of rule 4
    committed      its acknowledged offsets; changes during the run
    on_violation   called with a sentence that describes a violation
    """

    def __init__(
        self,
        scheduler: Scheduler,
        zookeeper: SimZooKeeper,
        brokers: Sequence[SimBroker],
        group: str,
        committed: Mapping[TopicPartition, int],
        on_violation: Callable[[str], object],
        *,
        is_safe: bool,
    ) -> None:
        self._scheduler = scheduler
        self._zookeeper = zookeeper
        self._brokers = brokers
        self._group = group
        self._group_committed = committed
        self._on_violation = on_violation
        self._is_safe = is_safe
        self._high_watermarks: dict[Leading, int] = {}
        self._committed: dict[TopicPartition, tuple[int, str]] = {}
        """The highest HW, and the process that had it."""
        self._compared: dict[Copy, int] = {}
        """The offset before which both logs were found equal."""
        for broker in brokers:
            broker.disk.on_truncate = self._on_truncate
        self._check_periodically()

    def _check_periodically(self) -> None:
        self._check()
        self._scheduler.call_later(CHECK_SECONDS, self._check_periodically)

    def _on_truncate(self, file: Path) -> None:
        """Check after the step that truncates a log: the next fetch may restore the lost
        messages."""
        if file.suffix == LOG_SUFFIX:
            self._scheduler.call_later(0.0, self._check)

    def _check(self) -> None:
        running = [broker for broker in self._brokers if broker.is_running]
        partitions = {broker: broker.partitions() for broker in running}
        find = self._zookeeper.leader_and_isr
        for broker, found in partitions.items():
            for partition in found:
                if partition.is_leader:
                    self._check_leader(broker, partition)
        for broker, found in partitions.items():
            for partition in found:
                state = find(partition.topic_partition) if partition.is_leader else None
                # A leader that does not know its successor yet cannot commit messages.
                if state is not None and (state.leader, state.leader_epoch) == (
                    broker.id,
                    partition.leader_epoch,
                ):
                    self._check_elected(broker, partition, {*state.isr, *partition.isr})
            self._check_group(broker)

    def _check_leader(self, broker: SimBroker, partition: Partition) -> None:
        """Rule 1."""
        leading = _leading(broker, partition)
        now, before = partition.high_watermark, self._high_watermarks.get(leading, 0)
        if now < before:
            self._on_violation(
                f"{leading.process}: the HW of {leading.tp} fell from {before} to {now} in epoch "
                f"{leading.epoch}"
            )
        self._high_watermarks[leading] = now
        if now > self._committed.get(leading.tp, (0, ""))[0]:
            self._committed[leading.tp] = (now, leading.process)

    def _check_elected(self, broker: SimBroker, partition: Partition, isr: set[int]) -> None:
        """Rules 2 and 3."""
        leading, log = _leading(broker, partition), partition.log
        if log is None:
            return
        committed, where = self._committed.get(leading.tp, (0, ""))
        if self._is_safe and log.log_end_offset < committed:
            self._on_violation(
                f"{leading.process} leads {leading.tp} with log end {log.log_end_offset}, though "
                f"{where} had HW {committed}"
            )
        reading = Reading(broker, log)
        if self._begins_late(broker, leading.tp, log):
            return
        for other in self._brokers:
            if other is broker or other.id not in isr or not other.is_running:
                continue
            copy = other.partition(leading.tp)
            # A broker that has just started has not received a LeaderAndIsr yet.
            if copy is not None and copy.log is not None and copy.leader_epoch >= 0:
                self._check_copy(leading, reading, partition.high_watermark, other, copy.log)

    def _check_copy(
        self, leading: Leading, leaders: Reading, end: int, other: SimBroker, copy: Log
    ) -> None:
        assert other.process is not None
        if copy.log_end_offset < end:
            if self._is_safe:
                self._on_violation(
                    f"{leading.process}: the HW of {leading.tp} is {end}, but {other.process.name}"
                    f", which is in the ISR, ends at {copy.log_end_offset}"
                )
            return
        if self._begins_late(other, leading.tp, copy):
            return
        key = Copy(leading, other.process.name)
        start = self._compared.get(key, 0)
        if not self._is_safe or start >= end:
            return
        try:
            same = leaders.entries(start, end) == Reading(other, copy).entries(start, end)
        except KafkaError as error:
            self._on_violation(f"{leading.tp}, offsets {start} to {end} cannot be read: {error}")
            return
        if not same:
            self._on_violation(
                f"{leading.tp}, offsets {start} to {end}: {leading.process}, which leads, and "
                f"{other.process.name}, which is in the ISR, have different messages"
            )
        self._compared[key] = end

    def _begins_late(self, broker: SimBroker, tp: TopicPartition, log: Log) -> bool:
        """Whether a log has lost its first messages: no run deletes any by retention."""
        if log.log_start_offset and self._is_safe:
            assert broker.process is not None
            self._on_violation(
                f"{broker.process.name}: the log of {tp} begins at {log.log_start_offset}"
            )
        return log.log_start_offset > 0

    def _check_group(self, broker: SimBroker) -> None:
        """Rule 4."""
        manager = broker.offset_manager()
        if not (self._is_safe and self._group_committed) or manager is None:
            return
        number = manager.partition_for(self._group)
        tp = TopicPartition(OFFSETS_TOPIC, number)
        partition, state = broker.partition(tp), self._zookeeper.leader_and_isr(tp)
        if (
            partition is None
            or state is None
            or (state.leader, state.leader_epoch) != (broker.id, partition.leader_epoch)
            or manager.state(number) is not LoadState.LOADED
        ):
            return
        assert broker.process is not None
        found = manager.of_group(self._group)
        for of, committed in self._group_committed.items():
            offset = found[of].offset if of in found else NO_OFFSET
            if offset < committed:
                self._on_violation(
                    f"{broker.process.name}: the group's offset of {of} is {offset}, though "
                    f"{committed} was committed"
                )


def _leading(broker: SimBroker, partition: Partition) -> Leading:
    assert broker.process is not None
    return Leading(broker.process.name, partition.topic_partition, partition.leader_epoch)


class Reading:
    """The entries of one log, read once for all comparisons of one check."""

    def __init__(self, broker: SimBroker, log: Log) -> None:
        self._broker = broker
        self._log = log
        self._found: dict[tuple[int, int], bytes] = {}

    def entries(self, start: int, end: int) -> bytes:
        """The entries of [start, end)."""
        if (start, end) not in self._found:
            with self._broker.disk.without_faults():
                self._found[start, end] = _bytes(self._log, start, end)
        return self._found[start, end]


def _bytes(log: Log, start: int, end: int) -> bytes:
    found = b""
    bases = [*(segment.base_offset for segment in log.sealed_segments), log.active_base_offset]
    while start < end:
        part = log.read(start, READ_BYTES, end)
        found += part.bytes()
        start = min((base for base in bases if base > part.segment_base_offset), default=end)
    return found
