"""Mirrors in a run: they copy the clients' topic to a second cluster, which is one broker, below a
chroot of the same ZooKeeper. The broker and the mirrors are killed and suspended like others.

Rules, under the safe profile:

1. What is before a committed offset of the mirrors' group is at the target, but for messages that
   the target refuses, if the mirrors skip them.
2. The target has no other messages. Each has its key, and a timestamp that it has at the source.
3. Messages of a source partition with the same key are in one partition; with keep_partitions all
   are, in that of the same number.
4. Their last copies are in order, where one mirror has copied them: a former owner may be late.
5. All is copied and committed in the end, under any profile, and a mirror that is stopped ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka08.admin.client import AdminClient
from kafka08.consumer.subscription import Whitelist
from kafka08.consumer.zookeeper.config import ConsumerConfig
from kafka08.errors import KafkaError
from kafka08.mirror import Mirror, MirrorSettings, OnFailure
from kafka08.mirror.settings import SOURCE_DEFAULTS, TARGET_DEFAULTS
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.protocol import message_set
from kafka08.simulation.cluster import BROKER_PORT, Hosts, SimBroker
from kafka08.simulation.log_checks import Reading
from kafka08.simulation.process import Process
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.workload import POLL_S, TIMEOUT_MS, TOPIC, Target
from kafka08.simulation.zookeeper import ADDRESS, SimZooKeeper
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths

if TYPE_CHECKING:
    from kafka08.simulation.plan import Plan

GROUP: Final = "mirror"
CHROOT: Final = "/target"
TARGET_HOST: Final = "target"
TARGET_ID: Final = 9
"""No broker of the source has it."""
START_MS: Final = 60_000
REFUSED_BYTES: Final = 3000
"""The target's message.max.bytes in some runs: it refuses some of the large messages."""
UNSURE_BYTES: Final = 100
"""More than a message takes beside its value."""
STOPS: Final = 2
"""How often a mirror is stopped and started again."""


class Copied(NamedTuple):
    """A message of the source or of the target; `at_ms` is negative where brokers store none."""

    offset: int
    key: bytes | None
    value: bytes
    at_ms: int


class Copies:
    """Judges what is at the target. Pure.

    refuses   whether the target refuses large messages
    keeps     whether the mirrors keep partitions
    on_violation   called with a sentence that describes a violation
    """

    def __init__(
        self, on_violation: Callable[[str], object], *, refuses: bool, keeps: bool
    ) -> None:
        self._on_violation = on_violation
        self._refuses = refuses
        self._keeps = keeps
        self._places: dict[bytes, tuple[int, int]] = {}
        """The partition and offset of the last copy of each value."""
        self._copies: dict[bytes, list[tuple[int, Copied]]] = {}
        """The copies that have not been compared with the source, with their partitions."""
        self._sources: dict[bytes, list[tuple[int, Copied]]] = {}
        """Value → where the source has it: more than once, if its producer sent it again."""
        self._homes: dict[tuple[int, bytes], int] = {}
        """The target's partition of each key of a source partition."""

    def copied(self, partition: int, message: Copied) -> None:
        """The target has this message."""
        self._places[message.value] = (partition, message.offset)
        self._copies.setdefault(message.value, []).append((partition, message))

    def known(self, partition: int, message: Copied) -> None:
        """The source has this message."""
        self._sources.setdefault(message.value, []).append((partition, message))

    def committed(
        self, tp: TopicPartition, messages: Sequence[Copied], *, is_ordered: bool
    ) -> None:
        """The group has committed these messages. `is_ordered`: whether one mirror has copied
        them."""
        last: dict[object, tuple[int, int]] = {}
        for message in messages:
            value, place = message.value, self._places.get(message.value)
            if place is None:
                if not (self._refuses and len(value) > REFUSED_BYTES - UNSURE_BYTES):
                    self._on_violation(
                        f"the mirrors' group committed {tp} offset {message.offset} "
                        f"{value[:40]!r}, which is not at the target"
                    )
                continue
            shared = "" if self._keeps else message.key
            if is_ordered and shared is not None and len(self._sources[value]) == 1:
                if place < last.get(shared, (-1, -1)):
                    self._on_violation(
                        f"the last copy of {tp} offset {message.offset} {value[:40]!r} is at "
                        f"{place}, before that of an earlier message, at {last[shared]}"
                    )
                last[shared] = place
        self._check_copies()

    def _check_copies(self) -> None:
        """Rules 2 and 3, of values that are known from the source."""
        for value in self._copies.keys() & self._sources.keys():
            found = self._sources[value]
            for partition, copy in self._copies.pop(value):
                if not any(
                    copy.key == of.key
                    and (of.at_ms == copy.at_ms or of.at_ms < 0)
                    and self._is_home(source, copy.key, partition)
                    for source, of in found
                ):
                    self._on_violation(
                        f"the target has {copy} in partition {partition}, the source {found}"
                    )

    def _is_home(self, source: int, key: bytes | None, partition: int) -> bool:
        if self._keeps:
            return source == partition
        return key is None or self._homes.setdefault((source, key), partition) == partition

    def invented(self) -> str:
        """A sentence about a copy of a message that the source does not have; ""."""
        value = next(iter(self._copies), None)
        return "" if value is None else f"invented: the target has {value[:40]!r}"


