"""The configuration keys a topic may override, with their types and ranges.

They stand in /config/topics/<t> as texts; every room that writes or reads them (admin, log, broker)
asks this table. Source: kafka.log.LogConfig 0.8.2.2 (names and types; it bounds min.insync.replicas
alone, the other ranges are ours and wider than any value that works).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kafka08.config import INT_MAX, LONG_MAX, Key, parse_value
from kafka08.errors import ConfigError
from kafka08.nearest import nearest

logger = logging.getLogger(__name__)

TopicConfigValue = int | float | bool | str
UNCLEAN_ELECTIONS: Final = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True)
class TopicKey:
    """One key: its type, its bounds, and the broker key that gives its default (None: none)."""

    kind: type[int | float | bool | str]
    broker_key: str | None
    declared: Key


def _long(broker_key: str, low: int = 0) -> TopicKey:
    return TopicKey(int, broker_key, Key(None, low=low, high=LONG_MAX))


def _int(broker_key: str | None, low: int = 0) -> TopicKey:
    return TopicKey(int, broker_key, Key(None, low=low, high=INT_MAX))


TOPIC_KEYS: Final[dict[str, TopicKey]] = {
    "segment.bytes": _int("log.segment.bytes", low=14),
    "segment.ms": _long("log.roll.ms"),
    "segment.jitter.ms": _long("log.roll.jitter.ms"),
    "segment.index.bytes": _int("log.index.size.max.bytes", low=4),
    "flush.messages": _long("log.flush.interval.messages", low=1),
    "flush.ms": _long("log.flush.interval.ms"),
    "retention.bytes": _long("log.retention.bytes", low=-1),
    "retention.ms": _long("log.retention.ms", low=-1),
    "max.message.bytes": _int("message.max.bytes"),
    "index.interval.bytes": _int("log.index.interval.bytes"),
    "file.delete.delay.ms": _int("log.segment.delete.delay.ms"),
    "delete.retention.ms": _long("log.cleaner.delete.retention.ms"),
    "min.cleanable.dirty.ratio": TopicKey(
        float, "log.cleaner.min.cleanable.ratio", Key(None, low=0)
    ),
    "cleanup.policy": TopicKey(str, "log.cleanup.policy", Key(None, choices=("delete", "compact"))),
    UNCLEAN_ELECTIONS: TopicKey(bool, UNCLEAN_ELECTIONS, Key(None)),
    # 0.8: the broker key min.insync.replicas is parsed but is not the default of topics.
    "min.insync.replicas": _int(None, low=1),
}


def parse_topic_config(overrides: Mapping[str, str]) -> dict[str, TopicConfigValue]:
    """The overrides of one topic as typed values.

    Raises ConfigError: `Unknown configuration "x".`, or key, value and range of a bad value.
    """
    check_names(overrides)
    return {name: _parse(name, text, TOPIC_KEYS[name].declared) for name, text in overrides.items()}


def parse_stored_config(topic: str, overrides: Mapping[str, str]) -> dict[str, TopicConfigValue]:
    """What ZooKeeper holds for a topic, as typed values. Whatever 0.8.2.2 can read counts, in any
    range. Keys of other versions are left out with a warning, and values that cannot be read with
    an error in the log: one topic's mistake must not keep a broker from serving it and others."""
    unknown = sorted(set(overrides) - set(TOPIC_KEYS))
    if unknown:
        logger.warning("Topic %s: skipping unknown configuration %s", topic, ", ".join(unknown))
    values: dict[str, TopicConfigValue] = {}
    for name, text in overrides.items():
        if name in TOPIC_KEYS:
            try:
                values[name] = _parse(name, text, _unbounded(TOPIC_KEYS[name].declared))
            except ConfigError as error:
                logger.error("Topic %s: %s; the broker's default holds", topic, error)
    return values


def check_names(names: Mapping[str, str] | list[str]) -> None:
    """ConfigError for the first name that is no topic configuration key."""
    for name in names:
        if name not in TOPIC_KEYS:
            found = nearest(name, TOPIC_KEYS)
            hint = "" if found is None else f" Did you mean {found}?"
            raise ConfigError(f'Unknown configuration "{name}".{hint}')


def unclean_elections_allowed(topic: str, overrides: Mapping[str, str], default: bool) -> bool:
    """Whether the topic may get a leader that is not in sync, and so lose messages: its override as
    it stands in ZooKeeper, else `default`, the broker's; that also, with an error in the log, for
    an override that is neither true nor false."""
    found = {name: text for name, text in overrides.items() if name == UNCLEAN_ELECTIONS}
    return bool(parse_stored_config(topic, found).get(UNCLEAN_ELECTIONS, default))


def override_texts(values: Mapping[str, object]) -> dict[str, str]:
    """Overrides as the texts that are stored: booleans as Kafka writes them, the rest as `str`."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }


def _parse(name: str, text: str, declared: Key) -> TopicConfigValue:
    kind = TOPIC_KEYS[name].kind
    if kind is bool or name == "cleanup.policy":
        text = text.strip().lower()
    value: TopicConfigValue = parse_value(name, text, kind, declared)
    return value


def _unbounded(declared: Key) -> Key:
    """Every value of the same type: 32 or 64 bits, any fraction, any word."""
    low = None if declared.high is None else -declared.high - 1
    return replace(declared, low=low, choices=None)
