"""The configuration keys that a topic may override, with their types and ranges.

They are texts in /config/topics/<t>. Every package that writes or reads them (admin, log, broker)
uses this table, which has the keys of every level. Source: kafka.log.LogConfig 0.8.2.2, 0.9.0.1 and
0.10.2.2 (names, types and, from 0.9 on, ranges; 0.8.2.2 limits only min.insync.replicas, the other
ranges are ours and wider than any value that works). Values that the JVM accepts and no broker can
use are refused: segment.index.bytes below 4, and words for message.format.version and
message.timestamp.type that are none.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from kafka08.config import INT_MAX, LONG_MAX, LONG_MIN, Key, parse_value
from kafka08.errors import ConfigError
from kafka08.levels import Level
from kafka08.nearest import nearest
from kafka08.protocol_version import parse_protocol_version

logger = logging.getLogger(__name__)

TopicConfigValue = int | float | bool | str
MIN_INSYNC: Final = "min.insync.replicas"
UNCLEAN_ELECTIONS: Final = "unclean.leader.election.enable"
CLEANUP_POLICY: Final = "cleanup.policy"
MESSAGE_FORMAT: Final = "message.format.version"
POLICIES: Final = ("delete", "compact")
BOTH_POLICIES: Final = ("compact,delete", "delete,compact")
CODECS: Final = ("uncompressed", "snappy", "lz4", "gzip", "producer")
"""The values of compression.type."""
TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")
THROTTLED: Final = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
REPLICAS: Final = re.compile(r"\s*([0-9]+:[0-9]+\s*)?(,\s*([0-9]+:[0-9]+\s*)?)*|\s*\*\s*(,.*)?")
"""A value of a THROTTLED key: partition:broker, … or *. Clients send it, so each text matches in
one way only: a second way, such as blanks of two parts beside each other, would double the time at
each comma of a text that does not match."""


@dataclass(frozen=True, slots=True)
class TopicKey:
    """One key: its type, its bounds, and the broker key that gives its default (None: none)."""

    kind: type[int | float | bool | str]
    broker_key: str | None
    declared: Key


def _long(
    broker_key: str, low: int = 0, since: Level = Level.V0_8_2, later_low: int | None = None
) -> TopicKey:
    later = {} if later_low is None else {Level.V0_9_0: {"low": later_low}}
    return TopicKey(int, broker_key, Key(None, low=low, high=LONG_MAX, since=since, later=later))


def _int(broker_key: str | None, low: int = 0, later_high: int = INT_MAX) -> TopicKey:
    later = {Level.V0_9_0: {"high": later_high}}
    return TopicKey(int, broker_key, Key(None, low=low, high=INT_MAX, later=later))


TOPIC_KEYS: Final[dict[str, TopicKey]] = {
    "segment.bytes": _int("log.segment.bytes", low=14),
    "segment.ms": _long("log.roll.ms"),
    "segment.jitter.ms": _long("log.roll.jitter.ms"),
    "segment.index.bytes": _int("log.index.size.max.bytes", low=4),
    "flush.messages": _long("log.flush.interval.messages", low=1, later_low=0),
    "flush.ms": _long("log.flush.interval.ms"),
    "retention.bytes": _long("log.retention.bytes", low=-1, later_low=LONG_MIN),
    "retention.ms": _long("log.retention.ms", low=-1, later_low=LONG_MIN),
    "max.message.bytes": _int("message.max.bytes"),
    "index.interval.bytes": _int("log.index.interval.bytes"),
    "file.delete.delay.ms": _int("log.segment.delete.delay.ms", later_high=LONG_MAX),
    "delete.retention.ms": _long("log.cleaner.delete.retention.ms"),
    "min.cleanable.dirty.ratio": TopicKey(
        float,
        "log.cleaner.min.cleanable.ratio",
        Key(None, low=0, later={Level.V0_9_0: {"high": 1}}),
    ),
    CLEANUP_POLICY: TopicKey(
        str,
        "log.cleanup.policy",
        Key(None, choices=POLICIES, later={Level.V0_10_2: {"choices": POLICIES + BOTH_POLICIES}}),
    ),
    UNCLEAN_ELECTIONS: TopicKey(bool, UNCLEAN_ELECTIONS, Key(None)),
    # 0.8: the broker key min.insync.replicas is parsed but is not the default of topics.
    MIN_INSYNC: _int(None, low=1),
    "compression.type": TopicKey(
        str, "compression.type", Key(None, choices=CODECS, since=Level.V0_9_0)
    ),
    "preallocate": TopicKey(bool, "log.preallocate", Key(None, since=Level.V0_9_0, effect=False)),
    MESSAGE_FORMAT: TopicKey(str, "log.message.format.version", Key(None, since=Level.V0_10_2)),
    "message.timestamp.type": TopicKey(
        str,
        "log.message.timestamp.type",
        Key(None, choices=TIMESTAMP_TYPES, since=Level.V0_10_2),
    ),
    "message.timestamp.difference.max.ms": _long(
        "log.message.timestamp.difference.max.ms", since=Level.V0_10_2
    ),
    "min.compaction.lag.ms": _long("log.cleaner.min.compaction.lag.ms", since=Level.V0_10_2),
    **dict.fromkeys(THROTTLED, TopicKey(str, None, Key(None, since=Level.V0_10_2, effect=False))),
}
KEYS_AT: Final[Mapping[Level, Mapping[str, TopicKey]]] = {
    level: MappingProxyType(
        {
            name: replace(key, declared=key.declared.at(level))
            for name, key in TOPIC_KEYS.items()
            if key.declared.since <= level
        }
    )
    for level in Level
}
"""The keys of a level."""


def parse_topic_config(
    overrides: Mapping[str, str], level: Level = Level.V0_8_2
) -> dict[str, TopicConfigValue]:
    """The overrides of one topic as typed values, by the keys that `level` has.

    Raises ConfigError: `Unknown configuration "x".`, or key, value and range of a bad value.
    """
    check_names(overrides, level)
    keys = KEYS_AT[level]
    policy = overrides.get(CLEANUP_POLICY, "")
    if level >= Level.V0_9_0 and policy != policy.lower():
        raise ConfigError(f"{CLEANUP_POLICY}: {policy!r} must be in lower case")
    return {name: _parse(name, text, keys[name], level) for name, text in overrides.items()}


def parse_stored_config(
    topic: str, overrides: Mapping[str, str], level: Level = Level.V0_8_2
) -> dict[str, TopicConfigValue]:
    """A topic's overrides in ZooKeeper, as typed values. Every value that 0.8.2.2 can parse is
    used, in any range; outside of ours with a warning (`segment.bytes=-1` refuses every message).
    Unknown keys are skipped with a warning, and values that cannot be parsed, or words that a key
    does not know, with an error in the log: one topic's mistake must not keep a broker from serving
    it and others."""
    keys = KEYS_AT[level]
    unknown = sorted(set(overrides) - set(keys))
    if unknown:
        logger.warning("Topic %s: skipping unknown configuration %s", topic, ", ".join(unknown))
    values: dict[str, TopicConfigValue] = {}
    for name, text in overrides.items():
        if name in keys:
            try:
                values[name] = _parse(name, text, _unbounded(name, level), level)
            except ConfigError as error:
                logger.error("Topic %s: %s; using the broker's default", topic, error)
            else:
                _warn_outside(topic, name, text, level)
    return values


def _warn_outside(topic: str, name: str, text: str, level: Level) -> None:
    try:
        _parse(name, text, KEYS_AT[level][name], level)
    except ConfigError as error:
        logger.warning(
            "Topic %s: %s, but is used as it is. To correct it: kafka08 topic alter %s --config "
            "%s=VALUE",
            topic,
            error,
            topic,
            name,
        )


def check_names(names: Iterable[str], level: Level = Level.V0_8_2) -> None:
    """ConfigError for the first name that is not a topic configuration key of `level`."""
    keys = KEYS_AT[level]
    for name in names:
        if name in keys:
            continue
        if name in TOPIC_KEYS:
            since = TOPIC_KEYS[name].declared.since
            raise ConfigError(
                f'Unknown configuration "{name}": brokers of level {level} do not have it, those '
                f"of {since} and later do."
            )
        found = nearest(name, keys)
        hint = "" if found is None else f" Did you mean {found}?"
        raise ConfigError(f'Unknown configuration "{name}".{hint}')


def unclean_elections_allowed(topic: str, overrides: Mapping[str, str], default: bool) -> bool:
    """Whether the topic may get a leader that is not in sync, and so lose messages: its override in
    ZooKeeper, else `default`, the broker's; also, with an error in the log, for an override that is
    neither true nor false."""
    found = {name: text for name, text in overrides.items() if name == UNCLEAN_ELECTIONS}
    return bool(parse_stored_config(topic, found).get(UNCLEAN_ELECTIONS, default))


def override_texts(values: Mapping[str, object]) -> dict[str, str]:
    """Overrides as the texts that are stored: booleans as Kafka writes them, the rest as `str`.
    Without blanks around them, which brokers of 0.8 on the JVM refuse in a number."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value).strip()
        for name, value in values.items()
    }


