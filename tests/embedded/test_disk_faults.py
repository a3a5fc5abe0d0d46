"""Disks of an embedded cluster that are full, fail or are slow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.embedded import EmbeddedBroker, EmbeddedCluster
from kafka08.errors import ConfigError
from kafka08.faults.disk import DiskFault
from kafka08.producer import KafkaProducer, ProducerRecord
from tests.waiting import until

PROFILE = {"flush.messages": "1"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2) as cluster:
        cluster.create_topic("t", replication_factor=2)
        cluster.create_topic("synced", replication_factor=2, config=PROFILE)
        yield cluster


@pytest.fixture(autouse=True)
def healed(cluster: EmbeddedCluster) -> Iterator[None]:
    yield
    cluster.heal()
    for topic in ("t", "synced"):
        cluster.wait.isr(topic)


def send(cluster: EmbeddedCluster, topic: str, value: bytes = b"x") -> int:
    """Its offset."""
    keys: dict[str, Any] = {"retries": 100, "retry_backoff_ms": 20, "acks": "all"}
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, **keys) as producer:
        return producer.send(ProducerRecord(topic, value)).result(20).offset


def halted(cluster: EmbeddedCluster, broker: EmbeddedBroker) -> str:
    """Wait until it has halted; its log."""
    until(lambda: not broker.running)
    cluster.check_alive()
    cluster.expire_session(broker)
    return broker.process.log.read_text()


def test_a_broker_with_a_full_disk_halts(cluster: EmbeddedCluster) -> None:
    """The other replica leads, and has the message that was sent meanwhile and those before it.
    Nothing that exists is lost, and with space the broker comes back."""
    first = send(cluster, "t")
    leader = cluster.leader_of("t")
    cluster.break_disk(leader, full=True)
    assert cluster.leader_of("t") is leader
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, retries=100, acks="all") as producer:
        sent = producer.send(ProducerRecord("t", b"x"))
        assert "No space left on device" in halted(cluster, leader)
        assert cluster.wait.leader("t", other_than=leader) is not leader
        assert sent.result(20).offset == first + 1
    cluster.heal()
    cluster.wait.isr("t")
    assert send(cluster, "t") == first + 2


def test_a_full_disk_stays_full_over_a_restart(cluster: EmbeddedCluster) -> None:
    """Repaired, the broker starts again."""
    cluster.break_disk(1, full=True)
    cluster.kill(1)
    cluster.brokers[1].start()
    cluster.brokers[1].may_halt = True
    send(cluster, "t")
    halted(cluster, cluster.brokers[1])
    cluster.repair_disk(1)
    cluster.restart(1)


def test_a_broker_whose_fsync_fails_halts(cluster: EmbeddedCluster) -> None:
    """Before it acknowledges what is not on disk."""
    offset = send(cluster, "synced")
    leader = cluster.leader_of("synced")
    cluster.break_disk(leader, failing_fsync=True)
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, retries=100, acks="all") as producer:
        sent = producer.send(ProducerRecord("synced", b"x"))
        assert "Input/output error" in halted(cluster, leader)
        assert sent.result(20).offset in (offset + 1, offset + 2)


def test_a_slow_disk_is_slow_until_it_is_repaired(cluster: EmbeddedCluster) -> None:
    """Each append waits so long."""
    leader = cluster.leader_of("t")
    cluster.break_disk(leader, delay_ms=150)
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:

        def seconds() -> float:
            began = time.monotonic()
            producer.send(ProducerRecord("t", b"x")).result(20)
            return time.monotonic() - began

        assert seconds() > 0.14
        cluster.repair_disk(leader)
        assert min(seconds() for _ in range(5)) < 0.14


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"ful": True}, "ful: a disk has no such fault; did you mean full"),
        ({"full": 1}, "full: 1 is neither true nor false"),
        ({"delay_ms": -1}, "delay_ms: -1 is not a number from 0"),
        ({}, "needs one of full, failing_fsync, delay_ms"),
    ],
)
def test_bad_faults_are_refused(cluster: EmbeddedCluster, values: Any, said: str) -> None:
    """The error names the key, and the broker's disk stays as it was."""
    with pytest.raises(ConfigError, match=said):
        cluster.break_disk(0, **values)
    cluster.check_alive()


def test_json_has_what_differs() -> None:
    """And makes the same fault."""
    fault = DiskFault(full=True, delay_ms=5)
    assert fault.to_json() == {"full": True, "delay_ms": 5}
    assert DiskFault.from_json(fault.to_json()) == fault
