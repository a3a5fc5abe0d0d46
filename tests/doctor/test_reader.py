"""How the doctor shows brokers that respond late."""

from __future__ import annotations

import threading

import pytest

from kafka08.doctor import SnapshotReader, reader
from kafka08.doctor.snapshot import BrokerFacts
from kafka08.structs import Broker
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore


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
