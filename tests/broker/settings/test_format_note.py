"""The line about the format of new messages that a broker logs at its start."""

from __future__ import annotations

import pytest

from kafka08.broker.settings.config import BrokerConfig

REFUSED = "Headers, idempotent producers and transactions are refused there"
NO_TIMES = "Timestamps are not stored"
ELSE = " where their topic has none of its own"
PEERS, FORMAT = "inter.broker.protocol.version", "log.message.format.version"


OWN = "brokers of this level"


@pytest.mark.parametrize(
    ("keys", "peers", "stored"),
    [
        ({"api.level": "0.8.2"}, OWN, "0.8.2.X"),
        ({"api.level": "0.9.0", PEERS: "0.8.2"}, "brokers of 0.8.2.X and later", "0.8.2.X"),
        ({"api.level": "0.10.2"}, OWN, "0.10.2-IV0"),
        ({"api.level": "0.10.2", FORMAT: "0.9.0"}, OWN, f"0.9.0.X{ELSE}. {NO_TIMES}"),
        ({"api.level": "0.11.0"}, OWN, "0.11.0-IV2"),
        ({"api.level": "0.11.0", FORMAT: "0.10.2"}, OWN, f"0.10.2-IV0{ELSE}. {REFUSED}"),
        (
            {"api.level": "0.11.0", PEERS: "0.10.2", FORMAT: "0.8.2"},
            "brokers of 0.10.2-IV0 and later",
            f"0.8.2.X{ELSE}. {REFUSED}. {NO_TIMES}",
        ),
    ],
)
def test_a_broker_says_its_format_and_what_is_refused(
    keys: dict[str, str], peers: str, stored: str
) -> None:
    """A broker that shares its cluster with older ones refused headers with UNKNOWN, and nothing
    in its log said why."""
    config = BrokerConfig({"broker.id": "1", "zookeeper.connect": "localhost", **keys})
    says = f"api.level={keys['api.level']} among {peers}; new messages have the format of {stored}"
    assert config.format_note == says
