"""The text about the state of a broker."""

from __future__ import annotations

import pytest

from kafka08.embedded.broker_state import BrokerState, Condition


@pytest.mark.parametrize(
    ("condition", "exit_code", "sentence"),
    [
        ("running", None, "Broker 1 runs at h:9092 as process 4711."),
        ("stopped", 0, "Broker 1 was stopped at TIME."),
        ("killed", -9, "Broker 1 was killed at TIME."),
        ("died", -9, "Broker 1 died at TIME (SIGKILL); its log is /server.log."),
        ("died", 1, "Broker 1 died at TIME (exit code 1); its log is /server.log."),
        ("died", -62, "Broker 1 died at TIME (signal 62); its log is /server.log."),
    ],
)
def test_the_state_is_a_sentence(
    condition: Condition, exit_code: int | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text has the broker's address, or when and how it ended."""
    monkeypatch.setenv("TZ", "UTC")
    state = BrokerState(1, "h:9092", condition, 4711, exit_code, 86400.0 * 365, "/server.log")
    assert str(state) == sentence.replace("TIME", "1971-01-01 00:00:00")
