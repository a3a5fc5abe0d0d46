"""KafkaConsumerConfig: every key of the consumer of 0.10.2.

Defaults and ranges are those of org.apache.kafka.clients.consumer.ConsumerConfig 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Unpack

from kafka08.client.bootstrap import parse_bootstrap
from kafka08.client.plugins import plugin
from kafka08.client.security import SecureClientConfig
from kafka08.config import LONG_MAX, check_id, key
from kafka08.consumer.group.assignors import Assignor, RangeAssignor, RoundRobinAssignor
from kafka08.consumer.group.deserializers import (
    BYTES,
    DESERIALIZERS,
    Deserializer,
    deserialize_bytes,
)
from kafka08.consumer.group.sticky import CooperativeStickyAssignor, StickyAssignor
from kafka08.errors import ConfigError
from kafka08.protocol.fetch import ISOLATIONS
from kafka08.safety import ALLOW_DOC

if TYPE_CHECKING:
    from kafka08.consumer.config_keywords import KafkaConsumerConfigKeywords

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
NONE: Final = "none"
_CLIENTS: Final = "org.apache.kafka.clients.consumer."
ASSIGNORS: Final[dict[str, type[Assignor]]] = {
    _CLIENTS + "RangeAssignor": RangeAssignor,
    _CLIENTS + "RoundRobinAssignor": RoundRobinAssignor,
    _CLIENTS + "StickyAssignor": StickyAssignor,
    _CLIENTS + "CooperativeStickyAssignor": CooperativeStickyAssignor,
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
"""The assignors by Java's class names and by their short names."""


