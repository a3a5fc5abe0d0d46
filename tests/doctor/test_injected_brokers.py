"""Faults of brokers, of times and of groups' numbers that znodes alone do not have.

A MetadataServer is a broker that responds to Metadata requests, as slow and as wrong as it is told.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from kafka08.clock import SYSTEM_CLOCK, SystemClock
from kafka08.doctor import CHECKS, SnapshotReader, checks_brokers, findings_of, reader
from kafka08.protocol.codec import decode_request, encode_response
from kafka08.protocol.metadata import (
    BrokerEndpoint,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from kafka08.runtime.threads import ThreadRuntime
from kafka08.structs import OFFSETS_TOPIC
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from tests.doctor.test_injected_faults import (
    STATES,
    Znodes,
    broker,
    faults,
    healthy,
    member,
    reassign,
    topic,
    write,
)
from tests.doctor.test_injected_files import FAULTS as FILE_FAULTS
from tests.network.frame_server import FrameServer

HOUR_S = 3600.0
MANY = 1001


class ShiftedClock(SystemClock):
    """The system's clock, with a wall time that is so many seconds ahead."""

    def __init__(self, seconds: float) -> None:
        self._ms = int(seconds * 1000)

    def time_ms(self) -> int:  # type: ignore[override]
        return SYSTEM_CLOCK.time_ms() + self._ms


class MetadataServer(FrameServer):
    """Responds with `brokers` and `leader` of topic t, `delay_s` later."""

    def __init__(self) -> None:
        self.brokers = [1, 2]
        self.leader = 1
        self.delay_s = 0.0
        super().__init__()

    def respond(self, payload: bytes) -> bytes:
        header, request = decode_request(payload)
        time.sleep(self.delay_s)
        return encode_response(self._metadata(), header.correlation_id, request.version)

    def _metadata(self) -> MetadataResponse:
        partition = PartitionMetadata(0, 0, self.leader, [1, 2], [1, 2])
        return MetadataResponse(
            [BrokerEndpoint(n, "127.0.0.1", self.port) for n in self.brokers],
            [TopicMetadata(0, "t", [partition])],
        )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MetadataServer]:
    monkeypatch.setattr(reader, "BROKER_TIMEOUT_MS", 60_000)
    with MetadataServer() as server:
        yield server


def answering(server: MetadataServer) -> Znodes:
    """A cluster of two brokers, both at the server's port."""
    return {
        **{f"/brokers/ids/{n}": broker(server.port) for n in (1, 2)},
        **topic("t", (1, 2)),
        "/controller": {"version": 1, "brokerid": 1, "timestamp": "0"},
        "/controller_epoch": "5",
    }


def names(connect: str, *, ahead_s: float = 0.0) -> set[str]:
    """The checks that find something, at a time that is so far ahead."""
    runtime = ThreadRuntime(clock=ShiftedClock(ahead_s))
    with SnapshotReader(connect, runtime=runtime) as opened:
        return {finding.check for finding in findings_of(opened.read_snapshot())}


BROKER_FAULTS: Mapping[str, Callable[[MetadataServer], object]] = {
    "broker-unreachable": lambda server: server.close(),
    "controller-unreachable": lambda server: server.close(),
    "broker-misses-brokers": lambda server: server.brokers.remove(2),
    "broker-stale-leaders": lambda server: setattr(server, "leader", 2),
}


@pytest.mark.parametrize("name", sorted(BROKER_FAULTS))
def test_what_a_broker_says_is_checked(
    name: str,
    server: MetadataServer,
    zk: ZkClient,
    zk_connect: str,
) -> None:
    """A broker that responds rightly has no finding; then each fault of its response has one."""
    write(zk, answering(server))
    settled_s = 2 * checks_brokers.STARTING_MS / 1000
    assert {*BROKER_FAULTS}.isdisjoint(names(zk_connect, ahead_s=settled_s))
    BROKER_FAULTS[name](server)
    assert name in names(zk_connect, ahead_s=settled_s)


