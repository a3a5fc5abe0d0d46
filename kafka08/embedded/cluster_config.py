"""The configuration of the brokers of an embedded cluster, besides what each has for itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka08.config import load_properties
from kafka08.embedded.broker import LISTENER_KEYS, PROPERTIES
from kafka08.errors import ConfigError
from kafka08.levels import LEVELS, NEWEST, Level, level_fault

DEFAULTS: dict[str, str] = {
    # On a slow machine a broker may be up long before ZooKeeper is.
    "zookeeper.connection.timeout.ms": "30000",
    # When all brokers stop together, no other broker can take over from the last ones.
    "controlled.shutdown.retry.backoff.ms": "500",
    # Without the cleaner the offsets topic only grows.
    "log.cleaner.enable": "true",
    # Without it `topic delete` only marks the topic.
    "delete.topic.enable": "true",
    # Clients of all ages then work with their defaults.
    "api.level": str(NEWEST),
}
"""The configuration of embedded brokers besides Kafka's defaults; `config` overrides it."""
OF_TEMPORARY: dict[str, str] = {
    # The first group of a cluster creates the offsets topic and `reset` deletes it, which takes a
    # second for Kafka's 50 partitions. Data that lasts keeps its number.
    "offsets.topic.num.partitions": "4",
}
"""What the brokers of a cluster with temporary data have besides; `config` overrides it too."""


def cluster_config(
    brokers: int,
    config: Mapping[str, Any],
    level: str | None,
    *,
    kept: str | None,
    cuttable: bool,
    is_temporary: bool,
) -> dict[str, str]:
    """The keys of each broker, with `api.level`; the parameters are those of EmbeddedCluster, and
    the level of its data. ConfigError."""
    if type(brokers) is not int or brokers < 0:
        raise ConfigError(f"brokers: {brokers!r} is not a number of brokers")
    level = _level_of(level, config, kept)
    if kept is not None and (fault := level_fault(level, kept)):
        raise ConfigError(f"level: {fault}. Leave it out, or give another data_dir")
    _check_addresses(config, cuttable)
    defaults = DEFAULTS | OF_TEMPORARY if is_temporary else DEFAULTS
    if Level.named(level) >= Level.V0_11_0:
        defaults = defaults | _since_0_11(brokers)
    return {**defaults, **{key: str(value) for key, value in config.items()}, "api.level": level}


def kept_level(data_dir: Path) -> str | None:
    """The level of the brokers that have their data in a cluster's directory; None without any.
    ConfigError for the directory of another user."""
    properties = data_dir / "broker-0" / PROPERTIES
    try:
        level = load_properties(properties).get("api.level") if properties.exists() else None
    except PermissionError as error:
        raise ConfigError(
            f"data_dir: {properties} cannot be read: permission denied. Use a directory of your own"
        ) from error
    return level if level in LEVELS else None


def _since_0_11(brokers: int) -> dict[str, str]:
    """Keys of a cluster of that size, from level 0.11 on; `config` overrides them. Brokers create
    an internal topic with all of its replicas or not at all, and a new group waits for members."""
    return {
        "offsets.topic.replication.factor": str(min(3, brokers)),
        "transaction.state.log.replication.factor": str(min(3, brokers)),
        "transaction.state.log.min.isr": str(min(2, brokers)),
        "group.initial.rebalance.delay.ms": "0",
    }


def _check_addresses(config: Mapping[str, Any], cuttable: bool) -> None:
    """ConfigError for an address that the brokers cannot have."""
    hosts = ("host.name", "advertised.host.name")
    for key in LISTENER_KEYS:
        if key in config:
            raise ConfigError(f"{key}: each broker has its own port; use {' and '.join(hosts)}")
    for key in hosts:
        if cuttable and key in config:
            raise ConfigError(f"{key}: clients must reach a relay at 127.0.0.1; leave the key out")


def _level_of(level: str | None, config: Mapping[str, Any], kept: str | None) -> str:
    """The value of api.level. ConfigError for one that there is not, or for two that differ."""
    given = config.get("api.level")
    named = "api.level" if level is None else "level"
    if level is None:
        level = str(kept or NEWEST if given is None else given)
    if level not in LEVELS:
        raise ConfigError(f"{named}: {level!r} is not one of {', '.join(LEVELS)}")
    if given is not None and str(given) != level:
        raise ConfigError(
            f"level: {level!r}, but api.level is {given!r} in config: give one of them"
        )
    return level
