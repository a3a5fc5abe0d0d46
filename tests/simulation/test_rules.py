"""A planted defect is found: each rule is looked at, and a run can break it."""

from __future__ import annotations

import pytest

from kafka08.consumer.session import SessionGate
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.simulation import workload
from kafka08.simulation.run import simulate

SEEDS_MAX = 40


def first_verdict(seed: int) -> str:
    """Of the first run that breaks a rule, from that seed on."""
    for one in range(seed, seed + SEEDS_MAX):
        if verdict := simulate(one).verdict:
            return verdict
    raise AssertionError(f"not found by {SEEDS_MAX} seeds")


def test_lost_acknowledgements_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Producers that wait for the leader alone lose what it had alone when it died."""

    def with_acks_1(properties: dict[str, object]) -> KafkaProducerConfig:
        return KafkaProducerConfig({**properties, "acks": "1"})

    monkeypatch.setattr(workload, "KafkaProducerConfig", with_acks_1)
    assert first_verdict(0).startswith("lost: ")


def test_messages_without_ownership_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that goes on after its session has ended is handed what it does not own."""
    monkeypatch.setattr(SessionGate, "deadline", lambda self: self._clock.monotonic() + 1000)
    monkeypatch.setattr(SessionGate, "check", lambda self: None)
    assert " was handed " in first_verdict(18)
