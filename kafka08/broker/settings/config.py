"""BrokerConfig: a broker's configuration: keys, rules about several keys, and derived values.

The keys are declared in config_keys and keys_0_9. Source: kafka.server.KafkaConfig 0.8.2.2 and
0.10.2.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from kafka08 import profile
from kafka08.broker.settings.config_keys import NO_BROKER_ID, BrokerKeys
from kafka08.broker.settings.endpoints import EVERY_PROTOCOL, parse_endpoints, parse_protocol_map
from kafka08.broker.settings.format_note import format_note
from kafka08.broker.settings.keys_0_9 import V0_9_0, V0_10_2, in_spelling_of_0_9
from kafka08.config import BLANKS, INT_MAX, LONG_MAX, Key
from kafka08.errors import ConfigError
from kafka08.levels import LEVELS, Level
from kafka08.log.cleaner_plan import MAX_CHUNK_BYTES, CleanerConfig
from kafka08.log.config import LogConfig
from kafka08.protocol import compression
from kafka08.protocol_version import ProtocolVersion, parse_protocol_version
from kafka08.safety import OF_BROKERS
from kafka08.structs import PLAINTEXT, Endpoint
from kafka08.topic_config import POLICIES, TOPIC_KEYS

HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000
MEGABYTE: Final = 1 << 20


def level_of(given: Mapping[str, Any]) -> Level:
    """The api.level of a configuration; ConfigError for another word."""
    level = str(given.get("api.level", LEVELS[0])).strip(BLANKS)
    if level not in LEVELS:
        raise ConfigError(f"api.level: {level!r} is not one of {', '.join(LEVELS)}")
    return Level.named(level)


class BrokerConfig(BrokerKeys):
    """The configuration of one broker. Only broker.id and zookeeper.connect are required.

    `api_level` decides which keys exist, and their defaults.

    Derived values, where several keys set one value or a text is parsed:
    `log_directories`, `log_retention_time_ms`, `log_roll_time_ms`, `log_roll_jitter_time_ms`,
    `flush_interval_ms`, `connection_limits`, `offsets_codec`, `level`, `protocol_version`,
    `message_format`, `listening`, `advertised`, `inter_broker_listener`.
    """

    SAFETY = OF_BROKERS

    def __init__(self, properties: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        properties = properties or {}
        chosen = keywords.get("kafka08_profile", properties.get("kafka08.profile"))
        given = {**profile.broker_defaults(str(chosen)), **properties}
        super().__init__(in_spelling_of_0_9(given, self._types), **keywords)

    @classmethod
    def keys_for(cls, given: Mapping[str, Any]) -> Mapping[str, Key]:
        return KEYS_AT[level_of(given)]

    @classmethod
    def is_exact(cls, given: Mapping[str, Any]) -> bool:
        return level_of(given) < V0_9_0

    def validate(self) -> None:
        """The rules of KafkaConfig that concern several keys, and the shape of lists."""
        if not self.log_directories:
            raise ConfigError(f"log.dirs: {self.log_dirs!r} names no directory")
        for rule, since, until in RULES:
            if since <= self.level and (until is None or self.level < until):
                rule(self)
        for limit in ("replica_lag_time_max_ms", "replica_socket_timeout_ms"):
            if self.replica_fetch_wait_max_ms > getattr(self, limit):
                raise ConfigError(
                    f"replica.fetch.wait.max.ms: {self.replica_fetch_wait_max_ms} is above "
                    f"{limit.replace('_', '.')} ({getattr(self, limit)})"
                )
        if self.offsets_commit_required_acks > self.offsets_topic_replication_factor:
            raise ConfigError(
                f"offsets.commit.required.acks: {self.offsets_commit_required_acks} is outside the "
                f"range -1 to {self.offsets_topic_replication_factor} "
                f"(offsets.topic.replication.factor)"
            )
        if self.log_cleaner_dedupe_buffer_size // self.log_cleaner_threads <= MEGABYTE:
            raise ConfigError(
                f"log.cleaner.dedupe.buffer.size: {self.log_cleaner_dedupe_buffer_size} is not "
                f"more than {MEGABYTE} per log.cleaner.threads ({self.log_cleaner_threads})"
            )
        self._check_profile()
        self.connection_limits  # noqa: B018 - raises for a malformed list
        self.offsets_codec  # noqa: B018 - raises for an unknown codec

    def _check_profile(self) -> None:
        """The safe profile is a guarantee: no other key may break it."""
        if not self.is_safe:
            return
        if self.unclean_leader_election_enable:
            raise ConfigError(
                "unclean.leader.election.enable: true contradicts kafka08.profile=safe. Remove one"
            )
        if self.min_insync_replicas < profile.LEAST_IN_SYNC:
            raise ConfigError(
                f"min.insync.replicas: {self.min_insync_replicas} is outside the range "
                f"{profile.LEAST_IN_SYNC} to {INT_MAX} of kafka08.profile=safe"
            )

    def _check_fetch_size(self) -> None:
        if self.replica_fetch_max_bytes < self.message_max_bytes:
            raise ConfigError(
                f"replica.fetch.max.bytes: {self.replica_fetch_max_bytes} is outside the range "
                f"{self.message_max_bytes} (message.max.bytes) to {INT_MAX}"
            )

    def _check_broker_id(self) -> None:
        generates = self.broker_id_generation_enable
        low, high = (NO_BROKER_ID, self.reserved_broker_max_id) if generates else (0, INT_MAX)
        if not low <= self.broker_id <= high:
            raise ConfigError(
                f"broker.id: {self.broker_id} is outside the range {low} to {high} "
                f"(broker.id.generation.enable={str(generates).lower()}, reserved.broker.max.id)"
            )

    def _check_retention(self) -> None:
        names = ("log_retention_ms", "log_retention_minutes", "log_retention_hours")
        used = next(name for name in names if getattr(self, name) is not None)
        if getattr(self, used) == 0:
            raise ConfigError(f"{used.replace('_', '.')}: 0 is neither -1 (never) nor above 0")

    def _check_cleanup_policy(self) -> None:
        words = {word.strip() for word in self.log_cleanup_policy.split(",")}
        if not words <= set(POLICIES):
            raise ConfigError(
                f"log.cleanup.policy: {self.log_cleanup_policy!r} is not delete, compact or both"
            )

    def _check_listeners(self) -> None:
        alternatives = ("inter.broker.listener.name", "security.inter.broker.protocol")
        if self.level >= V0_10_2 and self.given.issuperset(alternatives):
            raise ConfigError(f"Only one of {' and '.join(alternatives)} may be set")
        if PLAINTEXT not in self._protocols and self.listeners is None:
            raise ConfigError(
                "listener.security.protocol.map: "
                f"{self.listener_security_protocol_map!r} has no protocol for the listener "
                f"{PLAINTEXT}, the default of listeners"
            )
        listening = {endpoint.listener for endpoint in self.listening}
        advertised = {endpoint.listener for endpoint in self.advertised}
        if not advertised <= listening:
            raise ConfigError(
                f"advertised.listeners: {', '.join(sorted(advertised - listening))} is not one of "
                f"the listeners {', '.join(sorted(listening))}"
            )
        if self.inter_broker_listener not in advertised:
            raise ConfigError(
                f"inter.broker.listener.name: {self.inter_broker_listener!r} is not one of the "
                f"advertised listeners {', '.join(sorted(advertised))}"
            )

    def _check_protocol_version(self) -> None:
        self.protocol_version  # noqa: B018 - raises for an unknown version

    def _check_message_format(self) -> None:
        if self.message_format > self.protocol_version:
            raise ConfigError(
                f"log.message.format.version {self.log_message_format_version} cannot be used when "
                f"inter.broker.protocol.version is set to {self.inter_broker_protocol_version}. "
                "Set it to that version, or to a lower one"
            )

    @property
    def level(self) -> Level:
        """The release whose protocol the broker speaks."""
        return Level.named(self.api_level)

    @property
    def protocol_version(self) -> ProtocolVersion:
        """The protocol version of requests to other brokers."""
        return parse_protocol_version(
            "inter.broker.protocol.version", self.inter_broker_protocol_version, self.level
        )

    @property
    def message_format(self) -> ProtocolVersion:
        """The message format of logs: its `magic`."""
        return parse_protocol_version(
            "log.message.format.version", self.log_message_format_version, self.level
        )

    @property
    def format_note(self) -> str:
        """The line of the log about the format of new messages."""
        return format_note(self.level, self.protocol_version, self.message_format)

    @property
    def listening(self) -> tuple[Endpoint, ...]:
        """The endpoints to listen on."""
        if self.listeners is None:
            return (Endpoint(PLAINTEXT, self.host_name or None, self.port),)
        return parse_endpoints("listeners", self.listeners, self._protocols)

    @property
    def advertised(self) -> tuple[Endpoint, ...]:
        """The endpoints for ZooKeeper. A host of None: this machine's name; a port of 0: the port
        that was bound."""
        if self.advertised_listeners is not None:
            return parse_endpoints(
                "advertised.listeners", self.advertised_listeners, self._protocols
            )
        if self.advertised_host_name is None and self.advertised_port is None:
            return self.listening
        host = self.advertised_host_name or self.host_name
        return (Endpoint(PLAINTEXT, host or None, self.advertised_port or self.port),)

    @property
    def inter_broker_listener(self) -> str:
        """The listener for requests between brokers."""
        name = self.inter_broker_listener_name
        return (self.security_inter_broker_protocol if name is None else name).upper()

    @property
    def _protocols(self) -> Mapping[str, str]:
        given = "listener.security.protocol.map" in self.given
        if not given:
            return EVERY_PROTOCOL
        return parse_protocol_map(
            "listener.security.protocol.map", self.listener_security_protocol_map
        )

    @property
    def is_safe(self) -> bool:
        return self.kafka08_profile == profile.SAFE

    @property
    def least_in_sync(self) -> int:
        """The in-sync replicas that acks=-1 needs in a topic without min.insync.replicas, but at
        most its number of replicas."""
        return self.min_insync_replicas if self.is_safe else 1

    @property
    def topics_in_sync(self) -> int | None:
        """min.insync.replicas of a topic without an override; None: `least_in_sync` applies."""
        # 0.8: the broker's key is parsed, but topics take their minimum only from their override.
        has_effect = self.keys["min.insync.replicas"].effect and not self.is_safe
        return self.min_insync_replicas if has_effect else None

    @property
    def without_effect(self) -> list[str]:
        names = super().without_effect
        return [name for name in names if name != "min.insync.replicas" or not self.is_safe]

    @property
    def log_directories(self) -> list[str]:
        """The directories of log.dirs, in order, without blanks and empty items."""
        return [name for part in self.log_dirs.split(",") if (name := part.strip())]

    @property
    def log_retention_time_ms(self) -> int:
        """The value of the finest key that is set; LONG_MAX: never."""
        if self.log_retention_ms is not None:
            age_ms = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            age_ms = self.log_retention_minutes * MINUTE_MS
        else:
            age_ms = self.log_retention_hours * HOUR_MS
        return age_ms if age_ms >= 0 else LONG_MAX

    @property
    def log_roll_time_ms(self) -> int:
        return self.log_roll_hours * HOUR_MS if self.log_roll_ms is None else self.log_roll_ms

    @property
    def log_roll_jitter_time_ms(self) -> int:
        if self.log_roll_jitter_ms is not None:
            return self.log_roll_jitter_ms
        return self.log_roll_jitter_hours * HOUR_MS

    @property
    def cleanup_policy(self) -> str:
        """log.cleanup.policy in lower case and without blanks."""
        return ",".join(word.strip() for word in self.log_cleanup_policy.lower().split(","))

    @property
    def flush_interval_ms(self) -> int:
        """log.flush.interval.ms; without it, the scheduler's interval."""
        if self.log_flush_interval_ms is not None:
            return self.log_flush_interval_ms
        return self.log_flush_scheduler_interval_ms

    @property
    def connection_timeout_ms(self) -> int:
        return self.zookeeper_connection_timeout_ms or self.zookeeper_session_timeout_ms

    @property
    def connection_limits(self) -> dict[str, int]:
        """Host or address → connections allowed, from max.connections.per.ip.overrides."""
        limits = {}
        for part in self.max_connections_per_ip_overrides.split(","):
            if not part.strip():
                continue
            match = re.fullmatch(r"\s*\[?(.+?)\]?\s*:\s*(\d+)\s*", part)
            if match is None:
                raise ConfigError(
                    f"max.connections.per.ip.overrides: {part!r} is not of the form host:count"
                )
            limits[match[1]] = int(match[2])
        return limits

    @property
    def offsets_codec(self) -> int:
        """offsets.topic.compression.codec as a number."""
        try:
            return compression.by_name(self.offsets_topic_compression_codec)
        except ValueError as error:
            raise ConfigError(f"offsets.topic.compression.codec: {error}") from None

    def cleaner_config(self) -> CleanerConfig:
        """The configuration of each cleaner worker."""
        threads = self.log_cleaner_threads
        return CleanerConfig(
            map_bytes=self.log_cleaner_dedupe_buffer_size // threads,
            load_factor=self.log_cleaner_io_buffer_load_factor,
            # The other half is for writing.
            chunk_bytes=max(
                1, min(self.log_cleaner_io_buffer_size // threads // 2, MAX_CHUNK_BYTES)
            ),
        )

    def log_config(self) -> LogConfig:
        """The default configuration of every topic."""
        values = {
            name.replace(".", "_"): getattr(self, key.broker_key.replace(".", "_"))
            for name, key in TOPIC_KEYS.items()
            if key.broker_key is not None
        }
        values["segment_ms"] = self.log_roll_time_ms
        values["segment_jitter_ms"] = self.log_roll_jitter_time_ms
        values["flush_ms"] = self.flush_interval_ms
        values["retention_ms"] = self.log_retention_time_ms
        values["cleanup_policy"] = self.cleanup_policy
        values["min_insync_replicas"] = self.topics_in_sync
        return LogConfig(level=self.level, **values)


KEYS_AT: Final[Mapping[Level, Mapping[str, Key]]] = {
    level: MappingProxyType({name: key.at(level) for name, key in BrokerConfig.KEYS.items()})
    for level in Level
}
RULES: Final = (
    (BrokerConfig._check_fetch_size, Level.V0_8_2, V0_10_2),
    (BrokerConfig._check_broker_id, V0_9_0, None),
    (BrokerConfig._check_retention, V0_9_0, None),
    (BrokerConfig._check_listeners, V0_9_0, None),
    (BrokerConfig._check_protocol_version, V0_9_0, None),
    (BrokerConfig._check_message_format, V0_10_2, None),
    (BrokerConfig._check_cleanup_policy, V0_10_2, None),
)
"""Check, the lowest level that has it, and the lowest that no longer has it."""
