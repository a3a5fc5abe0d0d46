"""The places of a consumer group in a run, each with a process that may be killed and started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

from kafka08.client.requests import StorageName
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.simulation.cluster import Hosts
from kafka08.simulation.connector_member import ConnectorHabits, ConnectorMember
from kafka08.simulation.group_history import GroupHistory
from kafka08.simulation.late_topic import LATE, Subscription, drawn_subscription
from kafka08.simulation.polling_member import Habits, PollingMember
from kafka08.simulation.process import Process
from kafka08.simulation.workload import TOPIC, Target
from kafka08.simulation.zookeeper_group_history import GROUP, ZooKeeperGroupHistory

STRATEGIES: Final = ("range", "roundrobin", "sticky")
LONG_WORK_S: Final = 12.0
"""Longer than a session timeout, and than some max.poll.interval.ms."""


def polling_config(target: Target, random: Random) -> KafkaConsumerConfig:
    """The configuration of a KafkaConsumer in the group."""
    return KafkaConsumerConfig(
        {
            "bootstrap.servers": ",".join(f"{host}:{port}" for host, port in target.bootstrap),
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            # All of them: a coordinator that has loaded the group, ours or Kafka's, knows only the
            # chosen one of each member, and refuses a new member without it.
            "partition.assignment.strategy": ",".join(random.sample(STRATEGIES, len(STRATEGIES))),
            "auto.commit.interval.ms": random.choice([100, 1000]),
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": random.choice([500, 2000]),
            "max.poll.interval.ms": random.choice([10_000, 60_000]),
            "max.poll.records": random.choice([1, 50]),
            "metadata.max.age.ms": 5000,
            "request.timeout.ms": 8000,
        }
    )


class SimMember:
    """One place in the group, and its process, if it is running."""

    def __init__(
        self,
        hosts: Hosts,
        number: int,
        target: Target,
        history: GroupHistory,
        storage: StorageName,
        *,
        late: bool = False,
    ) -> None:
        """With a ZooKeeperGroupHistory the member is a ConsumerConnector, else a KafkaConsumer.
        `late`: whether it also subscribes to the topic that is made in the end."""
        self.host = f"member-{number}"
        self.process: Process | None = None
        self._member: ConnectorMember | PollingMember | None = None
        self._starts = 0
        self._hosts = hosts
        self._target = target
        self._history = history
        self._storage = storage
        self._late = late
        self._subscription = Subscription(TOPIC, TOPIC)

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
        if isinstance(self._history, ZooKeeperGroupHistory):
            self._member = ConnectorMember(
                runtime,
                self._target,
                self._history,
                self._storage,
                ConnectorHabits.draw(runtime.random, long_seconds=LONG_WORK_S),
                others=[LATE.topic] if self._late else [],
            )
        else:
            if self._late:
                random = self._hosts.random_of(f"{runtime.process.name}/subscription")
                self._subscription = drawn_subscription(random)
            self._member = PollingMember(
                runtime,
                polling_config(self._target, runtime.random),
                self._subscription.first,
                Habits.draw(runtime.random, long_seconds=LONG_WORK_S),
                self._history,
                runtime.process.name,
                limited=self._limited,
            )
        runtime.spawn(self._member.run, name="main")

    @contextmanager
    def _limited(self, what: str, seconds: float) -> Iterator[None]:
        """A call of the consumer, which must end within so many seconds in which it runs."""
        process = self.process
        assert process is not None
        began = process.running_seconds()
        try:
            yield
        finally:
            took = process.running_seconds() - began
            if took > seconds and not process.is_dead:
                self._history.took_long(process.name, what, took, seconds)

    def widen(self) -> None:
        """Let it subscribe to the topic that is made in the end, if it has not."""
        subscription = self._subscription
        if isinstance(self._member, PollingMember) and subscription.later is not subscription.first:
            self._member.change_topics(subscription.later)

    def keep_calm(self) -> None:
        """Let it stay in the group from now on."""
        if self._member is not None:
            self._member.keep_calm()

    def end(self) -> None:
        """Let it leave the group soon."""
        if self._member is not None:
            self._member.end()
