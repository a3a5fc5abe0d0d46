"""A real Controller on threads, a real ZooKeeper, and scripted brokers."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from kafka08.broker.controller.controller import Controller
from kafka08.broker.settings.config import BrokerConfig
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.resender import Resender
from kafka08.zk.store import ClusterStore
from tests.broker.controller.holds import Holds
from tests.broker.scripted_broker import ScriptedBroker
from tests.broker.thread_broker import ThreadBroker
from tests.waiting import until

AT_0_10_2 = {
    "api_level": "0.10.2",
    "inter_broker_protocol_version": "0.8.2",
    "log_message_format_version": "0.8.2",
}
"""The keys of a controller of this level that scripted brokers understand."""


def led(received: Iterable[object]) -> dict[tuple[str, int], tuple[int, int]]:
    """(topic, partition) → (leader, leader epoch) of the last LeaderAndIsr."""
    return {
        (state.topic, state.partition): (state.leader, state.leader_epoch)
        for item in received
        if isinstance(request := getattr(item, "request", None), LeaderAndIsrRequest)
        for state in request.partition_states
    }


def lose_the_next_response(monkeypatch: pytest.MonkeyPatch, zk: ZkClient) -> None:
    """The next transaction is done and its reply lost, so the client sends it again."""
    write_all = zk.write_all

    def twice(*args: object) -> object:
        monkeypatch.undo()
        write_all(*args)  # type: ignore[arg-type]
        return write_all(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(zk, "write_all", twice)


class Cluster:
    """Controllers and scripted brokers below one chroot. They end together."""

    def __init__(self, zk_connect: str) -> None:
        self.connect = zk_connect
        self.zk = ZkClient(zk_connect, name="test cluster")
        self.zk.start()
        self.store = ClusterStore(self.zk)
        self.store.create_common_paths()
        self._brokers: list[ScriptedBroker] = []
        self._controllers: list[tuple[Controller, ZkClient]] = []

    def broker(self, broker_id: int, *, register: bool = True) -> ScriptedBroker:
        broker = ScriptedBroker(broker_id, self.connect)
        self._brokers.append(broker)
        if register:
            broker.register()
        return broker

    def controller(
        self, broker_id: int, *, runtime: ThreadBroker | None = None, **keys: Any
    ) -> Controller:
        """A started controller with a ZooKeeper session of its own."""
        zk = ZkClient(self.connect, name=f"controller {broker_id}")
        zk.start()
        config = BrokerConfig(
            {"broker.id": broker_id, "zookeeper.connect": self.connect, "host.name": "127.0.0.1"},
            port=19391,
            **keys,
        )
        threads: Any = runtime or ThreadBroker()
        controller = Controller(threads, config, ClusterStore(zk))
        controller.startup()
        self._controllers.append((controller, zk))
        return controller

    def active_controller(self, broker_id: int, **keys: Any) -> Controller:
        controller = self.controller(broker_id, **keys)
        until(lambda: controller.is_active, f"controller {broker_id} to be elected")
        return controller

    def zk_of(self, controller: Controller) -> ZkClient:
        return next(zk for c, zk in self._controllers if c is controller)

    def stop(self, controller: Controller) -> None:
        """Stops a controller and closes its session, as a clean stop of its broker does."""
        controller.shutdown()
        self.zk_of(controller).close()

    def kill(self, controller: Controller) -> None:
        """Ends a controller's session without closing it, like a crash."""
        self.zk_of(controller).close()

    def create_topic(
        self, topic: str, assignment: dict[int, tuple[int, ...]], **config: str
    ) -> None:
        """Writes the znodes that kafka-topics writes, in its order."""
        overrides = {name.replace("_", "."): value for name, value in config.items()}
        self.zk.create(paths.topic_config(topic), nodes.encode_topic_config(overrides))
        self.zk.create(paths.topic(topic), nodes.encode_assignment(assignment))

    def state(self, topic: str, partition: int) -> LeaderAndIsr | None:
        tp = TopicPartition(topic, partition)
        return self.store.leader_and_isr([tp]).get(tp)

    def wait_for_state(
        self, topic: str, partition: int, leader: int, isr: tuple[int, ...]
    ) -> LeaderAndIsr:
        """Waits until ZooKeeper has this leader and ISR."""

        def reached() -> bool:
            state = self.state(topic, partition)
            return state is not None and (state.leader, state.isr) == (leader, isr)

        until(reached, f"leader {leader} and ISR {isr} of [{topic},{partition}]")
        state = self.state(topic, partition)
        assert state is not None
        return state

    def change_isr(self, topic: str, partition: int, isr: tuple[int, ...]) -> None:
        """Writes an ISR as the partition's leader does: again, if the controller has written the
        state meanwhile."""
        tp = TopicPartition(topic, partition)

        def is_written() -> bool:
            state = self.state(topic, partition)
            assert state is not None
            changed = replace(state, isr=isr)
            return isinstance(self.store.update_leader_and_isr({tp: changed})[tp], LeaderAndIsr)

        until(is_written, f"the ISR {isr} of {tp}")

    def close(self) -> None:
        for controller, _ in self._controllers:
            self.stop(controller)
        for broker in self._brokers:
            broker.close()
        self.zk.close()


@pytest.fixture
def cluster(zk_connect: str) -> Iterator[Cluster]:
    cluster = Cluster(zk_connect)
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def holds(monkeypatch: pytest.MonkeyPatch) -> Iterator[Holds]:
    """A runtime whose controller also switches where it waits for replies of ZooKeeper. Without the
    collector, whose turn is not the fault of who happens to make the last of 50,000 objects."""
    holds = Holds()
    wait = Resender._wait

    def switched(*args: Any) -> None:
        holds.switch()
        wait(*args)
        holds.switch()

    monkeypatch.setattr(Resender, "_wait", switched)
    gc.collect()
    gc.disable()
    yield holds
    gc.enable()
