"""Members of a consumer group in a run, and the rules that hold for what they are handed."""

from __future__ import annotations

from collections.abc import Callable, Container

from kafka08.client.requests import StorageName
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.polling.kafka_consumer import KafkaConsumer
from kafka08.consumer.polling.kafka_consumer_config import KafkaConsumerConfig
from kafka08.errors import ConsumerTimeout, KafkaError
from kafka08.simulation.cluster import Hosts
from kafka08.simulation.process import Process
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.workload import POLL_SECONDS, TIMEOUT_MS, TOPIC, Target
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import TopicPartition
from kafka08.zk import paths

GROUP = "g"


class Handed:
    """What members were handed.

    wrong   told of a message that a member was handed without having its partition
    """

    def __init__(self, zookeeper: SimZooKeeper, wrong: Callable[[str], object]) -> None:
        self._zookeeper = zookeeper
        self._wrong = wrong
        self._offsets: dict[TopicPartition, set[int]] = {}

    def note(self, consumer: str, tp: TopicPartition, offset: int) -> None:
        """A member of a group of ZooKeeper's has just been handed this message."""
        self._offsets.setdefault(tp, set()).add(offset)
        node = self._zookeeper.server.find(paths.owner(GROUP, tp.topic, tp.partition))
        owner = None if node is None or node.data is None else node.data.decode()
        if owner is None or not owner.startswith(consumer):
            self._wrong(f"{consumer} was handed {tp} offset {offset}, which {owner} owns")

    def note_polled(
        self, consumer: str, tp: TopicPartition, offset: int, held: Container[TopicPartition]
    ) -> None:
        """A member with a coordinator has just been handed this message, and has `held`."""
        self._offsets.setdefault(tp, set()).add(offset)
        if tp not in held:
            self._wrong(f"{consumer} was handed {tp} offset {offset}, which it has not")

    def missing(self, tp: TopicPartition, offsets: set[int]) -> int:
        """How many of these nobody was handed."""
        return len(offsets - self._offsets.get(tp, set()))


class SimMember:
    """One place in the group, and the process that has it, if one does."""

    def __init__(
        self,
        hosts: Hosts,
        number: int,
        target: Target,
        handed: Handed,
        storage: StorageName,
        *,
        coordinated: bool = False,
    ) -> None:
        self.host = f"member-{number}"
        self.process: Process | None = None
        self._member: Member | PollingMember | None = None
        self._starts = 0
        self._hosts = hosts
        self._target = target
        self._handed = handed
        self._storage = storage
        self._coordinated = coordinated

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
        if self._coordinated:
            self._member = PollingMember(runtime, self._target, self._handed, self.host)
        else:
            self._member = Member(runtime, self._target, self._handed, self._storage)
        runtime.spawn(self._member.run, name="main")

    def end(self) -> None:
        """Have it leave the group in its own time."""
        if self._member is not None:
            self._member.is_ending = True


class Member:
    """One member of the group, which reads until it is told to end."""

    def __init__(
        self, runtime: SimClientRuntime, target: Target, handed: Handed, storage: StorageName
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
                "socket.timeout.ms": TIMEOUT_MS,
                "offsets.channel.socket.timeout.ms": TIMEOUT_MS,
                "zookeeper.session.timeout.ms": runtime.random.choice([4000, 6000]),
                "rebalance.backoff.ms": runtime.random.choice([200, 2000]),
            }
        )

    def run(self) -> None:
        while not self.is_ending:
            try:
                connector = ConsumerConnector(self._config, runtime=self.runtime)
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


class PollingMember:
    """A member of a group with a coordinator, which polls until it is told to end."""

    def __init__(
        self, runtime: SimClientRuntime, target: Target, handed: Handed, name: str
    ) -> None:
        self.runtime = runtime
        self.is_ending = False
        self.has_ended = False
        self._handed = handed
        self._name = name
        self._config = KafkaConsumerConfig(
            {
                "bootstrap.servers": ",".join(f"{host}:{port}" for host, port in target.bootstrap),
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": runtime.random.choice(["range", "sticky"])
                + ",roundrobin",
                "auto.commit.interval.ms": runtime.random.choice([100, 1000]),
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": runtime.random.choice([500, 2000]),
                "max.poll.interval.ms": runtime.random.choice([10_000, 60_000]),
                "max.poll.records": runtime.random.choice([1, 50]),
                "metadata.max.age.ms": 5000,
            }
        )

    def run(self) -> None:
        while not self.is_ending:
            consumer = KafkaConsumer(self._config, runtime=self.runtime)
            held: set[TopicPartition] = set()
            consumer.subscribe([TOPIC], on_assigned=held.update, on_revoked=held.difference_update)
            try:
                while not self.is_ending:
                    self._read(consumer, held)
            except KafkaError:
                self.runtime.sleep(POLL_SECONDS)
            finally:
                consumer.close(timeout=TIMEOUT_MS / 1000)
        self.has_ended = True

    def _read(self, consumer: KafkaConsumer, held: set[TopicPartition]) -> None:
        for message in consumer.poll(0.2):
            tp = TopicPartition(message.topic, message.partition)
            self._handed.note_polled(self._name, tp, message.offset, held)