class SimMirror:
    """A place of a mirror, and its process, if it is running."""

    def __init__(
        self, number: int, hosts: Hosts, make: Callable[[SimClientRuntime], Mirror]
    ) -> None:
        self.host = f"mirror-{number}"
        self.process: Process | None = None
        self.has_ended = False
        self._hosts = hosts
        self._make = make
        self._starts = 0
        self._is_ending = False
        self._stops_left = STOPS
        self._stop: Callable[[], object] = lambda: None

    @property
    def is_running(self) -> bool:
        return self.process is not None and not self.process.is_dead

    def start(self) -> None:
        self._starts += 1
        runtime = self._hosts.client(f"{self.host}.{self._starts}", self.host)
        self.process = runtime.process
        runtime.spawn(self._run, runtime, name="main")

    def end(self) -> None:
        """Let it end soon."""
        self._is_ending = True
        self._stop()

    def keep_calm(self) -> None:
        """Let it run from now on."""
        self._stops_left = 0

    def _run(self, runtime: SimClientRuntime) -> None:
        while not self._is_ending:
            stopping = runtime.event()
            self._stop = stopping.set
            seconds = runtime.random.uniform(1, 40)
            timer = runtime.call_later(seconds, self._stop_early, stopping.set)
            try:
                self._make(runtime).run(stopping)
            except KafkaError:
                runtime.sleep(POLL_S)
            timer.cancel()
        self.has_ended = True

    def _stop_early(self, stop: Callable[[], object]) -> None:
        if self._stops_left:
            self._stops_left -= 1
            stop()