def test_a_slow_broker_is_found(
    server: MetadataServer, zk: ZkClient, zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the time that its response takes, here against a limit that no machine is too busy for."""
    write(zk, answering(server))
    monkeypatch.setattr(checks_brokers, "SLOW_S", 30.0)
    assert "broker-slow" not in names(zk_connect)
    monkeypatch.setattr(checks_brokers, "SLOW_S", 0.1)
    server.delay_s = 0.2
    assert "broker-slow" in names(zk_connect)


def test_a_slow_zookeeper_is_found(
    zk: ZkClient, zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the time of one read."""
    write(zk, healthy())
    monkeypatch.setattr(checks_brokers, "ZOOKEEPER_SLOW_S", 30.0)
    assert "zookeeper-slow" not in names(zk_connect)
    monkeypatch.setattr(checks_brokers, "ZOOKEEPER_SLOW_S", 0.1)
    exists = ZkClient.exists

    def exists_later(client: ZkClient, path: str) -> bool:
        time.sleep(0.2)
        return exists(client, path)

    monkeypatch.setattr(ZkClient, "exists", exists_later)
    assert "zookeeper-slow" in names(zk_connect)


LATE_FAULTS: Mapping[str, Znodes] = {
    "partition-without-state": {STATES.format("t", 0): None},
    "reassignment-stuck": reassign("t", 1, 2),
    "election-stuck": {
        "/admin/preferred_replica_election": {
            "version": 1,
            "partitions": [{"topic": "t", "partition": 0}],
        }
    },
    "topic-half-deleted": {"/admin/delete_topics/t": ""},
    "deletion-of-nothing": {"/admin/delete_topics/gone": ""},
}


@pytest.mark.parametrize("name", sorted(LATE_FAULTS))
def test_what_the_controller_left_undone_is_found(name: str, zk: ZkClient, zk_connect: str) -> None:
    """Not when it was just written: the controller works on it."""
    write(zk, healthy())
    write(zk, LATE_FAULTS[name])
    assert name not in names(zk_connect)
    assert name in names(zk_connect, ahead_s=3 * HOUR_S)


def test_a_clock_that_is_behind_is_found(zk: ZkClient, zk_connect: str) -> None:
    """This machine's, by the newest znode."""
    write(zk, healthy())
    assert "local-clock" not in names(zk_connect)
    assert "local-clock" in names(zk_connect, ahead_s=-HOUR_S)


def children(path: str) -> Znodes:
    return {f"{path}/{n:010d}": "" for n in range(MANY)}


FAULTS: Mapping[str, Callable[[], Znodes]] = {
    "broker-loopback": lambda: {"/brokers/ids/2": broker(2, host="kafka.invalid")},
    "isr-notifications": lambda: children("/isr_change_notification"),
    "config-changes-pile-up": lambda: children(paths.CONFIG_CHANGES),
    "groups-left-out": lambda: {f"/consumers/g{n}/offsets/t/0": "0" for n in range(201)},
    "groups-not-read": lambda: {
        "/brokers/ids/1": broker(1, version=2, endpoints=["PLAINTEXT://127.0.0.1:1"])
    },
    "group-no-owner": lambda: {"/consumers/g/ids/g_host-1-aa": member(t=1)},
}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_further_faults_in_zookeeper_are_found(name: str, zk: ZkClient, zk_connect: str) -> None:
    """Only after they were written."""
    write(zk, healthy())
    assert name not in names(zk_connect)
    write(zk, FAULTS[name]())
    assert name in names(zk_connect)


def test_owners_that_disagree_with_the_members_are_found(zk: ZkClient, zk_connect: str) -> None:
    """A live member that owns what another should own."""
    write(zk, healthy())
    for name in ("a", "b"):
        zk.create(f"/consumers/g/ids/g_{name}", json.dumps(member(t=1)), ephemeral=True)
    for partition, name in enumerate("bab"):
        zk.create(f"/consumers/g/owners/t/{partition}", f"g_{name}-0", ephemeral=True)
    assert "group-misplaced" in names(zk_connect)


def test_a_group_that_cannot_be_read_is_found(zk: ZkClient, zk_connect: str) -> None:
    """Its partition of the offsets topic has no leader, so its offsets there are unknown."""
    write(zk, {**healthy(), "/consumers/g/offsets/t/0": "0"})
    assert "group-unreadable" not in names(zk_connect)
    write(zk, topic(OFFSETS_TOPIC, (9,)))
    assert "group-unreadable" in names(zk_connect)


ELSEWHERE = {
    "broker-slow",
    "disk-nearly-full",
    "group-misplaced",
    "group-unreadable",
    "local-clock",
    "zookeeper-slow",
}
"""Tests of their own, here and in test_injected_files.py."""
ON_A_CLUSTER = {
    "group-no-members",
    "group-never-committed",
    "group-outside-log",
    "group-rebalancing",
    "group-stores-disagree",
    "offsets-expiring",
    "transaction-hanging",
    "transaction-overdue",
}
"""Offsets, members and transactions beside real logs and coordinators: test_doctor.py and
test_transactions.py of tests/integration."""


def test_every_check_has_an_injected_fault() -> None:
    """A new check needs a fault that the reader finds in ZooKeeper, at brokers or in files."""
    found = {*faults(), *FILE_FAULTS, *BROKER_FAULTS, *LATE_FAULTS, *FAULTS}
    assert {check.name for check in CHECKS} == found | ELSEWHERE | ON_A_CLUSTER
