"""A topic of which brokers do not keep everything: retention deletes its oldest messages, or
compaction those that a later message of their key replaces. One producer with acks=all writes it,
and one reader reads it from its start.

Rules, under the safe profile:

1. Compaction: the last message of each key is the last one of this key that was acknowledged, or
   one whose outcome its producer does not know. If that is a tombstone, there may be none: what it
   has deleted does not come back.
2. Retention: the acknowledged messages that are left are the last ones, and they have at least
   retention.bytes if any is gone.
3. The reader goes back never, and where messages were deleted only forward to the log start. It has
   read each message that is left or, under compaction, a later one of its key.
4. What was not written is not there, and an offset has one message, whenever it is read.

Under both profiles retention deletes in the end what is more than retention.bytes, and segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final

from kafka08.admin.client import AdminClient
from kafka08.broker.replica.partition import Partition
from kafka08.client.cluster import ClusterClient
from kafka08.consumer import MessageAndMetadata
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import KafkaError, OffsetOutOfRange
from kafka08.producer.old.config import ProducerConfig
from kafka08.producer.old.producer import Producer
from kafka08.producer.record import KeyedMessage
from kafka08.simulation.cluster import Hosts, SimBroker
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.workload import FETCH_WAIT_MS, POLL_S, TIMEOUT_MS, Target
from kafka08.simulation.writers import Observed
from kafka08.structs import EARLIEST_OFFSET, TopicPartition

if TYPE_CHECKING:
    from kafka08.simulation.plan import Plan

TP: Final = TopicPartition("kept", 0)
DELETE: Final = "delete"
COMPACT: Final = "compact"
KEYS: Final = (2, 60)
"""The last messages of most keys are soon in old segments."""
PAUSE_S: Final = 0.2
SEGMENT_BYTES: Final = 600
RETENTION_BYTES: Final = 2000
TOMBSTONE_SHARE: Final = 0.15
ENTRY_BYTES: Final = 100
"""More than a message of it takes in the log."""
OVERRIDES: Final[Mapping[str, Mapping[str, object]]] = {
    DELETE: {
        "cleanup.policy": DELETE,
        "segment.bytes": SEGMENT_BYTES,
        "retention.bytes": RETENTION_BYTES,
        "file.delete.delay.ms": 1000,
    },
    COMPACT: {
        "cleanup.policy": COMPACT,
        "segment.bytes": 2 * SEGMENT_BYTES,  # with more keys than a cleaner's map takes
        "min.cleanable.dirty.ratio": 0.01,
        # A reader may miss a tombstone, but not the message that it has deleted.
        "delete.retention.ms": 0,
    },
}
PROPERTIES: Final[Mapping[str, str]] = {
    "log.retention.check.interval.ms": "2000",
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "2000",
}
"""Of the brokers in a run with such a topic."""


class KeptTopic:
    """Judges what was written to the topic and read from it. Pure."""

    def __init__(self, cleanup: str) -> None:
        self.cleanup = cleanup
        self.acknowledged: list[bytes] = []
        """In the order of their offsets: each was sent after the one before was acknowledged."""
        self.unknown: set[bytes] = set()
        self.reads: dict[int, bytes] = {}
        self.wrong: list[str] = []
        """Sentences about what the reader was given."""

    def read(self, offset: int, value: bytes, due: int) -> None:
        """The reader, at `due`, was handed this message."""
        if offset < due or (offset > due and self.cleanup == DELETE):
            self.wrong.append(f"the reader of {TP} was handed {offset} instead of {due}")
        if self.reads.setdefault(offset, value) != value:
            self.wrong.append(f"{TP} offset {offset} is {value!r}, was {self.reads[offset]!r}")

    def problems(self, final: Mapping[int, bytes], log_bytes: int) -> Iterator[str]:
        """Sentences about the messages that are left; `log_bytes`: of the leader's log."""
        yield from self.wrong
        written = {*self.acknowledged, *self.unknown}
        last_read = {key_of(value): offset for offset, value in sorted(self.reads.items())}
        for offset, value in final.items():
            if value not in written:
                yield f"invented: {TP} offset {offset} {value!r}"
            if offset not in self.reads:
                # A leader of the time may have compacted what another replica still has.
                key = key_of(value)
                is_replaced = offset < last_read.get(key, -1) or tombstone_of(key) in written
                if self.cleanup == COMPACT and is_replaced:
                    continue
                yield f"the reader of {TP} skipped {offset} {value!r}"
            elif self.reads[offset] != value:
                yield f"changed: {TP} offset {offset} {value!r}, was {self.reads[offset]!r}"
        left = [final[offset] for offset in sorted(final)]
        if self.cleanup == COMPACT:
            yield from self._compacted(left)
        else:
            yield from self._retained(left, log_bytes)

    def _compacted(self, left: Sequence[bytes]) -> Iterator[str]:
        """Rule 1."""
        last = {key_of(value): value for value in left}
        due = {key_of(value): value for value in self.acknowledged}
        for key, value in due.items():
            found = last.get(key)
            tombstone = tombstone_of(key)
            if found is None and (value == tombstone or tombstone in self.unknown):
                continue
            if found != value and found not in self.unknown:
                yield f"compacted: the last message of {key!r} is {found!r}, not {value!r}"

    def _retained(self, left: Sequence[bytes], log_bytes: int) -> Iterator[str]:
        """Rule 2."""
        there = {*left}
        found = [value for value in left if value not in self.unknown]
        if found != self.acknowledged[len(self.acknowledged) - len(found) :]:
            missing = next((one for one in reversed(self.acknowledged) if one not in there), b"")
            yield f"lost: {TP} {missing!r}, though older messages are left"
        if len(found) < len(self.acknowledged) and log_bytes < RETENTION_BYTES:
            yield f"retention has left {log_bytes} bytes of {TP}, but {RETENTION_BYTES} are to stay"


