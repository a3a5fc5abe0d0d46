"""The configuration of a topic or of a broker as DescribeConfigs shows it. Pure.

Source: kafka.server.AdminManager.describeConfigs, org.apache.kafka.common.config.ConfigDef.
convertToString 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from kafka08.broker.settings.config import BrokerConfig
from kafka08.broker.topics.topic_config_texts import bucket, java_double
from kafka08.config import LONG_MAX
from kafka08.log.config import LogConfig
from kafka08.protocol.describe_configs import DescribedConfig
from kafka08.topic_config import KEYS_AT, MESSAGE_FORMAT, TOPIC_KEYS

LAST: Final = frozenset({"segment.ms", "segment.index.bytes"})
"""Keys behind the others of their bucket."""
TOPIC_ORDER: Final = sorted(TOPIC_KEYS, key=lambda name: (bucket(name), name in LAST))
"""The captured order: that of the JVM's hash table."""
PASSWORD: Final = "password"
"""How the keys end whose values are not shown."""


def topic_entries(
    topic: str,
    overrides: Mapping[str, str],
    config: BrokerConfig,
    names: Collection[str] | None,
) -> list[DescribedConfig]:
    """The keys among `names` (None: all) of a topic with these overrides, in TOPIC_ORDER."""
    found: LogConfig = config.log_config().from_stored(topic, overrides)
    values: dict[str, Any] = {
        name: getattr(found, name.replace(".", "_"))
        for name in TOPIC_ORDER
        if name in KEYS_AT[config.level]
    }
    if found.min_insync_replicas is None:
        values["min.insync.replicas"] = config.least_in_sync
    if "retention.ms" not in overrides and found.retention_ms == LONG_MAX:
        values["retention.ms"] = -1
    if MESSAGE_FORMAT not in overrides:
        values[MESSAGE_FORMAT] = str(config.message_format)
    return [
        DescribedConfig(name, text_of(value), False, name not in overrides, False)
        for name, value in values.items()
        if names is None or name in names
    ]


def broker_entries(config: BrokerConfig, names: Collection[str] | None) -> list[DescribedConfig]:
    """The keys among `names` (None: all) of a broker, by name."""
    entries = []
    for name in config.existing:
        if names is None or name in names:
            is_secret = name.endswith(PASSWORD)
            value = None if is_secret else getattr(config, name.replace(".", "_"))
            entries.append(
                DescribedConfig(name, text_of(value), True, name not in config.given, is_secret)
            )
    return entries


def text_of(value: Any) -> str | None:
    """A value as Java writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return java_double(value)
    return None if value is None else str(value)
