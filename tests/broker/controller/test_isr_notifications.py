"""A controller of 0.9 reads the notifications of changed ISRs, sends UpdateMetadata, and deletes
them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kafka08.levels import Level
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.operations import Get, Operation
from tests.broker.controller.conftest import Cluster
from tests.broker.scripted_broker import ScriptedBroker
from tests.waiting import until

PINNED = {"api_level": "0.9.0", "inter_broker_protocol_version": "0.8.2"}
TP = TopicPartition("t", 0)


def isrs_told(broker: ScriptedBroker) -> list[list[int]]:
    """The ISRs of TP in the UpdateMetadata requests to a broker, in order."""
    return [
        list(state.isr)
        for received in broker.received
        if isinstance(received.request, UpdateMetadataRequest)
        for state in received.request.partition_states
        if (state.topic, state.partition) == TP
    ]


def are_removed(cluster: Cluster) -> bool:
    return not cluster.zk.children_or_empty(paths.ISR_CHANGES)


@pytest.fixture
def brokers(cluster: Cluster) -> list[ScriptedBroker]:
    """The leader and the follower of TP, once there is a controller."""
    cluster.store.create_common_paths(Level.V0_9_0)
    brokers = [cluster.broker(1), cluster.broker(2)]
    cluster.create_topic("t", {0: (1, 2)})
    return brokers


def test_all_brokers_hear_of_an_isr_that_a_leader_changed(
    cluster: Cluster, brokers: list[ScriptedBroker]
) -> None:
    """All brokers get one UpdateMetadata with the state in ZooKeeper, and the notification is
    deleted. One that cannot be parsed, or names no partition of this cluster, is deleted too."""
    cluster.active_controller(1, **PINNED)
    cluster.wait_for_state("t", 0, 1, (1, 2))
    until(lambda: all([1, 2] in isrs_told(b) for b in brokers), "the topic")
    cluster.change_isr("t", 0, (1,))
    cluster.store.notify_of_isr_changes([TP, TopicPartition("gone", 3)])
    for broker in brokers:
        until(lambda b=broker: [1] in isrs_told(b), "the ISR")  # type: ignore[misc]
    until(lambda: are_removed(cluster), "the notification to be removed")
    cluster.zk.create(paths.isr_change(), "nonsense", sequence=True)
    until(lambda: are_removed(cluster), "nonsense to be removed")
    cluster.change_isr("t", 0, (1, 2))
    cluster.store.notify_of_isr_changes([TP])
    for broker in brokers:
        until(lambda b=broker: [1, 2] == isrs_told(b)[-1], "the ISR")  # type: ignore[misc]


def test_states_are_read_in_the_order_of_partitions(
    cluster: Cluster, brokers: list[ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states that notifications name are read in one order, whatever the hashes of topics in
    this process are: otherwise the seed of a simulated run would not mean one run."""
    controller = cluster.active_controller(1, **PINNED)
    many = [TopicPartition("many", number) for number in range(20)]
    cluster.create_topic("many", {tp.partition: (1, 2) for tp in many})
    for tp in many:
        cluster.wait_for_state(*tp, 1, (1, 2))
    zk = cluster.zk_of(controller)
    pipeline = zk.pipeline
    read: list[str] = []

    def noting(operations: Iterable[Operation], **options: Any) -> list[Any]:
        wanted = list(operations)
        read.extend(one.path for one in wanted if isinstance(one, Get))
        return pipeline(wanted, **options)

    monkeypatch.setattr(zk, "pipeline", noting)
    cluster.store.notify_of_isr_changes(many)
    until(lambda: are_removed(cluster), "the notification to be removed")
    states = [paths.partition_state(*tp) for tp in many]
    assert states == [path for path in read if path in states]


def test_a_new_controller_removes_old_notifications(
    cluster: Cluster, brokers: list[ScriptedBroker]
) -> None:
    """A new controller deletes notifications that were written under a controller of 0.8."""
    for _ in range(3):
        cluster.store.notify_of_isr_changes([TP])
    assert not are_removed(cluster)
    cluster.active_controller(1, **PINNED)
    until(lambda: are_removed(cluster), "the notifications to be removed")


def test_a_controller_of_0_8_leaves_them(cluster: Cluster, brokers: list[ScriptedBroker]) -> None:
    """A controller of 0.8 ignores notifications."""
    cluster.store.notify_of_isr_changes([TP])
    cluster.active_controller(1)
    until(lambda: all([1, 2] in isrs_told(b) for b in brokers), "the topic")
    cluster.change_isr("t", 0, (1,))
    cluster.store.notify_of_isr_changes([TP])
    cluster.create_topic("later", {0: (1,)})
    cluster.wait_for_state("later", 0, 1, (1,))
    assert 2 == len(cluster.zk.children(paths.ISR_CHANGES))


@pytest.mark.parametrize(("version", "reads"), [(1, False), (2, True), (None, False)])
def test_the_registration_shows_whether_the_controller_reads_them(
    cluster: Cluster, version: int | None, reads: bool
) -> None:
    """The controller's registration shows whether it reads notifications. Without a controller they
    are not read."""
    if version is not None:
        cluster.zk.create(paths.CONTROLLER, nodes.encode_controller(nodes.ControllerNode(7)))
        registration = nodes.BrokerRegistration("h", 1, version=version, endpoints=("A://h:1",))
        level = Level.V0_8_2 if version == 1 else Level.V0_9_0
        cluster.zk.create(paths.broker(7), nodes.encode_broker(registration, level))
    assert reads == cluster.store.controller_reads_isr_changes()
