"""Move: copies topics to another cluster once each, so that their groups can go on there.

    plan      the topics and groups that would move, and what stands against it
    run       makes the topics at the target, and copies until it is stopped; repeatable
    status    how far each partition is, and each group
    switch    sets the offsets of stopped groups at the target (kafka08.mirror.switching)

Its guarantees, with brokers from 0.11 on at the target:

1. Each message of the source is copied once, whatever is killed, and in the order of its partition;
   partition, key, value, headers and timestamp stay.
2. A group continues at the target at the message that it would read next at the source.
3. What was deleted at the source before it was copied ends the move, unless it may be left out;
   so does a source that has lost messages which were copied.
4. Of two processes that run the same move, the one that began later goes on, and the other ends.

Readers of the target see copies of unfinished transactions unless they read committed messages.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from kafka08.admin import BrokerAdmin
from kafka08.admin.choice import admin_of
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.log_offsets import leader_log_ends, log_ends, log_starts
from kafka08.client.security import PREFIXES, SecureClientConfig
from kafka08.consumer import KafkaConsumer
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.consumer.subscription import TopicFilter
from kafka08.errors import ConfigError, KafkaError, MigrationError
from kafka08.listing import some_of
from kafka08.mirror.exact_copy import ExactCopier, may_pass
from kafka08.mirror.move_plan import TopicStep, step_of
from kafka08.mirror.offset_map import Copied, OffsetMap, beginning
from kafka08.mirror.outcome import MirrorFailed
from kafka08.mirror.settings import check_apart
from kafka08.mirror.sources import COPIED_WHAT_IS_LOST, NewSource, OldSource, Source
from kafka08.mirror.stats import MirrorCounts, MirrorStats
from kafka08.observe.place import ClusterPlace
from kafka08.observe.reader import ClusterReader
from kafka08.observe.snapshot import ClusterView
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.runtime import Event
from kafka08.runtime.threads import THREADS
from kafka08.structs import NO_OFFSET, OffsetAndMetadata, TopicPartition, host_port

logger = logging.getLogger(__name__)

BOOTSTRAP: Final = "bootstrap.servers"
PREFIX: Final = "kafka08-move-"
"""Of the topic with a move's records at the target, and of its transactional.id."""
RECORD_REPLICAS: Final = 3
LOOK_AGAIN_S: Final = 60.0
"""New topics and partitions of the source are found within this time."""
PAUSE_S: Final = 1.0
"""After an error that may pass."""
READ_S: Final = 60.0
TARGET_DEFAULTS: Final[Mapping[str, str]] = {
    "acks": "all",
    "enable.idempotence": "true",
    "max.block.ms": "30000",
    # The target's topics have limits of their own.
    "max.request.size": str(100 << 20),
    "buffer.memory": str(256 << 20),
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """zookeeper    connect string; None: brokers alone
    properties   bootstrap.servers, the keys for TLS and SASL, and of a target those of a producer
    """

    zookeeper: str | None
    properties: Mapping[str, str]

    @property
    def place(self) -> ClusterPlace:
        """ConfigError for keys that contradict each other."""
        secure = self.client_keys
        bootstrap = secure.pop(BOOTSTRAP, None)
        return ClusterPlace(self.zookeeper, bootstrap, SecureClientConfig(secure).security)

    @property
    def client_keys(self) -> dict[str, str]:
        """The properties of clients of any kind."""
        return {
            name: value
            for name, value in self.properties.items()
            if name == BOOTSTRAP or name.startswith(PREFIXES)
        }


class PartitionStatus(NamedTuple):
    """start, end   offsets of the source's log; None: unknown
    position     the source's offset from which the move goes on; None: nothing was copied
    """

    topic_partition: TopicPartition
    start: int | None
    end: int | None
    position: int | None

    @property
    def lag(self) -> int | None:
        """Messages that are not copied yet, where offsets have no gaps."""
        if self.end is None:
            return None
        at = self.position if self.position is not None else self.start
        return None if at is None else max(0, self.end - at)


class Move:
    """Named, so that several moves may share a target. Raises KafkaError; ConfigError for clusters
    that are the same, or a target before 0.11."""

    def __init__(
        self,
        source: Cluster,
        target: Cluster,
        topics: TopicFilter,
        name: str = "default",
        *,
        replication_factor: int | None = None,
        skips_deleted: bool = False,
    ) -> None:
        self.source = source
        self.target = target
        self.records = PREFIX + name
        self._topics = topics
        self._replication_factor = replication_factor
        self._skips_deleted = skips_deleted
        self._stats = MirrorStats()

    @property
    def counts(self) -> MirrorCounts:
        """Its counts so far. Any thread."""
        return self._stats.counts

    # Looking

    def plan(self) -> list[TopicStep]:
        """The steps for each topic; nothing is changed. The target checks those that it shall
        make."""
        copied = self.copied()
        with self._target_admin() as target:
            steps = self._steps(target, copied)
            return [self._checked(target, step) for step in steps]

    def _steps(self, target: BrokerAdmin, copied: OffsetMap) -> list[TopicStep]:
        here = self._wanted_topics()
        there = {topic.name: topic for topic in target.describe_topics()}
        shared = [topic.name for topic in here if topic.name in there]
        with self._client(self.target) as cluster:
            partitions = [
                TopicPartition(name, p.partition) for name in shared for p in there[name].partitions
            ]
            ends = log_ends(cluster, partitions) if partitions else {}
        brokers = len(target.live_brokers())
        written, moved = {tp.topic for tp, end in ends.items() if end}, {tp.topic for tp in copied}
        return [
            step_of(
                topic,
                there.get(topic.name),
                brokers,
                written=written,
                moved=moved,
                replication_factor=self._replication_factor,
            )
            for topic in here
        ]

    def _wanted_topics(self) -> list[Any]:
        with admin_of(self.source.place, THREADS) as admin:
            found = admin.describe_topics()
        return [topic for topic in found if self._is_wanted(topic.name)]

    def _is_wanted(self, topic: str) -> bool:
        return self._topics.allows(topic) and not topic.startswith(PREFIX)

    def _checked(self, target: BrokerAdmin, step: TopicStep) -> TopicStep:
        if step.does != "create" or step.refusals:
            return step
        try:
            target.create_topic(
                step.topic, step.partitions, step.replicas, step.config, dry_run=True
            )
        except KafkaError as error:
            return replace(step, refusals=(str(error),))
        return step

    def copied(self) -> OffsetMap:
        """Everything that was copied so far, by the target's records."""
        found = OffsetMap()
        self._read_on(found, NO_OFFSET)
        return found

    def _read_on(self, found: OffsetMap, last: int) -> None:
        """Add the records that are not in `found`. `last`: an offset of theirs that must be seen; a
        new leader may not know for a moment how far its log is committed."""
        keys = {
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
            "max.poll.records": "10000",
        }
        with self._target_admin() as target:
            if self.records not in target.list_topics():
                return
        tp = TopicPartition(self.records, 0)
        with KafkaConsumer(KafkaConsumerConfig({**self.target.client_keys, **keys})) as consumer:
            consumer.assign([tp])
            consumer.seek(tp, found.next_record)
            end = max(consumer.end_offsets([tp], READ_S)[tp], last + 1)
            while found.next_record < end:
                for message in consumer.poll(READ_S):
                    found.add(Copied.decode(message.value))
                found.next_record = consumer.position(tp, READ_S)

    def source_view(self) -> ClusterView:
        """The source now, with all its groups."""
        with ClusterReader(*self.source.place) as reader:
            return reader.read_view()

    def status(self, view: ClusterView, copied: OffsetMap) -> list[PartitionStatus]:
        """A row for each partition of the source that is to be copied. Pure."""
        return [
            PartitionStatus(tp, state.start, state.end, copied.position(tp))
            for tp, state in sorted(view.partitions.items())
            if self._is_wanted(tp.topic)
        ]

    # Copying

    def run(
        self,
        stopping: Event,
        *,
        starting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Make what the target lacks, and copy until `stopping` is set. `starting` is entered
        around the first look, as in Mirror.run. MirrorFailed if something cannot be copied, or if
        another process of this move has begun."""
        with starting():
            self._check_apart()
        process, copied = f"{THREADS.random.getrandbits(64):016x}", OffsetMap()
        while not stopping.is_set():
            try:
                self._run_once(process, copied, stopping)
            except (KafkaError, TimeoutError) as error:
                if not may_pass(error):
                    raise
                logger.warning("%s; going on from what is copied", error)
                stopping.wait(PAUSE_S)

    def _run_once(self, process: str, copied: OffsetMap, stopping: Event) -> None:
        """Copy with one producer, until `stopping` is set or an error that may pass. `copied`: the
        records so far, which are kept up to date."""
        self._read_on(copied, NO_OFFSET)
        self._check_newest(process, copied)
        self._prepare(copied)
        with KafkaProducer(self._producer_config()) as producer:
            producer.init_transactions()
            while True:
                # Earlier processes, which are fenced now, may have added records up to this one.
                # One that has begun later got its identity before this one: it gets a new one.
                with producer.transaction():
                    record = ProducerRecord(self.records, beginning(process).encode(), partition=0)
                    mine = producer.send(record)
                self._read_on(copied, mine.result(READ_S).offset)
                self._check_newest(process, copied)
                self._copy(producer, copied, stopping)
                if stopping.is_set():
                    return
                self._prepare(copied)

    def _copy(self, producer: KafkaProducer, copied: OffsetMap, stopping: Event) -> None:
        """Copy until new partitions are to be looked for."""
        with self.open_source() as source:
            source.seek(self._positions(copied))
            until = THREADS.monotonic() + LOOK_AGAIN_S
            copier = ExactCopier(source, producer, self.records, self._stats)
            copier.run(stopping, lambda: THREADS.monotonic() > until)

    def _check_newest(self, process: str, copied: OffsetMap) -> None:
        if copied.has_later_than(process):
            raise MirrorFailed(
                f"another process has begun this move ({self.records}) and goes on with it: this "
                "one ends. Start one at a time, or give each move a --name and topics of its own"
            )

    def _producer_config(self) -> KafkaProducerConfig:
        own = {"transactional.id": self.records}
        return KafkaProducerConfig({**TARGET_DEFAULTS, **self.target.properties, **own})

    def _prepare(self, copied: OffsetMap) -> None:
        """Make the topics and partitions that the target lacks. MigrationError for what stands
        against it."""
        with self._target_admin() as target:
            steps = self._steps(target, copied)
            if refusals := [f"{step.topic}: {why}" for step in steps for why in step.refusals]:
                text = "\n".join(f"  - {reason}" for reason in refusals)
                raise MigrationError(f"nothing is copied:\n{text}")
            if self.records not in target.list_topics():
                replicas = min(RECORD_REPLICAS, len(target.live_brokers()))
                keep = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
                target.create_topic(self.records, 1, replicas, keep)
            for step in steps:
                if step.does == "create":
                    target.create_topic(step.topic, step.partitions, step.replicas, step.config)
                    logger.info("made topic %s at the target", step.topic)
                elif step.does != "none":
                    target.alter_topic(step.topic, partitions=step.partitions)
                    logger.info("%s has %d partitions now", step.topic, step.partitions)

    def _positions(self, copied: OffsetMap) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where to read each partition from, with the leader epoch of what was copied. MirrorFailed
        for messages that are not there any more."""
        partitions = [
            TopicPartition(topic.name, p.partition)
            for topic in self._wanted_topics()
            for p in topic.partitions
        ]
        with self._client(self.source) as cluster:
            starts = log_starts(cluster, partitions)
            # Not the high watermark, of which a new leader may not know.
            ends = leader_log_ends(cluster, partitions)
        found = {tp: OffsetAndMetadata(start) for tp, start in starts.items()}
        deleted, lost = [], []
        for tp in partitions:
            at = copied.position(tp)
            if at is None:
                continue
            if at >= starts[tp]:
                found[tp] = OffsetAndMetadata(at, leader_epoch=copied.epoch(tp))
            else:
                deleted.append(f"{tp}: {at} to {starts[tp] - 1}")
            if at > ends[tp]:
                lost.append(f"{tp}: {ends[tp]} to {at - 1}")
        if lost:
            raise MirrorFailed(
                f"the source has lost messages which were copied, {some_of(lost)}: by an unclean "
                f"election, or the topic was made again. {COPIED_WHAT_IS_LOST}"
            )
        if deleted:
            text = f"deleted at the source before they were copied: messages {some_of(deleted)}"
            if not self._skips_deleted:
                raise MirrorFailed(f"{text}. Give --skip-deleted to go on behind them")
            logger.error("%s; they are left out", text)
        return found

    # Connections

    def starts(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offsets of these logs of the source."""
        with self._client(self.source) as cluster:
            return log_starts(cluster, partitions)

    @contextmanager
    def open_target(self) -> Iterator[Source]:
        """The target as it is read, without unfinished transactions."""
        with (
            self._client(self.target) as cluster,
            NewSource(self.target.client_keys, cluster) as new,
        ):
            yield new

    @contextmanager
    def open_source(self) -> Iterator[Source]:
        """The source, of any age."""
        with ClusterReader(*self.source.place) as reader:
            cluster = reader.client()
            if not reader.negotiates:
                yield OldSource(cluster)
                return
            brokers = cluster.metadata.brokers.values()
            found = ",".join(host_port(broker.host, broker.port) for broker in brokers)
            with NewSource({BOOTSTRAP: found, **self.source.client_keys}, cluster) as new:
                yield new

    def _check_apart(self) -> None:
        addresses = []
        for one in (self.source, self.target):
            with self._client(one) as cluster:
                brokers = cluster.refresh().brokers.values()
                addresses.append({(broker.host, broker.port) for broker in brokers})
        check_apart(*addresses)

    @contextmanager
    def _client(self, of: Cluster) -> Iterator[ClusterClient]:
        with ClusterReader(*of.place) as reader:
            yield reader.client()

    def _target_admin(self) -> BrokerAdmin:
        place = self.target.place
        if place.bootstrap is None:
            raise ConfigError("give the brokers of the target: --target-bootstrap")
        return BrokerAdmin(parse_bootstrap(place.bootstrap), security=place.security)
