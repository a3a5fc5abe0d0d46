"""Members of a consumer group in a run, and the rules for the messages that they receive."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import Final

from kafka08.client.requests import StorageName
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.consumer.zookeeper.config import ConsumerConfig
from kafka08.consumer.zookeeper.connector import ConsumerConnector
from kafka08.consumer.zookeeper.offset_store import KafkaOffsetStore
from kafka08.errors import ApiError, ConsumerTimeout, KafkaError
from kafka08.simulation.cluster import Hosts, SimBroker
from kafka08.simulation.group_history import GroupHistory
from kafka08.simulation.polling_member import Habits, PollingMember
from kafka08.simulation.process import Process
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.workload import POLL_SECONDS, TIMEOUT_MS, TOPIC, Target
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import NO_OFFSET, OFFSETS_TOPIC, TopicPartition
from kafka08.zk import paths

GROUP = "g"
LONG_WORK_SECONDS: Final = 12.0
"""Longer than a session timeout, and than some max.poll.interval.ms."""


def polling_config(target: Target, random: Random) -> KafkaConsumerConfig:
    """The configuration of a KafkaConsumer in the group."""
    return KafkaConsumerConfig(
        {
            "bootstrap.servers": ",".join(f"{host}:{port}" for host, port in target.bootstrap),
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": random.choice(["range", "sticky"]) + ",roundrobin",
            "auto.commit.interval.ms": random.choice([100, 1000]),
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": random.choice([500, 2000]),
            "max.poll.interval.ms": random.choice([10_000, 60_000]),
            "max.poll.records": random.choice([1, 50]),
            "metadata.max.age.ms": 5000,
        }
    )


class Deliveries:
    """The messages that the members of a ZooKeeper group received, and their commits to Kafka.

    on_violation   called with a sentence if a member receives a message of a partition that it
                   does not own, or begins before a committed offset
    is_safe        whether the logs lose no messages, and so no commits
    """

    def __init__(
        self,
        zookeeper: SimZooKeeper,
        brokers: Sequence[SimBroker],
        on_violation: Callable[[str], object],
        *,
        is_safe: bool,
    ) -> None:
        self._zookeeper = zookeeper
        self._brokers = brokers
        self._on_violation = on_violation
        self._is_safe = is_safe
        self._offsets: dict[TopicPartition, set[int]] = {}
        self.committed_offsets: dict[TopicPartition, int] = {}
        """The highest offset whose commit to Kafka was acknowledged to the owner of its
        partition."""

    def note(self, consumer: str, tp: TopicPartition, offset: int) -> None:
        """A member has just received this message."""
        self._offsets.setdefault(tp, set()).add(offset)
        owner = self._owner(tp)
        if owner is None or not owner.startswith(consumer):
            self._on_violation(f"{consumer} was handed {tp} offset {offset}, which {owner} owns")

    def committed(self, consumer: str, tp: TopicPartition, offset: int) -> None:
        """A member's commit to Kafka was acknowledged. It does not count if the partition has
        another owner now, which may have started from an earlier offset."""
        owner = self._owner(tp)
        if owner is not None and owner.startswith(consumer):
            self.committed_offsets[tp] = max(self.committed_offsets.get(tp, 0), offset)

    def least_offsets(self) -> dict[TopicPartition, int]:
        """The least offsets that a member may find when it asks the coordinator for them now. Empty
        if a former coordinator, which does not know that yet, may respond."""
        if not self._is_safe or self._has_former_coordinator():
            return {}
        return dict(self.committed_offsets)

    def found(
        self,
        consumer: str,
        offsets: Mapping[TopicPartition, int],
        least: Mapping[TopicPartition, int],
    ) -> None:
        """A member has asked the coordinator, and begins at these offsets. `least`: see
        `least_offsets`, from before it asked."""
        for tp, offset in offsets.items():
            if offset < least.get(tp, NO_OFFSET):
                self._on_violation(
                    f"{consumer} begins {tp} at {offset}, though {least[tp]} was committed"
                )

    def _owner(self, tp: TopicPartition) -> str | None:
        """The thread id that owns the partition in ZooKeeper."""
        node = self._zookeeper.server.find(paths.owner(GROUP, tp.topic, tp.partition))
        return None if node is None or node.data is None else node.data.decode()

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

    def missing(self, tp: TopicPartition, offsets: set[int]) -> int:
        """The number of these messages that no member received."""
        return len(offsets - self._offsets.get(tp, set()))


class SimMember:
    """One place in the group, and its process, if it is running."""

    def __init__(
        self,
        hosts: Hosts,
        number: int,
        target: Target,
        handed: Deliveries | GroupHistory,
        storage: StorageName,
    ) -> None:
        """With a GroupHistory the member is a KafkaConsumer."""
        self.host = f"member-{number}"
        self.process: Process | None = None
        self._member: Member | PollingMember | None = None
        self._starts = 0
        self._hosts = hosts
        self._target = target
        self._handed = handed
        self._storage = storage

    @property
    def is_running(self) -> bool:
        return self.process is not None and not self.process.is_dead

    @property
    def has_ended(self) -> bool:
        return self._member is not None and self._member.has_ended

    def start(self) -> None:
        self._starts += 1
        runtime = self._hosts.client(f"{self.host}.{self._starts}", self.host)
        self.process = runtime.process
        if isinstance(self._handed, GroupHistory):
            self._member = PollingMember(
                runtime,
                polling_config(self._target, runtime.random),
                TOPIC,
                Habits.draw(runtime.random, long_seconds=LONG_WORK_SECONDS),
                self._handed,
                runtime.process.name,
            )
        else:
            self._member = Member(runtime, self._target, self._handed, self._storage)
        runtime.spawn(self._member.run, name="main")

    def end(self) -> None:
        """Let it leave the group soon."""
        if self._member is not None:
            self._member.end()


class WatchedConnector(ConsumerConnector):
    """A connector whose acknowledged commits to Kafka, and offsets from there, are noted."""

    def __init__(
        self, config: ConsumerConfig, runtime: SimClientRuntime, handed: Deliveries
    ) -> None:
        super().__init__(config, runtime=runtime)
        self._handed = handed

    def _kafka_store(self) -> KafkaOffsetStore:
        store = super()._kafka_store()
        commit_each, fetch_once = store.commit_each, store.fetch_once

        def noted(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, ApiError]:
            refused = commit_each(offsets)
            for tp, offset in offsets.items():
                if offset != NO_OFFSET and tp not in refused:  # NO_OFFSET is never sent
                    self._handed.committed(self.consumer_id, tp, offset)
            return refused

        def found(
            partitions: Collection[TopicPartition], give_up_at: float = float("inf")
        ) -> dict[TopicPartition, int]:
            least = self._handed.least_offsets()
            offsets = fetch_once(partitions, give_up_at)
            self._handed.found(self.consumer_id, offsets, least)
            return offsets

        store.commit_each = noted  # type: ignore[method-assign]
        store.fetch_once = found  # type: ignore[method-assign]
        return store


class Member:
    """One member of the group, which reads until `end` is called."""

    def __init__(
        self, runtime: SimClientRuntime, target: Target, handed: Deliveries, storage: StorageName
    ) -> None:
        self.runtime = runtime
        self.is_ending = False
        self.has_ended = False
        self._target = target
        self._handed = handed
        self._config = ConsumerConfig(
            {
                "group.id": GROUP,
                "zookeeper.connect": target.zookeeper,
                "auto.offset.reset": "smallest",
                "auto.commit.interval.ms": runtime.random.choice([100, 1000]),
                "offsets.storage": storage,
                "dual.commit.enabled": False,
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
                connector = WatchedConnector(self._config, self.runtime, self._handed)
            except KafkaError:
                self.runtime.sleep(POLL_SECONDS)
                continue
            try:
                self._read(connector)
            except KafkaError:
                self.runtime.sleep(POLL_SECONDS)
            finally:
                connector.shutdown()
        self.has_ended = True

    def end(self) -> None:
        self.is_ending = True

    def _read(self, connector: ConsumerConnector) -> None:
        [stream] = connector.create_message_streams({TOPIC: 1})[TOPIC]
        while not self._must_end():
            try:
                for message in stream:
                    tp = TopicPartition(message.topic, message.partition)
                    self._handed.note(connector.consumer_id, tp, message.offset)
                    if self._must_end():
                        return
            except ConsumerTimeout:
                pass

    def _must_end(self) -> bool:
        return self.is_ending
