"""api.level: the keys of a server.properties, their defaults, and refused values."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.cluster.inter_broker import inter_broker
from kafka08.broker.settings.config import BrokerConfig
from kafka08.config import LONG_MAX
from kafka08.errors import ConfigError
from kafka08.levels import LEVELS, Level
from kafka08.protocol_version import ProtocolVersion
from kafka08.structs import Endpoint

REQUIRED = {"broker.id": "0", "zookeeper.connect": "localhost:2181"}


def config(level: str, **keys: Any) -> BrokerConfig:
    given = {name.replace("_", "."): value for name, value in keys.items()}
    return BrokerConfig({**REQUIRED, "api.level": level, **given})


def test_the_default_is_the_oldest_level() -> None:
    """Without api.level a server.properties of 0.8.2.2 gives a broker of 0.8.2.2."""
    assert Level.V0_8_2 is BrokerConfig(REQUIRED).level


@pytest.mark.parametrize(
    ("level", "key", "default"),
    [
        ("0.8.2", "log_cleaner_enable", False),
        ("0.9.0", "log_cleaner_enable", True),
        ("0.10.2", "log_cleaner_dedupe_buffer_size", 128 << 20),
        ("0.9.0", "replica_lag_max_messages", None),
        ("0.9.0", "group_max_session_timeout_ms", 30_000),
        ("0.10.2", "group_max_session_timeout_ms", 300_000),
        ("0.9.0", "protocol_version", ProtocolVersion.V0_9_0),
        ("0.10.2", "protocol_version", ProtocolVersion.V0_10_2_IV0),
        ("0.10.2", "message_format", ProtocolVersion.V0_10_2_IV0),
    ],
)
def test_a_level_has_the_defaults_of_its_release(level: str, key: str, default: object) -> None:
    """Defaults equal those of KafkaConfig 0.8.2.2, 0.9.0.1 and 0.10.2.2."""
    assert default == getattr(config(level), key)


@pytest.mark.parametrize(
    ("level", "key"),
    [
        ("0.8.2", "inter.broker.protocol.version"),
        ("0.8.2", "listeners"),
        ("0.9.0", "broker.rack"),
        ("0.9.0", "log.message.format.version"),
        ("0.9.0", "replica.lag.max.messages"),
        ("0.10.2", "controller.message.queue.size"),
    ],
)
def test_a_key_of_another_level_is_unknown(
    level: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A key of another level gets the warning of an unknown key at start, and has no effect."""
    made = BrokerConfig({**REQUIRED, "api.level": level, key: "nonsense"})
    assert {key: "nonsense"} == made.unknown
    with caplog.at_level(logging.WARNING):
        made.log_notes()
    assert f"Property {key} is not valid at this api.level: it exists from" in caplog.text


def test_a_keyword_of_another_level_is_refused() -> None:
    """A keyword argument of another level is an error: only code has keywords, and code can be
    corrected."""
    with pytest.raises(ConfigError, match=r"broker\.rack: .* it exists from 0\.10\.2"):
        BrokerConfig(REQUIRED, broker_rack="r1")


@pytest.mark.parametrize("level", ["0.8", "1.0.0", ""])
def test_a_bad_level_is_refused(level: str) -> None:
    """The error has key, value and range."""
    with pytest.raises(ConfigError, match=r"api\.level: .* is not one of 0\.8\.2, 0\.9\.0"):
        config(level)