def key_of(value: bytes) -> bytes:
    return value.partition(b"/")[0]


def tombstone_of(key: bytes) -> bytes:
    """The text for each tombstone of a key."""
    return key + b"/"


def value_of(message: MessageAndMetadata[bytes, bytes]) -> bytes:
    """Its value, or the text for a tombstone."""
    return tombstone_of(message.key or b"") if message.value is None else message.value


def write(
    runtime: SimClientRuntime, target: Target, kept: KeptTopic, is_ending: Callable[[], bool]
) -> None:
    """Write one message after the other, until the run ends."""
    config = ProducerConfig(
        {
            "metadata.broker.list": target.broker_list,
            "request.required.acks": -1,
            "request.timeout.ms": TIMEOUT_MS,
            "message.send.max.retries": 0,
        }
    )
    with Producer(config, runtime=runtime) as producer:
        number = 0
        while not is_ending():
            key = b"%d" % runtime.random.randrange(runtime.random.choice(KEYS))
            is_tombstone = kept.cleanup == COMPACT and runtime.random.random() < TOMBSTONE_SHARE
            value = tombstone_of(key) if is_tombstone else b"%b/%d" % (key, number)
            number += 1
            is_known = value not in kept.unknown
            kept.unknown.add(value)
            try:
                producer.send(KeyedMessage(TP.topic, None if is_tombstone else value, key=key))
            except KafkaError:
                runtime.sleep(POLL_S)
            else:
                if is_known:  # else an earlier tombstone may still arrive
                    kept.unknown.remove(value)
                kept.acknowledged.append(value)
            runtime.sleep(runtime.random.random() * 2 * PAUSE_S)


class KeptReader:
    """Reads the topic from its start, and from the log start on where it was deleted."""

    def __init__(self, runtime: SimClientRuntime, target: Target, kept: KeptTopic) -> None:
        self.position = 0
        self.is_ending = False
        self._runtime = runtime
        self._target = target
        self._kept = kept

    def run(self) -> None:
        while not self.is_ending:
            try:
                with leader_of(self._runtime, self._target) as consumer:
                    self._read(consumer)
            except KafkaError:
                self._runtime.sleep(POLL_S)

    def _read(self, consumer: SimpleConsumer) -> None:
        while not self.is_ending:
            try:
                fetched = consumer.fetch(TP, self.position, max_wait_ms=FETCH_WAIT_MS)
            except OffsetOutOfRange:
                start = consumer.earliest_or_latest(TP, EARLIEST_OFFSET)
                if self._kept.cleanup == COMPACT or start <= self.position:
                    raise  # a log that has lost messages, or a leader that is behind
                self.position = start
                continue
            for message in fetched:
                self._kept.read(message.offset, value_of(message), self.position)
                self.position = message.offset + 1


