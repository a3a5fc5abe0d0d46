"""ConsumerConfig: every key of the 0.8.2.2 high-level consumer.

Defaults and ranges are those of kafka.consumer.ConsumerConfig and kafka.utils.ZKConfig 0.8.2.2.
Some defaults depend on another key: `rebalance.backoff.ms` (zookeeper.sync.time.ms),
`zookeeper.connection.timeout.ms` (zookeeper.session.timeout.ms), `dual.commit.enabled` (true
exactly when offsets.storage is kafka) and `client.id` (group.id); after construction the
attributes hold the resolved values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Unpack, get_args

from kafka08.client.requests import StorageName
from kafka08.config import INT_MAX, Config, check_id, key
from kafka08.consumer.fetching.fetch_settings import LARGEST, SMALLEST
from kafka08.errors import ConfigError
from kafka08.protocol.fetch import READ_UNCOMMITTED

if TYPE_CHECKING:
    from kafka08.consumer.config_keywords import ConsumerConfigKeywords

LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]*")
ROUND_ROBIN: Final = "roundrobin"


class ConsumerConfig(Config):
    """Configuration of a ConsumerConnector. Times are milliseconds, sizes are bytes."""

    group_id: str = key(doc="The group whose members share the partitions.")
    zookeeper_connect: str = key(
        doc="host:port,host:port of ZooKeeper, with an optional /chroot at the end."
    )
    consumer_id: str | None = key(None, doc="Name of this member; generated when absent.")
    client_id: str = key(None, doc="Name in requests and broker logs; default group.id.")

    auto_offset_reset: str = key(
        LARGEST,
        choices=(SMALLEST, LARGEST),
        doc="Where to start without a committed offset, or if it is out of range.",
    )
    auto_commit_enable: bool = key(True, doc="Whether to commit finished messages periodically.")
    auto_commit_interval_ms: int = key(60_000, low=1, doc="Time between automatic commits.")
    offsets_storage: str = key("zookeeper", doc="zookeeper or kafka; upper case is accepted.")
    dual_commit_enabled: bool = key(None, doc="Also commit to ZooKeeper; true with storage kafka.")
    offsets_channel_backoff_ms: int = key(
        1000, low=0, doc="Backoff before the coordinator is contacted again."
    )
    offsets_channel_socket_timeout_ms: int = key(
        10_000, low=1, doc="How long to wait for the coordinator's response."
    )
    offsets_commit_max_retries: int = key(
        5, low=0, doc="Retries of a commit by commit_offsets() or shutdown()."
    )

    partition_assignment_strategy: str = key(
        "range", doc="roundrobin, or range (as in 0.8.2.2 any other value means range)."
    )
    rebalance_max_retries: int = key(
        4, low=1, doc="Failed attempts, times the backoff, before ConsumerRebalanceFailed."
    )
    rebalance_backoff_ms: int = key(None, low=0, doc="Backoff between attempts of a rebalance.")
    exclude_internal_topics: bool = key(True, doc="Keep __consumer_offsets out of patterns.")

    fetch_message_max_bytes: int = key(1024 * 1024, low=1, doc="Fetch size per partition.")
    fetch_min_bytes: int = key(1, low=0, doc="Bytes at which the broker responds to a fetch.")
    fetch_wait_max_ms: int = key(
        100, low=0, doc="How long the broker may wait for fetch.min.bytes."
    )
    num_consumer_fetchers: int = key(1, low=1, doc="Fetch threads per leader broker.")
    queued_max_message_chunks: int = key(2, low=1, doc="Fetched sets buffered per stream.")
    refresh_leader_backoff_ms: int = key(200, low=1, doc="Backoff between leader lookups.")
    socket_timeout_ms: int = key(30_000, low=1, doc="How long to wait for a broker's response.")
    socket_receive_buffer_bytes: int = key(
        -1, low=-1, doc="SO_RCVBUF of fetch sockets; -1: the system adapts it."
    )
    consumer_timeout_ms: int = key(
        -1, low=-1, doc="Time without a message before a stream raises ConsumerTimeout; -1: never."
    )

    zookeeper_session_timeout_ms: int = key(
        6000, low=1, doc="Time after which ZooKeeper removes a dead member."
    )
    zookeeper_connection_timeout_ms: int = key(
        None, low=1, doc="How long to wait for the first connection."
    )
    zookeeper_sync_time_ms: int = key(2000, low=0, doc="Default of rebalance.backoff.ms.")

    def __init__(
        self,
        properties: Mapping[str, Any] | None = None,
        /,
        **keywords: Unpack[ConsumerConfigKeywords],
    ) -> None:
        super().__init__(properties, **keywords)

    @property
    def fetch_max_bytes(self) -> None:
        """A response of 0.8 has no limit of its own (FetchSettings)."""

    @property
    def isolation(self) -> int:
        """Its versions of Fetch have none."""
        return READ_UNCOMMITTED

    @property
    def nearest(self) -> None:
        """They have no racks either."""

    @property
    def migration_note(self) -> dict[str, str]:
        """The keys that a migration of the group's offsets reads from the registration."""
        return {
            "offsets.storage": self.offsets_storage,
            "dual.commit.enabled": str(self.dual_commit_enabled).lower(),
            "auto.commit.enable": str(self.auto_commit_enable).lower(),
            "auto.commit.interval.ms": str(self.auto_commit_interval_ms),
        }

    @classmethod
    def is_exact(cls, given: Mapping[str, Any]) -> bool:
        return True

    def validate(self) -> None:
        self._resolve("offsets_storage", self.offsets_storage.lower())
        if self.offsets_storage not in get_args(StorageName):
            raise ConfigError(
                f"offsets.storage: {self.offsets_storage!r} is not one of "
                f"{', '.join(get_args(StorageName))}"
            )
        self._default("client_id", self.group_id)
        self._default("dual_commit_enabled", self.offsets_storage == "kafka")
        self._default("rebalance_backoff_ms", self.zookeeper_sync_time_ms)
        self._default("zookeeper_connection_timeout_ms", self.zookeeper_session_timeout_ms)
        check_group(self.group_id)
        if not LEGAL_NAME.fullmatch(self.client_id):
            raise ConfigError(
                f"client.id: {self.client_id!r} has characters other than [a-zA-Z0-9._-]"
            )
        check_id("group.id", self.group_id)
        check_id("client.id", self.client_id)
        if self.consumer_id is not None and "/" in self.consumer_id:
            raise ConfigError(
                f"consumer.id: {self.consumer_id!r} contains '/', the separator of znodes"
            )
        if self.fetch_wait_max_ms > self.socket_timeout_ms:
            raise ConfigError(
                f"socket.timeout.ms: {self.socket_timeout_ms} is below fetch.wait.max.ms "
                f"({self.fetch_wait_max_ms}); the range is {self.fetch_wait_max_ms} to {INT_MAX}"
            )

    def _default(self, attribute: str, value: Any) -> None:
        if getattr(self, attribute) is None:
            self._resolve(attribute, value)

    def _resolve(self, attribute: str, value: Any) -> None:
        self.__dict__[attribute] = value


def check_group(name: str) -> None:
    """ConfigError for a name that no group can have: it would address other znodes."""
    if not LEGAL_NAME.fullmatch(name) or name in {"", ".", ".."}:
        raise ConfigError(
            f"group.id: {name!r} is not a legal group name; use the characters [a-zA-Z0-9._-]. "
            "kafka08 group list shows all groups"
        )
