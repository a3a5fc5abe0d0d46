"""The settings of a task besides its range, and the Kafka keys that they come from. Pure.

Spark sends these objects to the workers, where they are keys of caches (`connections`), so they are
small, frozen and hashable.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf
from typing import Final

from kafka08.arrow.option_text import OptionText
from kafka08.client import Security
from kafka08.client.bootstrap import parse_bootstrap
from kafka08.client.requests import StorageName
from kafka08.client.retry import RetryPolicy
from kafka08.client.security import SecureClientConfig
from kafka08.clock import Clock
from kafka08.config import INT_MAX, key
from kafka08.errors import ConfigError
from kafka08.protocol.fetch import ISOLATIONS, READ_COMMITTED
from kafka08.safety import ALLOW_DOC
from kafka08.waiting import giving_up_at

FETCH_BYTES: Final = 4 << 20
"""0.8 scans from an index entry at every fetch, so few large fetches cost the broker less."""
MAX_FETCH_BYTES: Final = 256 << 20
LOOKS: Final = 50
RETRY_INTERVAL_MS: Final = 200
"""A partition that is missing for LOOKS of these intervals, 10 s, is gone: a broker that has just
started knows fewer for a moment."""
POLL_TIMEOUT_MS: Final = 120_000
"""spark.network.timeout; a reader cannot read the session's value."""
OWN_DECODING: Final = "keys and values are bytes here; decode them with Spark's functions"
OWN_OFFSETS: Final = "start and end come from startingOffsets and endingOffsets"
REFUSED_KEYS: Final[Mapping[str, str]] = {
    "auto.offset.reset": OWN_OFFSETS,
    "key.deserializer": OWN_DECODING,
    "value.deserializer": OWN_DECODING,
    "enable.auto.commit": "offsets belong to Spark; see commitOffsets",
    "auto.commit.enable": "offsets belong to Spark; see commitOffsets",
    "interceptor.classes": "Spark reads exact offsets; interceptors could change the messages",
}
"""Keys that Spark's own connector rejects, too."""


class ClusterKeys(SecureClientConfig):
    """The `kafka.*` options of reads and writes: how the cluster is found and asked."""

    bootstrap_servers: str = key("", doc="host:port,host:port of some brokers.")
    zookeeper_connect: str = key(
        "", doc="Alternative: the ZooKeeper where the brokers are registered."
    )
    client_id: str = key("kafka08-spark", doc="Name in requests and broker logs.")
    api_version_request: bool = key(
        True,
        doc="Ask brokers for the versions that they serve. With false messages have no timestamps.",
    )


class ReaderKeys(ClusterKeys):
    """The `kafka.*` options of a read, with 0.8's names and defaults."""

    group_id: str = key("", doc="Group whose committed offsets are used.")
    offsets_storage: str = key(
        "zookeeper", choices=("zookeeper", "kafka"), doc="Store of the committed offsets."
    )
    fetch_message_max_bytes: int = key(FETCH_BYTES, low=12, doc="Fetch size.")
    fetch_wait_max_ms: int = key(500, low=1, doc="How long a fetch may wait at the log end.")
    socket_timeout_ms: int = key(30_000, low=1, doc="How long to wait for a broker's response.")
    socket_receive_buffer_bytes: int = key(0, low=0, doc="SO_RCVBUF; 0: the system's choice.")
    refresh_leader_backoff_ms: int = key(200, low=1, doc="Backoff before the leader is looked up.")
    isolation_level: str = key(
        "read_uncommitted",
        choices=tuple(ISOLATIONS),
        doc="read_committed: no messages of transactions that are open or were aborted.",
    )
    kafka08_allow_less_safety: str = key("", doc=ALLOW_DOC)

    ALIASES = {"max.partition.fetch.bytes": "fetch.message.max.bytes"}

    def validate(self) -> None:
        super().validate()
        if self.fetch_wait_max_ms >= self.socket_timeout_ms:
            raise ConfigError(
                f"fetch.wait.max.ms ({self.fetch_wait_max_ms}) must be below socket.timeout.ms "
                f"({self.socket_timeout_ms})"
            )
        if ISOLATIONS[self.isolation_level] == READ_COMMITTED and not self.api_version_request:
            raise ConfigError(
                "isolation.level: read_committed needs versions of requests that have it; remove "
                "api.version.request=false"
            )

    @property
    def settings(self) -> ReadSettings:
        """The settings that keys say; the others have their defaults."""
        return ReadSettings(
            client_id=self.client_id,
            fetch_bytes=self.fetch_message_max_bytes,
            fetch_wait_ms=self.fetch_wait_max_ms,
            socket_timeout_ms=self.socket_timeout_ms,
            receive_buffer_bytes=self.socket_receive_buffer_bytes,
            backoff_ms=self.refresh_leader_backoff_ms,
            isolation_level=self.isolation_level,
        )


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """How the cluster is found: by some of its brokers, or by the ZooKeeper they register in; by
    both once it was found by the latter.

    negotiates   whether its brokers are asked for the versions that they serve, as those of 0.9 and
                 later can be: without, messages have no timestamps. None: `connections.resolved`
                 finds out
    secrets      keys for TLS and SASL, with their values: none under PLAINTEXT
    """

    bootstrap: tuple[tuple[str, int], ...]
    zookeeper: str = ""
    negotiates: bool | None = None
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def security(self) -> Security:
        """The security of connections to its brokers."""
        return _security(self.secrets)