@pytest.mark.parametrize(
    ("level", "version", "expected"),
    [
        ("0.9.0", "0.8.2", ProtocolVersion.V0_8_2),
        ("0.9.0", "0.8.2.X", ProtocolVersion.V0_8_2),
        ("0.9.0", "0.9.0.1", ProtocolVersion.V0_9_0),
        ("0.10.2", "0.10.0-IV0", ProtocolVersion.V0_10_0_IV0),
        ("0.10.2", "0.10.0", ProtocolVersion.V0_10_0_IV1),
        ("0.10.2", "0.10.2", ProtocolVersion.V0_10_2_IV0),
        ("0.11.0", "0.11.0-IV1", ProtocolVersion.V0_11_0_IV1),
        ("0.11.0", "0.11.0", ProtocolVersion.V0_11_0_IV2),
    ],
)
def test_versions_are_read_as_kafka_reads_them(
    level: str, version: str, expected: ProtocolVersion
) -> None:
    """The first three numbers of a version count. A release means its newest internal version."""
    keys = {"inter_broker_protocol_version": version, "log_message_format_version": "0.8.2"}
    assert expected is config(level, **keys).protocol_version


@pytest.mark.parametrize(("level", "version"), [("0.9.0", "0.10.2"), ("0.10.2", "0.11.0")])
def test_a_level_refuses_versions_above_it(level: str, version: str) -> None:
    """A version above the level is refused; the release does not know it either."""
    with pytest.raises(ConfigError, match=r"inter\.broker\.protocol\.version: .* is not one"):
        config(level, inter_broker_protocol_version=version)


def test_a_pinned_broker_needs_a_pinned_message_format() -> None:
    """A lower inter.broker.protocol.version needs a message format that is not above it. The error
    has the text of 0.10.2.2."""
    with pytest.raises(
        ConfigError,
        match=r"log\.message\.format\.version 0\.10\.2-IV0 cannot be used when "
        r"inter\.broker\.protocol\.version is set to 0\.8\.2",
    ):
        config("0.10.2", inter_broker_protocol_version="0.8.2")


def test_listeners_are_read_by_name() -> None:
    """Listeners and advertised listeners are parsed by their names."""
    made = config(
        "0.10.2",
        listeners="CLIENT://:9092,internal://[::1]:9093",
        advertised_listeners="CLIENT://kafka:29092,INTERNAL://10.0.0.1:9093",
        listener_security_protocol_map="CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT",
        inter_broker_listener_name="internal",
    )
    assert (Endpoint("CLIENT", None, 9092), Endpoint("INTERNAL", "::1", 9093)) == made.listening
    assert ["CLIENT://kafka:29092", "INTERNAL://10.0.0.1:9093"] == [*map(str, made.advertised)]
    assert "INTERNAL" == made.inter_broker_listener


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"listeners": "PLAINTEXT://h:99999"}, "listeners: 'PLAINTEXT://h:99999' is not"),
        ({"listeners": "h:9092"}, "listeners: 'h:9092' is not NAME://host:port"),
        ({"listeners": "SSL://h:9092"}, "SSL is not supported"),
        ({"listeners": "A://h:9092"}, "no security protocol defined for listener A"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://a:2"}, "must have a different name"),
        ({"listeners": ","}, "has no listener"),
        (
            {
                "listeners": "A://h:1,B://h:1",
                "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT",
            },
            "must have a different port",
        ),
        (
            {"listeners": "A://h:1", "listener_security_protocol_map": "A:PLAINTEXT"},
            "inter.broker.listener.name: 'PLAINTEXT' is not one of the advertised listeners A",
        ),
        ({"listener_security_protocol_map": "A", "listeners": "A://h:1"}, "'A' is not NAME:"),
        (
            {"listeners": "PLAINTEXT://h:1", "advertised_listeners": "SASL_SSL://h:1"},
            "SASL_SSL is not supported",
        ),
        ({"broker_id": "1001"}, "broker.id: 1001 is outside the range -1 to 1000"),
        ({"log_retention_ms": "0"}, "log.retention.ms: 0 is neither"),
        ({"log_cleanup_policy": "COMPACT"}, "log.cleanup.policy: 'COMPACT' is not"),
        ({"inter_broker_listener_name": ""}, "inter.broker.listener.name: '' is not one"),
        (
            {"listener_security_protocol_map": "A:PLAINTEXT"},
            "'A:PLAINTEXT' has no protocol for the listener PLAINTEXT",
        ),
        (
            {
                "inter_broker_listener_name": "PLAINTEXT",
                "security_inter_broker_protocol": "PLAINTEXT",
            },
            "Only one of inter.broker.listener.name and security.inter.broker.protocol",
        ),
    ],
)
def test_contradictions_are_refused(keys: dict[str, str], says: str) -> None:
    """Contradictory keys are refused at start, as the JVM broker does."""
    with pytest.raises(ConfigError, match=says.replace("[", r"\[")):
        config("0.10.2", **keys)


