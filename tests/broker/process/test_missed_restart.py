"""A restart that the controller missed is noticed, and repeated where it is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.broker.cluster.registration import RegistrationKeeper
from kafka08.broker.process.missed_restart import ATTEMPTS, MissedRestart
from kafka08.errors import SessionLost
from kafka08.structs import Broker, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.broker.fake_runtime import FakeRuntime
from tests.zk.in_process import InProcessWorld

ME, OTHER = 1, 2
TP = TopicPartition("t", 0)


class SteppedRuntime(FakeRuntime):
    """Calls `on_sleep` with each wait of the broker."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps: list[float] = []
        self.on_sleep: Callable[[], object] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.on_sleep()


class Cluster:
    """ZooKeeper with topic t on this broker, another broker that is the controller, and this one,
    which has just registered, with the log of t-0. It is also its own replica and log manager."""

    def __init__(self) -> None:
        world = InProcessWorld()
        self.runtime = SteppedRuntime()
        self.log_manager, self.broker_id = self, ME
        self.logs: dict[TopicPartition, Any] = {TP: None}
        self.announced: set[TopicPartition] = set()
        self.has_metadata = True
        self.store, other = (ClusterStore(self.client(world)) for _ in range(2))
        other.register_broker(Broker(OTHER, "h", 2), timestamp_ms=0)
        self.controller = nodes.ControllerNode(OTHER, 0)
        other.zk.create(paths.CONTROLLER, nodes.encode_controller(self.controller))
        other.zk.create(paths.topic("t"), nodes.encode_assignment({0: [ME, OTHER]}))
        runtime: Any = self.runtime
        self.registration = RegistrationKeeper(
            runtime, self.store, Broker(ME, "h", 1), lambda _: None, retry_s=1.0
        )
        self.registration._register()
        self.away: list[float] = []

    @staticmethod
    def client(world: InProcessWorld) -> ZkClient:
        client = ZkClient("h:1", adapter=world.connect, clock=world)
        client.start()
        return client

    def find(self, topic_partition: TopicPartition) -> object | None:
        return topic_partition if topic_partition in self.announced else None

    def is_registered(self) -> bool:
        return ME in self.store.broker_ids()

    def run(self, on_sleep: Callable[[], object] = lambda: None) -> list[float]:
        """Runs all checks; how long the broker was away each time."""

        def note() -> None:
            if not self.is_registered():
                self.away.append(self.runtime.sleeps[-1])
            on_sleep()

        self.runtime.on_sleep = note
        runtime: Any = self.runtime
        me: Any = self
        MissedRestart(
            runtime, self.store, me, self.registration, lambda: self.has_metadata, away_s=6.0
        ).start()
        return self.away


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_broker_without_states_leaves_until_the_controller_sees_it(cluster: Cluster) -> None:
    """A JVM controller whose event thread was busy found the same ids as before, and three brokers
    that crashed together led nothing for ever."""

    def controller_sees_it_leave() -> None:
        if not cluster.is_registered():
            cluster.announced.add(TP)

    assert [6.0] == cluster.run(controller_sees_it_leave)
    assert cluster.is_registered()


def test_a_broker_without_metadata_leaves_too(cluster: Cluster) -> None:
    """One without logs lacks no state, and would not know any topic that clients ask it for."""
    cluster.logs = {}
    cluster.has_metadata = False

    def controller_sees_it_leave() -> None:
        cluster.has_metadata = cluster.has_metadata or not cluster.is_registered()

    assert [6.0] == cluster.run(controller_sees_it_leave)


def test_a_broker_that_has_metadata_and_no_log_stays(cluster: Cluster) -> None:
    """There is nothing else that the controller could send it."""
    cluster.logs = {}
    assert cluster.run() == []


def test_it_stays_away_longer_each_time_and_gives_up(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A state that no controller can send must not make a broker come and go for ever."""
    assert [6.0, 12.0, 24.0] == cluster.run()
    assert ATTEMPTS == len(cluster.away)
    assert cluster.is_registered()
    assert "restart the controller" in caplog.text


def test_the_last_attempt_counts(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """A controller that sees the broker leave at last is not complained of."""

    def controller_sees_it_leave() -> None:
        if len(cluster.away) == ATTEMPTS:
            cluster.announced.add(TP)

    assert ATTEMPTS == len(cluster.run(controller_sees_it_leave))
    assert "restart the controller" not in caplog.text


def test_a_broker_that_may_have_left_registers_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response to its last leave was lost, and its session lives on: it stayed away for
    good."""
    withdraw = cluster.store.withdraw_broker

    def withdraw_without_response(broker_id: int) -> None:
        withdraw(broker_id)
        raise SessionLost("no reply")

    monkeypatch.setattr(cluster.store, "withdraw_broker", withdraw_without_response)
    assert ATTEMPTS == len(cluster.run())
    assert cluster.is_registered()


def test_a_broker_with_states_stays(cluster: Cluster) -> None:
    """Each controller of ours sends them within milliseconds."""
    cluster.announced.add(TP)
    assert [] == cluster.run()


def test_a_controller_that_is_still_sending_is_left_alone(cluster: Cluster) -> None:
    """Thousands of partitions come in several requests."""
    cluster.store.zk.set(paths.topic("t"), nodes.encode_assignment({n: [ME] for n in range(3)}))
    partitions = [TopicPartition("t", number) for number in range(3)]
    cluster.logs = dict.fromkeys(partitions)
    assert [] == cluster.run(lambda: cluster.announced.add(partitions.pop()))


def elsewhere(store: ClusterStore) -> None:
    store.zk.set(paths.topic("t"), nodes.encode_assignment({0: [OTHER]}))


def deleted(store: ClusterStore) -> None:
    store.zk.delete(paths.topic("t"))


def being_deleted(store: ClusterStore) -> None:
    store.zk.create(paths.delete_topic("t"))


def controlled_here(store: ClusterStore) -> None:
    store.zk.set(paths.CONTROLLER, nodes.encode_controller(nodes.ControllerNode(ME, 0)))


@pytest.mark.parametrize("change", [elsewhere, deleted, being_deleted, controlled_here])
def test_a_state_that_is_not_due_is_not_missed(
    cluster: Cluster, change: Callable[[ClusterStore], None]
) -> None:
    """The log is left over, or this broker itself sends the states."""
    change(cluster.store)
    assert [] == cluster.run()


def test_without_a_controller_it_waits(cluster: Cluster) -> None:
    """A held election, as at the start of an embedded cluster, or all of them start at once: the
    next controller sends everything."""
    cluster.store.zk.set(paths.CONTROLLER, nodes.encode_controller(nodes.ControllerNode(-1, 0)))
    waits = iter(range(20))

    def elect_at_last() -> None:
        if next(waits) == 10:
            cluster.announced.add(TP)

    assert [] == cluster.run(elect_at_last)


def test_a_lost_session_is_no_end_of_the_checks(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZooKeeper may be away when the broker has just started, too."""
    read, failures = cluster.store.controller, [SessionLost("away")]

    def controller() -> nodes.ControllerNode | None:
        if failures:
            raise failures.pop()
        return read()

    monkeypatch.setattr(cluster.store, "controller", controller)
    assert 3 == len(cluster.run())