class MirrorLoad:
    """The second cluster of a run and its mirrors, if its plan has some. Else nothing."""

    def __init__(
        self,
        plan: Plan,
        hosts: Hosts,
        source: Target,
        zookeeper: SimZooKeeper,
        brokers: Sequence[SimBroker],
        on_violation: Callable[[str], object],
    ) -> None:
        random = hosts.random_of("mirrors")
        self._settings = settings_of(random)
        self._refuses = self._settings.on_failure is OnFailure.SKIP
        self._source = source
        self._zookeeper = zookeeper
        self._brokers = {broker.id: broker for broker in brokers}
        self.copies = Copies(
            on_violation, refuses=self._refuses, keeps=self._settings.keep_partitions
        )
        self._checked: dict[TopicPartition, tuple[int, str]] = {}
        """The offset before which all is at the target, and the last committer."""
        self._known: dict[TopicPartition, int] = {}
        """The offset before which the source was read, and what of it is not committed."""
        self._waiting: dict[TopicPartition, list[Copied]] = {}
        self._read: dict[int, int] = {}
        """The next offset of each of the target's partitions."""
        self.target = SimBroker(
            hosts,
            TARGET_ID,
            {
                **plan.broker_properties,
                "zookeeper.connect": ADDRESS + CHROOT,
                # What the source has in a compressed set, a smaller one refuses.
                "log.segment.bytes": "1048576",
                # It loses nothing with its power, so it need not sync each message.
                "log.flush.interval.messages": "1000",
                **({"message.max.bytes": str(REFUSED_BYTES)} if self._refuses else {}),
            },
            # A power failure may take what a single broker has acknowledged.
            loses_writes=False,
            host=TARGET_HOST,
        )
        self._partitions = plan.partitions
        self._is_safe = plan.profile == "safe"
        self.mirrors = [SimMirror(number, hosts, self._mirror) for number in range(plan.mirrors)]

    def _mirror(self, runtime: SimClientRuntime) -> Mirror:
        random = runtime.random
        return Mirror(
            ConsumerConfig(
                {
                    **SOURCE_DEFAULTS,
                    "zookeeper.connect": ADDRESS,
                    "group.id": GROUP,
                    "auto.commit.interval.ms": random.choice([200, 2000]),
                    "zookeeper.session.timeout.ms": 4000,
                    "rebalance.backoff.ms": 500,
                    "socket.timeout.ms": TIMEOUT_MS,
                    "fetch.wait.max.ms": 1000,
                }
            ),
            KafkaProducerConfig(
                {
                    **TARGET_DEFAULTS,
                    "bootstrap.servers": f"{TARGET_HOST}:{BROKER_PORT}",
                    "retries": random.choice([0, 10]),
                    "request.timeout.ms": TIMEOUT_MS,
                    "max.block.ms": TIMEOUT_MS,
                    "compression.type": random.choice(["none", "gzip"]),
                }
            ),
            Whitelist(TOPIC),
            self._settings,
            runtime=runtime,
        )

    @property
    def places(self) -> list[SimMirror | SimBroker]:
        """The places of processes that may be killed, and must run again."""
        return [self.target, *self.mirrors] if self.mirrors else []

    @property
    def has_ended(self) -> bool:
        return all(mirror.has_ended for mirror in self.mirrors)

    def is_set_up(self) -> bool:
        """Start the target. Whether it is registered."""
        if not self.mirrors:
            return True
        if not self.target.is_running:
            self.target.start()
        znode = self._zookeeper.server.find(CHROOT + paths.broker(TARGET_ID))
        return znode is not None

    def create_topic(self, runtime: SimClientRuntime) -> None:
        """Make the topic at the target."""
        if not self.mirrors:
            return
        with AdminClient(ADDRESS + CHROOT, runtime=runtime) as admin:
            admin.create_topic(TOPIC, self._partitions, 1)
            admin.await_leaders(TOPIC, timeout_ms=START_MS)

    def start(self) -> None:
        for mirror in self.mirrors:
            mirror.start()

    def keep_calm(self) -> None:
        """Let the mirrors run from now on."""
        for mirror in self.mirrors:
            mirror.keep_calm()

    def end(self) -> None:
        """Let the mirrors end soon."""
        for mirror in self.mirrors:
            mirror.end()

    # For checks

    def stored(self, writer: str, tp: TopicPartition, offset: int) -> None:
        """Rules 1 to 4: the group's offset was written to ZooKeeper."""
        start, before = self._checked.get(tp, (0, writer))
        # Either may be away now, or a new leader's HW behind; the next commit is judged then.
        if offset > start and self._read_source(tp) >= offset and self._read_target():
            waiting = self._waiting[tp]
            messages = [message for message in waiting if message.offset < offset]
            del waiting[: len(messages)]
            self.copies.committed(tp, messages, is_ordered=before == writer)
            self._checked[tp] = (offset, writer)

    def _read_source(self, tp: TopicPartition) -> int:
        """Look at what is new in a partition of the source. Returns the offset before which all is
        known; 0 if its leader does not run."""
        leader = self._leader(tp)
        partition = None if leader is None else leader.partition(tp)
        if leader is None or partition is None or partition.log is None:
            return 0
        start, end = self._known.get(tp, 0), partition.high_watermark
        for message in messages_of(leader, tp, start, end):
            self.copies.known(tp.partition, message)
            self._waiting.setdefault(tp, []).append(message)
        self._known[tp] = max(start, end)
        return end

    def uncopied(self) -> str:
        """A sentence about what is not copied or not committed; ""."""
        for tp in self._source.partitions if self.mirrors else ():
            leader = self._leader(tp)
            if leader is None:
                return f"{tp} has no leader"
            partition = leader.partition(tp)
            end = 0 if partition is None else partition.high_watermark
            committed = self._committed(tp)
            if committed < end:
                return f"{tp} ends at {end}, and the mirrors' group has committed {committed}"
        return ""

    def problem(self) -> str:
        """Rule 2, in the end, once all is copied."""
        if not self.mirrors:
            return ""
        for tp in self._source.partitions:
            # The target or the leader may have been away at the last commit.
            self.stored(self._checked.get(tp, (0, ""))[1], tp, self._committed(tp))
        return self.copies.invented() if self._read_target() else ""

    def _committed(self, tp: TopicPartition) -> int:
        znode = self._zookeeper.server.find(paths.offset(GROUP, TOPIC, tp.partition))
        text = None if znode is None or znode.data is None else znode.data.decode()
        return 0 if text is None else nodes.decode_offset(text)

    def _leader(self, tp: TopicPartition) -> SimBroker | None:
        """The leader of a partition of the source, if it is running and knows that it leads."""
        state = self._zookeeper.leader_and_isr(tp)
        broker = None if state is None else self._brokers.get(state.leader)
        partition = None if broker is None else broker.partition(tp)
        return broker if partition is not None and partition.is_leader else None

    def _read_target(self) -> bool:
        """Look at what is new at the target. False if it does not run."""
        for number in range(self._partitions):
            tp = TopicPartition(TOPIC, number)
            partition = self.target.partition(tp)
            if partition is None or partition.log is None:
                return False
            start, end = self._read.get(number, 0), partition.log.log_end_offset
            for message in messages_of(self.target, tp, start, end):
                self.copies.copied(number, message)
            self._read[number] = end
        return True


def settings_of(random: Random) -> MirrorSettings:
    return MirrorSettings(
        streams=random.choice([1, 2]),
        on_failure=random.choice([OnFailure.ABORT, OnFailure.SKIP]),
        keep_partitions=random.random() < 0.3,
    )


def messages_of(broker: SimBroker, tp: TopicPartition, start: int, end: int) -> list[Copied]:
    """The messages of [start, end) in a broker's log."""
    partition = broker.partition(tp)
    if start >= end or partition is None or partition.log is None:
        return []
    data = Reading(broker, partition.log).entries(start, end)
    return [
        Copied(message.offset, message.key, message.value or b"", message.timestamp)
        for message in message_set.decode(data, start)
        if message.offset < end
    ]
