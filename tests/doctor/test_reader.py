"""How the doctor shows brokers that respond late, and what changes while it reads."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from kafka08.doctor import EARLY_CHECKS, Snapshot, SnapshotReader, findings_of, reader
from kafka08.doctor.snapshot import BrokerFacts
from kafka08.errors import KafkaError
from kafka08.groups import Finding, GroupFacts, explain
from kafka08.observe.group_states import GroupStates
from kafka08.observe.layout import Layout
from kafka08.observe.reader import ClusterReader
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import ThreadRuntime
from kafka08.structs import Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.zk.in_process import InProcessWorld

T0 = TopicPartition("t", 0)


class ModelRuntime(ThreadRuntime):
    """With the model of ZooKeeper, and its clock."""

    def __init__(self, world: InProcessWorld) -> None:
        super().__init__(clock=world)
        self.zookeeper = world.connect  # type: ignore[method-assign]


def test_a_broker_that_answers_too_late_is_registered(
    zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is unreachable, as far as the doctor knows. Left out, it would count as missing: with
    replicas that it has, and leaders that it is."""
    answered = threading.Event()

    def ask_slowly(_: SnapshotReader, broker: BrokerFacts) -> BrokerFacts:
        answered.wait()
        return broker

    monkeypatch.setattr(SnapshotReader, "_ask", ask_slowly)
    monkeypatch.setattr(reader, "BROKER_TIMEOUT_MS", 10)
    with ZkClient(zk_connect, name="broker") as zk, SnapshotReader(zk_connect) as doctor:
        store = ClusterStore(zk)
        store.create_common_paths()
        store.register_broker(Broker(7, "h", 9092), timestamp_ms=0)
        brokers = doctor.read_snapshot().brokers
        answered.set()
    assert [7] == list(brokers)
    assert brokers[7].registration is not None
    assert brokers[7].unreachable is not None


def test_brokers_are_said_before_groups_are_read(
    zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that hangs makes the rest slow. The whole snapshot has what was found early, too."""
    early: list[str] = []

    def listed(*_: object) -> dict[str, object]:
        assert early, "groups are asked for"
        return {}

    def show(part: Snapshot) -> None:
        early.extend(map(str, findings_of(part, EARLY_CHECKS)))

    monkeypatch.setattr(GroupStates, "coordinated", listed)
    with ZkClient(zk_connect, name="broker") as zk, SnapshotReader(zk_connect) as doctor:
        store = ClusterStore(zk)
        store.create_common_paths()
        store.register_broker(Broker(7, "127.0.0.1", 1), timestamp_ms=0)
        found = {str(finding) for finding in findings_of(doctor.read_snapshot(show))}
    assert "Problem broker-unreachable: broker 7 (127.0.0.1:1)" in early[0]
    assert set(early) <= found


def test_a_change_while_groups_are_read_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups whose brokers do not respond take minutes. Leaders in ZooKeeper and those that brokers
    report are of the same time, and a topic is as old as it was when its partitions were read."""
    world = InProcessWorld()
    runtime = ModelRuntime(world)
    leader = 1

    def ask(_: SnapshotReader, found: BrokerFacts) -> BrokerFacts:
        return replace(found, unreachable=None, known_brokers=frozenset({1}), leaders={T0: leader})

    def no_client(*_: object) -> KafkaError:
        nonlocal leader
        leader = 2
        world.sleep(180)
        return KafkaError("no broker responds")

    monkeypatch.setattr(SnapshotReader, "_ask", ask)
    monkeypatch.setattr(ClusterReader, "_client", no_client)
    with connected(runtime) as zk, SnapshotReader("model", runtime=runtime) as doctor:
        store = ClusterStore(zk)
        store.create_common_paths()
        store.register_broker(Broker(1, "h", 9092), timestamp_ms=0)
        zk.create(paths.topic("t"), nodes.encode_assignment({0: (1,)}))
        store.create_leader_and_isr({T0: LeaderAndIsr(1, 0, (1,), 0, 1)})
        world.sleep(120)
        zk.create(paths.topic("new"), nodes.encode_assignment({0: (1,)}))
        found = {finding.check for finding in findings_of(doctor.read_snapshot())}
    assert set() == found & {"broker-stale-leaders", "partition-without-state"}


def test_a_broker_that_registers_while_topics_are_read_has_no_later_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Very many topics take long. What brokers did meanwhile is compared with a time after it."""
    world = InProcessWorld()
    runtime = ModelRuntime(world)
    layout = ClusterReader._layout
    with connected(runtime) as zk, SnapshotReader("model", runtime=runtime) as doctor:
        store = ClusterStore(zk)
        store.create_common_paths()

        def read_slowly(one: ClusterReader) -> Layout:
            world.sleep(180)
            store.register_broker(Broker(1, "h", 9092), timestamp_ms=0)
            return layout(one)

        monkeypatch.setattr(ClusterReader, "_layout", read_slowly)
        monkeypatch.setattr(SnapshotReader, "_ask", lambda _, found: found)
        found = {finding.check for finding in findings_of(doctor.read_snapshot())}
    assert "local-clock" not in found


def test_a_group_is_examined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One without problems, of a snapshot; it has as many facts as its topics have partitions."""
    runtime = ModelRuntime(InProcessWorld())
    examined: list[str] = []

    def counted(facts: GroupFacts) -> list[Finding]:
        examined.append(facts.group)
        return explain(facts)

    monkeypatch.setattr("kafka08.doctor.snapshot.explain", counted)
    monkeypatch.setattr(ClusterReader, "_client", lambda *_: KafkaError("no broker responds"))
    with connected(runtime) as zk, SnapshotReader("model", runtime=runtime) as doctor:
        ClusterStore(zk).create_common_paths()
        zk.ensure(paths.consumer_ids("g"))
        ClusterStore(zk).register_broker(Broker(1, "h", 9092), timestamp_ms=0)
        findings = doctor.read_snapshot().group_findings
    assert ["no-members"] == [finding.kind for finding in findings["g"]]
    assert ["g"] == examined


def connected(runtime: ClientRuntime) -> ZkClient:
    return ZkClient("model", adapter=runtime.zookeeper, clock=runtime, name="test")
