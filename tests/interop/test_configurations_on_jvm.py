"""At level 0.10.2 our configuration accepts and refuses the same values as that of 0.10.2.2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import ConfigError
from kafka08.levels import Level
from kafka08.topic_config import parse_topic_config
from tests.interop.java_oracle import JavaOracle, on_0_10_2

NAMED = {
    "listeners": "A://h:1,B://h:2",
    "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
}
BROKERS = (
    *({"delete.topic.enable": text} for text in ("true", "TRUE", "yes", " true ", "")),
    *({"compression.type": text} for text in ("gzip", "GZIP", "none", "producer")),
    *({"log.cleanup.policy": text} for text in ("compact,delete", "delete, compact", "COMPACT")),
    *({"log.retention.ms": text} for text in ("-1", "-2", "0", "x")),
    {"log.retention.ms": "-1", "log.retention.hours": "0"},
    {"log.retention.minutes": "0"},
    *({"connections.max.idle.ms": text} for text in ("-1", "5")),
    {"controlled.shutdown.max.retries": "0"},
    *({"security.inter.broker.protocol": text} for text in ("plaintext", "FOO")),
    *({"inter.broker.protocol.version": text} for text in ("0.9.0", "0.10", "0.10.3", "0.10.2.2")),
    {"inter.broker.protocol.version": "0.9.0", "log.message.format.version": "0.9.0"},
    {"inter.broker.protocol.version": "0.9.0", "log.message.format.version": "0.10.0"},
    *({"listeners": text} for text in ("h:1", "PLAINTEXT://h", "FOO://h:1", "PLAINTEXT://:1")),
    {"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2"},
    *({"listener.security.protocol.map": text} for text in ("", "x", "A:PLAINTEXT")),
    NAMED,
    *({**NAMED, "inter.broker.listener.name": text} for text in ("A", "a", "C", "")),
    {**NAMED, "inter.broker.listener.name": "A", "security.inter.broker.protocol": "PLAINTEXT"},
    *({"broker.id": text} for text in ("1001", "-1", "-2")),
    {"broker.id": "1001", "broker.id.generation.enable": "false"},
    {"replica.fetch.wait.max.ms": "40000"},
    {"offsets.commit.required.acks": "4"},
    {"log.cleaner.dedupe.buffer.size": "1048576"},
    {"max.connections.per.ip.overrides": "h:x"},
    {"bogus": "1"},
)
THROTTLED = "leader.replication.throttled.replicas"
TOPICS = (
    *({"cleanup.policy": text} for text in ("compact", "compact,delete", "COMPACT", "x")),
    *({"cleanup.policy": text} for text in ("", "compact,compact", "delete, compact,delete")),
    *({"cleanup.policy": text} for text in ("compact,", "compact;delete")),
    *({"retention.ms": text} for text in ("-2", str(-(2**63)), str(-(2**63) - 1), "1_000", " 5 ")),
    *({"retention.bytes": text} for text in ("-2", str(-(2**63)), "1_000", "+5")),
    *({"flush.messages": text} for text in ("0", "-1")),
    *({"segment.ms": text} for text in ("0", "-1", "1_000")),
    *({"segment.bytes": text} for text in ("13", "14")),
    *({"segment.index.bytes": text} for text in ("4", "-1")),
    *({"message.timestamp.type": text} for text in ("CreateTime", " LogAppendTime ")),
    *({"message.format.version": text} for text in ("0.9.0", " 0.10.2 ")),
    *({"min.cleanable.dirty.ratio": text} for text in ("0", "1", "1.5", "-0.5", "x")),
    *({THROTTLED: text} for text in ("", "*", "0:1", "0:1, 2:3", "0:1,", "x", "0", "-1:0", "*,x")),
    *({"unclean.leader.election.enable": text} for text in ("TRUE", "1")),
    *({"compression.type": text} for text in ("gzip", "GZIP", "none", " gzip ")),
    *({"file.delete.delay.ms": text} for text in ("2147483648", "-1")),
    *({"min.insync.replicas": text} for text in ("1", "0")),
    *({"message.timestamp.difference.max.ms": text} for text in ("0", "-1")),
    {"bogus": "1"},
)


class ConfigurationOracle(JavaOracle):
    def __init__(self) -> None:
        super().__init__(on_0_10_2(Path(__file__).parent / "ConfigurationOracle.java"))

    def takes(self, kind: str, pairs: dict[str, str]) -> bool:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        words = [f"{key}={value}".replace(" ", "\t") for key, value in pairs.items()]
        self._process.stdin.write(" ".join([kind, *words]) + "\n")
        self._process.stdin.flush()
        response = self._process.stdout.readline()
        assert response.startswith(("taken", "refused")), response
        return response.startswith("taken")


@pytest.fixture(scope="module")
def oracle() -> Iterator[ConfigurationOracle]:
    with ConfigurationOracle() as oracle:
        yield oracle


def is_taken(kind: str, pairs: dict[str, str]) -> bool:
    try:
        if kind == "topic":
            parse_topic_config(pairs, Level.V0_10_2)
        else:
            BrokerConfig({"api.level": "0.10.2", **pairs})
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize(("kind", "cases"), [("broker", BROKERS), ("topic", TOPICS)])
def test_both_accept_the_same_values(
    oracle: ConfigurationOracle, kind: str, cases: tuple[dict[str, str], ...]
) -> None:
    """We accept exactly the values that the JVM accepts. A value that only we accept would end a
    cluster's JVM brokers; one that only they accept would keep a broker from being replaced."""
    base = {"zookeeper.connect": "z:1", "broker.id": "1"} if kind == "broker" else {}
    found = {str(case): is_taken(kind, base | case) for case in cases}
    assert {str(case): oracle.takes(kind, base | case) for case in cases} == found
    assert {True, False} == set(found.values())
