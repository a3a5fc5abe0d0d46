"""BrokerConfig: the keys of KafkaConfig 0.8.2.2, their defaults, ranges and rules."""

from __future__ import annotations

import pytest

from kafka08.broker.settings.config import BrokerConfig
from kafka08.config import parse_properties
from kafka08.errors import ConfigError

REQUIRED = {"broker.id": "0", "zookeeper.connect": "localhost:2181"}

SHIPPED = """
# The server.properties that comes with 0.8.2.2, without its comments
broker.id=0
port=9092
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
log.cleaner.enable=false
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=6000
"""


def test_the_shipped_file_works_unchanged() -> None:
    """The shipped server.properties has no unknown key. Keys without an effect here are listed."""
    config = BrokerConfig(parse_properties(SHIPPED))
    assert {} == config.unknown
    assert [
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
    ] == config.without_effect


def test_two_keys_are_required() -> None:
    """broker.id and zookeeper.connect are required, with the JVM's error texts."""
    for key in REQUIRED:
        rest = {name: value for name, value in REQUIRED.items() if name != key}
        with pytest.raises(ConfigError, match=f"Missing required property '{key}'"):
            BrokerConfig(rest)


def test_defaults_reach_the_logs() -> None:
    """These keys give the same defaults of topics as LogConfig of 0.8.2.2."""
    log_config = BrokerConfig(REQUIRED).log_config()
    assert 1 << 30 == log_config.segment_bytes
    assert 168 * 3_600_000 == log_config.retention_ms == log_config.segment_ms
    assert 1_000_012 == log_config.max_message_bytes
    assert not log_config.compact


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"log.retention.ms": 5, "log.retention.minutes": 1, "log.retention.hours": 1}, 5),
        ({"log.retention.minutes": 2, "log.retention.hours": 1}, 120_000),
        ({"log.retention.hours": 1}, 3_600_000),
    ],
)
def test_the_finest_retention_key_wins(keys: dict[str, int], expected: int) -> None:
    """log.retention.ms overrides .minutes, and that overrides .hours."""
    assert expected == BrokerConfig({**REQUIRED, **keys}).log_config().retention_ms


def test_the_finest_roll_key_wins() -> None:
    """log.roll.ms overrides log.roll.hours, and the same holds for the jitter."""
    config = BrokerConfig(
        {**REQUIRED, "log.roll.hours": 2, "log.roll.jitter.hours": 1, "log.roll.jitter.ms": 7}
    )
    assert 7_200_000 == config.log_roll_time_ms
    assert 7 == config.log_roll_jitter_time_ms
    assert 9 == BrokerConfig({**REQUIRED, "log.roll.ms": 9}).log_roll_time_ms


def test_log_dir_is_another_name_of_log_dirs() -> None:
    """log.dirs overrides log.dir. Blanks and empty items are removed."""
    assert ["/a"] == BrokerConfig({**REQUIRED, "log.dir": "/a"}).log_directories
    both = {**REQUIRED, "log.dir": "/a", "log.dirs": "/b, /c,"}
    assert ["/b", "/c"] == BrokerConfig(both).log_directories


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("broker.id", "-1"),
        ("port", "70000"),
        ("log.segment.bytes", "13"),
        ("log.retention.ms", "-1"),
        ("log.retention.hours", "0"),
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "host"),
        ("log.dirs", " , "),
        ("replica.fetch.max.bytes", "1000011"),
        ("replica.fetch.wait.max.ms", "10001"),
        ("offsets.commit.required.acks", "4"),
        ("offsets.topic.compression.codec", "brotli"),
        ("auto.create.topics.enable", "yes"),
    ],
)
def test_a_bad_value_is_an_error_that_names_key_and_value(key: str, value: str) -> None:
    """A bad value is refused at start, before any file is opened, with key and value."""
    with pytest.raises(ConfigError) as caught:
        BrokerConfig({**REQUIRED, key: value})
    assert key in str(caught.value)
    assert value in str(caught.value)


def test_connection_limits_by_host() -> None:
    """max.connections.per.ip.overrides has pairs `host:count`. An IPv6 address contains colons, and
    may be in brackets."""
    overrides = {"max.connections.per.ip.overrides": "127.0.0.1:5, ::1:7, [::2] : 8"}
    limits = BrokerConfig({**REQUIRED, **overrides}).connection_limits
    assert {"127.0.0.1": 5, "::1": 7, "::2": 8} == limits


def test_the_offsets_codec_is_a_number_or_a_name() -> None:
    """offsets.topic.compression.codec may be a number or a name."""
    for text, number in (("0", 0), ("gzip", 1), ("2", 2), ("lz4", 3)):
        config = BrokerConfig({**REQUIRED, "offsets.topic.compression.codec": text})
        assert number == config.offsets_codec


def test_min_insync_replicas_of_the_broker_is_not_the_topics_default() -> None:
    """0.8.2.2 parses the broker's min.insync.replicas and never uses it. A warning says that it has
    no effect."""
    config = BrokerConfig({**REQUIRED, "min.insync.replicas": 2})
    assert None is config.log_config().min_insync_replicas
    assert ["min.insync.replicas"] == config.without_effect


def test_every_key_is_documented() -> None:
    """Every key has one sentence for the configuration reference."""
    assert [] == [name for name, declared in BrokerConfig.KEYS.items() if not declared.doc]


def test_each_worker_of_the_cleaner_gets_its_share() -> None:
    """Workers share the memory, half of the I/O buffer is for writing, and one read has at most 1
    MB."""
    keys = {
        "log.cleaner.threads": "2",
        "log.cleaner.dedupe.buffer.size": str(48 << 20),
        "log.cleaner.io.buffer.size": "400000",
        "log.cleaner.io.buffer.load.factor": "0.5",
    }
    cleaner = BrokerConfig(REQUIRED | keys).cleaner_config()
    assert (24 << 20, 100_000, 0.5) == (
        cleaner.map_bytes,
        cleaner.chunk_bytes,
        cleaner.load_factor,
    )
    large = BrokerConfig(REQUIRED | {"log.cleaner.io.buffer.size": str(1 << 30)})
    assert 1 << 20 == large.cleaner_config().chunk_bytes


def test_a_worker_of_the_cleaner_needs_more_than_a_megabyte() -> None:
    """A worker of the cleaner needs more than 1 MB, as in KafkaConfig. The error has key and
    value."""
    keys = {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": str(2 << 20)}
    with pytest.raises(ConfigError, match=r"log\.cleaner\.dedupe\.buffer\.size: 2097152"):
        BrokerConfig(REQUIRED | keys)


def test_the_safe_profile_is_a_promise() -> None:
    """The profile sets two keys, and a configuration that sets one of them to another value is
    refused."""
    safe = {**REQUIRED, "kafka08.profile": "safe"}
    config = BrokerConfig(safe)
    assert (False, 2, []) == (
        config.unclean_leader_election_enable,
        config.least_in_sync,
        config.without_effect,
    )
    assert 3 == BrokerConfig(safe, min_insync_replicas=3).least_in_sync
    assert 1 == BrokerConfig(REQUIRED, min_insync_replicas=3).least_in_sync
    for name, value in (("unclean.leader.election.enable", "true"), ("min.insync.replicas", 1)):
        with pytest.raises(ConfigError, match=f"^{name}: .*safe"):
            BrokerConfig({**safe, name: value})