@lru_cache(maxsize=8)
def _security(secrets: tuple[tuple[str, str], ...]) -> Security:
    """Connections to one cluster share their tokens, and what they have read of files."""
    return SecureClientConfig(dict(secrets)).security


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How a task reads.

    fetch_bytes, max_fetch_bytes   size of a fetch, and its limit while one large message needs it
    poll_timeout_ms   a plan that takes so long, and a read that makes no progress for so long,
                      fails with its last error
    retries, retry_interval_ms   for the driver's requests for metadata and offsets; None: as many
                      as poll_timeout_ms allows
    fail_on_data_loss   missing offsets are an error; else they are logged and skipped
    isolation_level     read_uncommitted, or read_committed: up to the first open transaction, and
                        without messages of those that were aborted
    """

    client_id: str = "kafka08-spark"
    fetch_bytes: int = FETCH_BYTES
    max_fetch_bytes: int = MAX_FETCH_BYTES
    fetch_wait_ms: int = 500
    socket_timeout_ms: int = 30_000
    receive_buffer_bytes: int = 0
    backoff_ms: int = 200
    poll_timeout_ms: int = POLL_TIMEOUT_MS
    retries: int | None = None
    retry_interval_ms: int = RETRY_INTERVAL_MS
    fail_on_data_loss: bool = True
    isolation_level: str = "read_uncommitted"

    def __post_init__(self) -> None:
        if self.isolation_level not in ISOLATIONS:
            raise ConfigError(
                f"isolation_level: {self.isolation_level!r} is not {' or '.join(ISOLATIONS)}"
            )

    @property
    def isolation(self) -> int:
        """`isolation_level` as a number of the protocol."""
        return ISOLATIONS[self.isolation_level]

    @property
    def retry_policy(self) -> RetryPolicy:
        """Retries of the driver's requests: their limit is `deadline`."""
        in_time = self.poll_timeout_ms // max(self.retry_interval_ms, 1) + 1
        tries = in_time if self.retries is None else self.retries + 1
        return RetryPolicy(tries, self.retry_interval_ms, inf)

    @property
    def looks(self) -> int:
        """How often the driver looks again before something counts as gone."""
        return LOOKS if self.retries is None else self.retries

    def deadline(self, clock: Clock) -> AbstractContextManager[None]:
        """For a block of requests that together may take poll_timeout_ms: one plan, or one step of
        a task."""
        return giving_up_at(clock.monotonic() + self.poll_timeout_ms / 1000)


def take_settings(text: OptionText) -> tuple[ClusterAddress, ReadSettings, str, StorageName]:
    """(address, settings, group, storage of its offsets) from the options."""
    keys = ReaderKeys(text.take_kafka_keys(REFUSED_KEYS))
    keys.log_notes()
    settings = replace(
        keys.settings,
        max_fetch_bytes=text.take_number("maxFetchBytes", MAX_FETCH_BYTES, high=INT_MAX),
        poll_timeout_ms=text.take_number("kafkaConsumer.pollTimeoutMs", POLL_TIMEOUT_MS),
        retries=text.take_number("fetchOffset.numRetries", None, low=0),
        retry_interval_ms=text.take_number("fetchOffset.retryIntervalMs", RETRY_INTERVAL_MS, low=0),
        fail_on_data_loss=text.take_bool("failOnDataLoss", True),
    )
    storage: StorageName = "kafka" if keys.offsets_storage == "kafka" else "zookeeper"
    return address_of(keys), settings, keys.group_id, storage


def address_of(keys: ClusterKeys) -> ClusterAddress:
    """The cluster's address; ConfigError without one, or with two."""
    if bool(keys.bootstrap_servers) == bool(keys.zookeeper_connect):
        raise ConfigError(
            "give one of kafka.bootstrap.servers (host:port,host:port) and zookeeper.connect"
        )
    asks = None if keys.api_version_request else False
    secrets = secrets_of(keys, keys.zookeeper_connect)
    if keys.zookeeper_connect:
        return ClusterAddress((), keys.zookeeper_connect, asks)
    brokers = parse_bootstrap(keys.bootstrap_servers, "kafka.bootstrap.servers")
    return ClusterAddress(tuple(brokers), "", asks, secrets)


def secrets_of(keys: SecureClientConfig, zookeeper: str = "") -> tuple[tuple[str, str], ...]:
    """`ClusterAddress.secrets` of a configuration. ConfigError beside ZooKeeper."""
    if keys.security_protocol == "PLAINTEXT":
        return ()
    if zookeeper:
        raise ConfigError(
            f"security.protocol={keys.security_protocol} needs the addresses of brokers: in "
            "ZooKeeper they register PLAINTEXT listeners"
        )
    return tuple(
        (name, getattr(keys, name.replace(".", "_")))
        for name in sorted(keys.given & SecureClientConfig.KEYS.keys())
    )