def _parse(name: str, text: str, key: TopicKey, level: Level) -> TopicConfigValue:
    if level >= Level.V0_9_0:
        text = text.strip()
    if key.kind is bool or name == CLEANUP_POLICY:
        text = ",".join(part.strip() for part in text.lower().split(","))
    if name == CLEANUP_POLICY and level >= Level.V0_10_2:
        if not text:
            return text  # neither deleted nor compacted
        text = ",".join(dict.fromkeys(text.split(",")))  # a word twice is legal
    value: TopicConfigValue = parse_value(name, text, key.kind, key.declared)
    if name == MESSAGE_FORMAT:
        parse_protocol_version(name, str(value), level)
    if name in THROTTLED and REPLICAS.fullmatch(str(value)) is None:
        raise ConfigError(f"{name}: {text!r} is neither partition:broker,partition:broker nor *")
    return value


def _unbounded(name: str, level: Level) -> TopicKey:
    """A key that takes every value of its type: 32 or 64 bits, any fraction; below 0.10.2 any word
    as cleanup.policy, which all but `delete` mean compaction. Another key has no meaning for words
    that it does not know."""
    key = KEYS_AT[level][name]
    declared = key.declared
    high = declared.high if key.kind is int else None
    low = None if high is None else -high - 1
    is_any_word = name == CLEANUP_POLICY and level < Level.V0_10_2
    choices = None if is_any_word else declared.choices
    return replace(key, declared=replace(declared, low=low, high=high, choices=choices))