def test_min_insync_replicas_is_the_topics_default_from_0_9_on() -> None:
    """From 0.9 on min.insync.replicas is the default of topics. 0.8.2.2 parses it without using
    it."""
    found = [config(level, min_insync_replicas=2).log_config() for level in LEVELS]
    assert [None, 2, 2, 2] == [made.min_insync_replicas for made in found]


@pytest.mark.parametrize(
    "keys", [{"delete.topic.enable": "TRUE"}, {"security.inter.broker.protocol": "plaintext"}]
)
def test_words_are_read_in_any_case_from_0_9_on(keys: dict[str, str]) -> None:
    """From 0.9 on words may have any case. 0.8.2.2 does not accept TRUE."""
    made = BrokerConfig({**REQUIRED, **keys, "api.level": "0.9.0"})
    assert made.delete_topic_enable == ("delete.topic.enable" in keys)
    with pytest.raises(ConfigError, match="neither 'true' nor 'false'"):
        BrokerConfig({**REQUIRED, "delete.topic.enable": "TRUE"})


def test_retention_may_be_unlimited_from_0_9_on() -> None:
    """From 0.9 on retention may be -1. 0.8.2.2 refuses it."""
    assert LONG_MAX == config("0.9.0", log_retention_ms=-1).log_config().retention_ms
    with pytest.raises(ConfigError, match=r"log\.retention\.ms"):
        config("0.8.2", log_retention_ms=-1)


def test_request_versions_rise_with_the_protocol_version() -> None:
    """The protocol version decides the versions of requests, by the table of ReplicaFetcherThread,
    ControllerChannelManager and KafkaServer 0.10.2.2."""
    names = ("registration", "fetch", "list_offsets", "update_metadata", "controlled_shutdown")
    rows = {
        str(version): tuple(getattr(inter_broker(version), name) for name in names)
        for version in ProtocolVersion
    }
    assert {
        "0.8.0.X": (1, 0, 0, 0, 0),
        "0.8.1.X": (1, 0, 0, 0, 0),
        "0.8.2.X": (1, 0, 0, 0, 0),
        "0.9.0.X": (2, 1, 0, 1, 1),
        "0.10.0-IV0": (2, 2, 0, 1, 1),
        "0.10.0-IV1": (4, 2, 0, 2, 1),
        "0.10.1-IV0": (4, 2, 0, 2, 1),
        "0.10.1-IV1": (4, 3, 0, 2, 1),
        "0.10.1-IV2": (4, 3, 1, 2, 1),
        "0.10.2-IV0": (4, 3, 1, 3, 1),
        "0.11.0-IV0": (4, 4, 1, 3, 1),
        "0.11.0-IV1": (4, 5, 1, 3, 1),
        "0.11.0-IV2": (4, 5, 1, 3, 1),
    } == rows


def test_every_key_of_the_releases_is_known() -> None:
    """Every key that KafkaConfig of a release defines is known (tests/data/broker_keys.json)."""
    data = Path(__file__).parent.parent / "data" / "broker_keys.json"
    for level, names in json.loads(data.read_text()).items():
        known = {name for name, key in config(level).keys.items() if key.exists}
        ours = {
            *("api.level", "kafka08.allow.less.safety", "kafka08.profile"),
            *("metrics.host", "metrics.port"),
        }
        assert set(names) == known - ours | {"log.dir"}, level
