"""Rules about logs, high watermarks and commits, checked ten times a second, after truncations and
after each new ISR: a follower that joins too early lacks messages for a few milliseconds only.

1. A leader's HW never falls within its epoch.
2. The log of each later leader has all messages below an earlier leader's HW.
3. Each member of the ISR has all messages below its leader's HW, with the same bytes, which are
   compared once a second and after truncations. The rest of a follower's log is compared in the
   end.
4. No coordinator has an offset of the group before one whose commit to Kafka was acknowledged.
5. A message that a producer was told is stored is in the logs of two brokers, if its topic has two
   replicas: no later fault is needed to show that one of them lacks it.

The checks read the memory of the brokers, between two of their steps. Rules 2 to 5 hold under the
safe profile: under the classic one a log may lose messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from kafka08.broker.groups.offset_cache import LoadState
from kafka08.broker.replica.partition import Partition
from kafka08.errors import KafkaError
from kafka08.log.log import Log
from kafka08.log.names import LOG_SUFFIX
from kafka08.protocol import message_set
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.group_history import GroupHistory
from kafka08.simulation.kept_topic import TP as KEPT
from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import INTERNAL_TOPICS, OFFSETS_TOPIC, TopicPartition

CHECK_S: Final = 0.1
CHECKS_WITH_MESSAGES: Final = 10
"""One in so many also compares messages, which takes long. Each epoch compares all again."""
READ_BYTES: Final = 1 << 30
"""More than a segment has."""


@dataclass(slots=True, eq=False)
class Leadership:
    """One process's leadership of a partition, in one epoch.

    high_watermark   the highest that it had
    compared         follower → the offset before which its log was found equal
    """

    process: Process
    epoch: int
    high_watermark: int = 0
    compared: dict[Process, int] = field(default_factory=dict)


class Leader(NamedTuple):
    """A leader as a check finds it."""

    broker: SimBroker
    partition: Partition
    leadership: Leadership


class LogChecks:
    """group          the name of the group of rule 4
    committed      its acknowledged offsets; changes during the run
    replication_factor   of the producers' topic
    on_violation   called with a sentence that describes a violation
    """

    def __init__(
        self,
        scheduler: Scheduler,
        zookeeper: SimZooKeeper,
        brokers: Sequence[SimBroker],
        group: str,
        group_history: GroupHistory,
        on_violation: Callable[[str], object],
        *,
        replication_factor: int,
        is_safe: bool,
    ) -> None:
        self._replication_factor = replication_factor
        self._scheduler = scheduler
        self._zookeeper = zookeeper
        self._brokers = brokers
        self._group = group
        self._group_history = group_history
        self._group_committed = group_history.committed_offsets
        self._on_violation = on_violation
        self._is_safe = is_safe
        self._leaderships: dict[tuple[SimBroker, TopicPartition], Leadership] = {}
        self._committed: dict[TopicPartition, tuple[int, str]] = {}
        """The highest HW, and the process that had it."""
        self._checks = 0
        for broker in brokers:
            broker.disk.on_truncate = self._on_truncate
        self._check_periodically()

    def _check_periodically(self) -> None:
        self._check(with_messages=self._checks % CHECKS_WITH_MESSAGES == 0)
        self._checks += 1
        self._scheduler.call_later(CHECK_S, self._check_periodically)

    def check_isrs(self) -> None:
        """Check whether all members of the ISRs have what they must have."""
        self._check(with_messages=False)

    def check_stored(self, producer: str, tp: TopicPartition, offset: int) -> None:
        """Rule 5: a producer with acks=all has just been told that a message is at this offset."""
        having = [broker.host for broker in self._brokers if broker.log_end(tp) > offset]
        if self._is_safe and len(having) < min(2, self._replication_factor):
            self._on_violation(
                f"{producer} was told that {tp} offset {offset} is stored, but only "
                f"{' and '.join(having) or 'no broker'} has it"
            )

    def forget(self, tp: TopicPartition) -> None:
        """Its topic is deleted: the next one of that name begins again."""
        self._committed.pop(tp, None)
        for key in [key for key in self._leaderships if key[1] == tp]:
            del self._leaderships[key]

    def _on_truncate(self, file: Path) -> None:
        """Check after the step that truncates a log: the next fetch may restore the lost
        messages."""
        if file.suffix == LOG_SUFFIX:
            self._scheduler.call_later(0.0, partial(self._check, with_messages=True))

    def _check(self, *, with_messages: bool) -> None:
        running = [broker for broker in self._brokers if broker.is_running]
        leaders = [
            Leader(broker, partition, self._leadership(broker, partition))
            for broker in running
            for partition in broker.partitions()
            if partition.is_leader
        ]
        for leader in leaders:
            self._check_leader(leader)
        for leader in leaders:
            state = self._zookeeper.leader_and_isr(leader.partition.topic_partition)
            # A leader that does not know its successor yet cannot commit messages.
            if (
                state is not None
                and state.leader == leader.broker.id
                and state.leader_epoch == leader.leadership.epoch
            ):
                isr = {*state.isr, *leader.partition.isr}
                self._check_elected(leader, isr, with_messages=with_messages)
        if self._is_safe and self._group_committed:
            for broker in running:
                self._check_group(broker)

    def _leadership(self, broker: SimBroker, partition: Partition) -> Leadership:
        key, process = (broker, partition.topic_partition), broker.process
        assert process is not None
        known = self._leaderships.get(key)
        if known is None or known.epoch != partition.leader_epoch or known.process is not process:
            known = self._leaderships[key] = Leadership(process, partition.leader_epoch)
        return known

    def _check_leader(self, leader: Leader) -> None:
        """Rule 1."""
        _, partition, leadership = leader
        now, before = partition.high_watermark, leadership.high_watermark
        if now == before:
            return
        tp, name = partition.topic_partition, leadership.process.name
        if now < before:
            self._on_violation(
                f"{name}: the HW of {tp} fell from {before} to {now} in epoch {leadership.epoch}"
            )
        leadership.high_watermark = now
        if now > self._committed.get(tp, (0, ""))[0]:
            self._committed[tp] = (now, name)

    def _check_elected(self, leader: Leader, isr: set[int], *, with_messages: bool) -> None:
        """Rules 2 and 3."""
        broker, partition, leadership = leader
        tp, log = partition.topic_partition, partition.log
        if log is None:
            return
        committed, where = self._committed.get(tp, (0, ""))
        if self._is_safe and log.log_end_offset < committed:
            self._on_violation(
                f"{leadership.process.name} leads {tp} with log end {log.log_end_offset}, though "
                f"{where} had HW {committed}"
            )
        if self._begins_late(broker, tp, log):
            return
        reading = Reading(broker, log) if with_messages and self._is_safe else None
        for other in self._brokers:
            if other is broker or other.id not in isr or not other.is_running:
                continue
            copy = other.partition(tp)
            # A broker that has just started has not received a LeaderAndIsr yet.
            if copy is not None and copy.log is not None and copy.leader_epoch >= 0:
                self._check_copy(leader, reading, other, copy.log)

    def _check_copy(
        self, leader: Leader, leaders: Reading | None, other: SimBroker, copy: Log
    ) -> None:
        """`leaders`: what to compare the messages with; None: check the end of the log alone."""
        _, partition, leadership = leader
        process, tp, end = other.process, partition.topic_partition, partition.high_watermark
        assert process is not None
        if copy.log_end_offset < end:
            if self._is_safe:
                self._on_violation(
                    f"{leadership.process.name}: the HW of {tp} is {end}, but {process.name}, "
                    f"which is in the ISR, ends at {copy.log_end_offset}"
                )
            return
        if self._begins_late(other, tp, copy) or leaders is None:
            return
        start = leadership.compared.get(process, 0)
        if start >= end:
            return
        try:
            same = agree(
                leaders.entries(start, end),
                Reading(other, copy).entries(start, end),
                is_compacted=tp.topic in {*INTERNAL_TOPICS, KEPT.topic},
            )
        except KafkaError as error:
            self._on_violation(f"{tp}, offsets {start} to {end} cannot be read: {error}")
            return
        if not same:
            self._on_violation(
                f"{tp}, offsets {start} to {end}: {leadership.process.name}, which leads, and "
                f"{process.name}, which is in the ISR, have different messages"
            )
        leadership.compared[process] = end

    def _begins_late(self, broker: SimBroker, tp: TopicPartition, log: Log) -> bool:
        """Whether a log has lost its first messages, which retention deletes in one topic alone."""
        if log.log_start_offset and self._is_safe and tp != KEPT:
            assert broker.process is not None
            self._on_violation(
                f"{broker.process.name}: the log of {tp} begins at {log.log_start_offset}"
            )
        return log.log_start_offset > 0

    def _check_group(self, broker: SimBroker) -> None:
        """Rule 4."""
        manager = broker.offset_manager()
        if manager is None:
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
        found = manager.fetch(self._group, self._group_committed)
        for of, committed in self._group_committed.items():
            offset = found[of].offset
            if offset < committed:
                self._on_violation(
                    f"{broker.process.name}: the group's offset of {of} is {offset}, though "
                    f"{committed} was committed, {self._group_history.last_commit(of)}"
                )


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


def agree(one: bytes, other: bytes, *, is_compacted: bool) -> bool:
    """Whether two copies of the same offsets have the same bytes; or, if each broker compacts its
    own copy, the same message wherever both have one."""
    if one == other or not is_compacted:
        return one == other
    first, second = (
        {message.offset: (message.key, message.value) for message in message_set.decode(data)}
        for data in (one, other)
    )
    return all(first[offset] == second[offset] for offset in first.keys() & second.keys())


def _bytes(log: Log, start: int, end: int) -> bytes:
    found = b""
    bases = [*(segment.base_offset for segment in log.sealed_segments), log.active_base_offset]
    while start < end:
        part = log.read(start, READ_BYTES, end)
        found += part.bytes()
        start = min((base for base in bases if base > part.segment_base_offset), default=end)
    return found