class KafkaConsumerConfig(SecureClientConfig):
    """Configuration of a KafkaConsumer. Times are milliseconds, sizes are bytes.

    Assignors, deserializers and interceptors take Java's names or `module:callable`.
    """

    bootstrap_servers: str = key(doc="host:port,host:port of a few brokers of the cluster.")
    group_id: str = key("", doc="The consumer group, for subscribe and for commits.")
    client_id: str = key("", doc="Name in requests and broker logs, and start of the member id.")
    client_rack: str = key(
        "",
        doc="Where this consumer is: it reads from a replica there, if the brokers (2.3 and later) "
        "have broker.rack and replica.selector.class.",
    )
    key_deserializer: str = key(BYTES, doc="Deserializer of keys.")
    value_deserializer: str = key(BYTES, doc="Deserializer of values.")

    auto_offset_reset: str = key(
        LATEST,
        choices=(EARLIEST, LATEST, NONE),
        doc="Where to start without a committed offset, or if it is out of range; none: an error.",
    )
    enable_auto_commit: bool = key(True, doc="Whether to commit finished messages periodically.")
    auto_commit_interval_ms: int = key(5000, low=0, doc="Time between automatic commits.")
    partition_assignment_strategy: str = key(
        _CLIENTS + "RangeAssignor",
        doc="Comma list of assignors in order of preference: range, roundrobin, sticky, "
        "cooperative-sticky, Java's names, module:callable.",
    )
    group_instance_id: str = key(
        "",
        doc="Name of a static member: it does not leave the group when it is closed, and whoever "
        "joins under its name within session.timeout.ms gets its partitions without a rebalance. "
        "Brokers from 2.3 on.",
    )
    session_timeout_ms: int = key(
        10_000, low=1, doc="Time without a heartbeat after which the group removes the member."
    )
    heartbeat_interval_ms: int = key(
        3000, low=1, doc="Time between heartbeats; below session.timeout.ms."
    )
    max_poll_interval_ms: int = key(
        300_000, low=1, doc="Time between two polls after which the member leaves its group."
    )
    max_poll_records: int = key(500, low=1, doc="Maximum number of messages of one poll.")
    exclude_internal_topics: bool = key(True, doc="Keep __consumer_offsets out of patterns.")

    fetch_min_bytes: int = key(1, low=0, doc="Bytes that the broker waits for.")
    fetch_max_bytes: int = key(
        50 << 20, low=0, doc="Maximum bytes of one fetch; a single message may be larger."
    )
    fetch_max_wait_ms: int = key(
        500, low=0, doc="How long the broker may wait for fetch.min.bytes."
    )
    max_partition_fetch_bytes: int = key(
        1 << 20, low=0, doc="Maximum bytes of a partition in a fetch; one message may be larger."
    )
    check_crcs: bool = key(True, doc="false has no effect: the CRC of each message is checked.")

    metadata_max_age_ms: int = key(
        300_000, low=0, high=LONG_MAX, doc="Age at which metadata is refreshed."
    )
    request_timeout_ms: int = key(305_000, low=0, doc="How long to wait for a response.")
    retry_backoff_ms: int = key(100, low=0, high=LONG_MAX, doc="Backoff before a retry.")
    reconnect_backoff_ms: int = key(
        50, low=0, high=LONG_MAX, effect=False, doc="retry.backoff.ms is used instead."
    )
    connections_max_idle_ms: int = key(
        540_000, effect=False, doc="Idle time after which Java's client closes a connection."
    )
    receive_buffer_bytes: int = key(
        -1, low=-1, doc="SO_RCVBUF; -1 leaves it to the system (Java: 65536)."
    )
    send_buffer_bytes: int = key(
        -1, low=-1, doc="SO_SNDBUF; -1 leaves it to the system (Java: 131072)."
    )
    interceptor_classes: str = key("", doc="Comma list of module:callable that make interceptors.")
    isolation_level: str = key(
        "read_uncommitted",
        choices=tuple(ISOLATIONS),
        doc="read_committed: no messages of transactions that are open or were aborted.",
    )
    kafka08_allow_less_safety: str = key("", doc=ALLOW_DOC)
    metric_reporters: str = key("", effect=False, doc="Java classes that report metrics.")
    metrics_num_samples: int = key(2, low=1, effect=False, doc="Samples of Java's metrics.")
    metrics_sample_window_ms: int = key(
        30_000, low=0, high=LONG_MAX, effect=False, doc="Length of a sample."
    )
    metrics_recording_level: str = key("INFO", effect=False, doc="Level of Java's metrics.")

    def __init__(
        self,
        properties: Mapping[str, Any] | None = None,
        /,
        **keywords: Unpack[KafkaConsumerConfigKeywords],
    ) -> None:
        super().__init__(properties, **keywords)

    def validate(self) -> None:
        super().validate()
        parse_bootstrap(self.bootstrap_servers, "bootstrap.servers")
        check_id("client.id", self.client_id)
        check_id("group.id", self.group_id)
        self.deserializers()
        self.assignors()
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat.interval.ms: {self.heartbeat_interval_ms} is not below "
                f"session.timeout.ms ({self.session_timeout_ms})"
            )
        for name, limit in (
            ("session.timeout.ms", self.session_timeout_ms),
            ("fetch.max.wait.ms", self.fetch_max_wait_ms),
        ):
            if self.request_timeout_ms <= limit:
                raise ConfigError(
                    f"request.timeout.ms: {self.request_timeout_ms} is not above {name} ({limit})"
                )

    @property
    def isolation(self) -> int:
        """`isolation.level` as a number of the protocol."""
        return ISOLATIONS[self.isolation_level]

    @property
    def without_effect(self) -> list[str]:
        """Also check.crcs=false: the CRC of each message is always checked."""
        unchecked = set() if self.check_crcs else {"check.crcs"}
        return sorted({*super().without_effect, *unchecked})

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        return parse_bootstrap(self.bootstrap_servers, "bootstrap.servers")

    def assignors(self) -> list[Assignor]:
        """New assignors, in order of preference. ConfigError without any, or for equal names."""
        names = _names(self.partition_assignment_strategy)
        found: list[Assignor] = [
            plugin("partition.assignment.strategy", name, _ASSIGNOR_MAKERS, self)()
            for name in names
        ]
        check_assignors(found)
        return found

    def deserializers(self) -> tuple[Deserializer | None, Deserializer | None]:
        """(of keys, of values); None where bytes remain bytes."""
        made = [
            plugin(name, value, _DESERIALIZER_MAKERS, self)
            for name, value in (
                ("key.deserializer", self.key_deserializer),
                ("value.deserializer", self.value_deserializer),
            )
        ]
        key_, value_ = (None if one is deserialize_bytes else one for one in made)
        return key_, value_

    def interceptors(self) -> list[Any]:
        """New interceptors, in the order named."""
        names = _names(self.interceptor_classes)
        return [plugin("interceptor.classes", name, _NO_MAKERS, self)() for name in names]


def check_assignors(assignors: list[Assignor]) -> None:
    """ConfigError without any, or for equal names."""
    names = [assignor.name for assignor in assignors]
    if not names or len(set(names)) < len(names):
        raise ConfigError(
            f"partition.assignment.strategy: {', '.join(names) or 'nothing'} is not a list of "
            "different assignors, of which there must be one at least"
        )


def _names(text: str) -> list[str]:
    return list(filter(None, map(str.strip, text.split(","))))


_NO_MAKERS: Final[dict[str, Any]] = {}
_ASSIGNOR_MAKERS: Final[dict[str, Any]] = {
    name: lambda _, made=made: made for name, made in ASSIGNORS.items()
}
_DESERIALIZER_MAKERS: Final[dict[str, Any]] = {
    name: lambda _, found=found: found for name, found in DESERIALIZERS.items()
}
"""Java's class names for `plugin`, which passes them the configuration."""