def leader_of(runtime: SimClientRuntime, target: Target) -> SimpleConsumer:
    """A consumer at the leader of the topic. KafkaError."""
    with closing(
        ClusterClient(target.bootstrap, timeout_ms=TIMEOUT_MS, runtime=runtime)
    ) as cluster:
        cluster.refresh([TP.topic])
        leader = cluster.leader(TP)
    return SimpleConsumer(leader.host, leader.port, TIMEOUT_MS, runtime=runtime)


def final_messages(runtime: SimClientRuntime, target: Target) -> dict[int, bytes]:
    """All messages that are left: offset → value. KafkaError."""
    with leader_of(runtime, target) as consumer:
        start = consumer.earliest_or_latest(TP, EARLIEST_OFFSET)
        return {one.offset: value_of(one) for one in consumer.read_range(TP, start)}


class KeptLoad:
    """The topic of a run, if its plan has one: its clients and its copies. Else nothing."""

    def __init__(
        self,
        plan: Plan,
        hosts: Hosts,
        target: Target,
        observed: Observed,
        brokers: Sequence[SimBroker],
    ) -> None:
        self.topic = KeptTopic(plan.cleanup)
        self.has_ended = True
        self._replication_factor = plan.replication_factor
        self._hosts = hosts
        self._target = target
        self._observed = observed
        self._brokers = brokers
        self._reader: KeptReader | None = None
        self._final: dict[int, bytes] = {}

    def create_topic(self, admin: AdminClient) -> None:
        if self.topic.cleanup:
            overrides = OVERRIDES[self.topic.cleanup]
            admin.create_topic(TP.topic, 1, self._replication_factor, overrides)

    def start(self) -> None:
        """Start its producer and its reader."""
        if self.topic.cleanup:
            writer, runtime = self._hosts.client("kept-producer"), self._hosts.client("kept-reader")
            self._observed.writers += 1
            writer.spawn(self._write, writer, name="main")
            self._reader = KeptReader(runtime, self._target, self.topic)
            self.has_ended = False
            runtime.spawn(self._read, self._reader, name="main")

    def _write(self, runtime: SimClientRuntime) -> None:
        write(runtime, self._target, self.topic, lambda: self._observed.is_ending)
        self._observed.writers -= 1

    def _read(self, reader: KeptReader) -> None:
        reader.run()
        self.has_ended = True

    def end(self) -> None:
        """Let the reader end soon."""
        if self._reader is not None:
            self._reader.is_ending = True

    # For checks

    def undeleted(self) -> str:
        """A sentence about a log that retention should have made smaller; "" if there is none."""
        most = RETENTION_BYTES + SEGMENT_BYTES + ENTRY_BYTES
        sizes = self._sizes() if self.topic.cleanup == DELETE else {}
        late = [f"{host} has {size} bytes" for host, size in sizes.items() if size > most]
        return late[0] if late else ""

    def unread(self, runtime: SimClientRuntime) -> str:
        """A sentence about the reader, if it has not reached the end; "". Reads the topic too, once
        the HW is its end: a leader that has just started has an old one."""
        if self._reader is None:
            return ""
        for broker, partition in self._copies().items():
            if partition.is_leader and partition.high_watermark != broker.log_end(TP):
                return f"{TP}: the HW is {partition.high_watermark}"
        try:
            self._final = final_messages(runtime, self._target)
        except KafkaError as error:
            return f"{TP} cannot be read: {error}"
        position = self._reader.position
        return "" if position > max(self._final, default=-1) else f"{TP}: it is at {position}"

    def problem(self) -> str:
        """A sentence about a broken rule; "" if there is none."""
        if self._reader is None:
            return ""
        return next(self.topic.problems(self._final, min(self._sizes().values())), "")

    def _sizes(self) -> Mapping[str, int]:
        """The size of each copy, by host."""
        return {
            broker.host: sum(segment.size for segment in partition.log.segment_facts)
            for broker, partition in self._copies().items()
            if partition.log is not None
        }

    def _copies(self) -> Mapping[SimBroker, Partition]:
        found = {broker: broker.partition(TP) for broker in self._brokers}
        return {broker: copy for broker, copy in found.items() if copy is not None}
