"""The text of the JVM about a topic configuration value that it refuses, as in CreateTopics 1.

Whether a value is refused, kafka08.topic_config says. Source: ConfigDef.parse, ConfigException and
kafka.log.LogConfig 0.10.2.2 and 0.11.0.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kafka08.config import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from kafka08.hashing import java_string_hash
from kafka08.levels import ByLevel, Level
from kafka08.topic_config import (
    CLEANUP_POLICY,
    CODECS,
    KEYS_AT,
    REPLICAS,
    THROTTLED,
    TopicKey,
)

BUCKETS: Final = 32
"""Of the JVM's hash table of its 24 keys."""


def bucket(name: str) -> int:
    """The place of a key in a java.util.HashMap."""
    value = java_string_hash(name) & 0xFFFFFFFF
    return (value ^ value >> 16) & BUCKETS - 1


KEYS: Final = KEYS_AT[Level.V0_10_2]
"""Those of 0.11, too."""
BESIDE: Final = ("delete.retention.ms", "min.compaction.lag.ms", "file.delete.delay.ms")
"""Keys that LogConfig declares one after another."""
ORDER: Final = ByLevel(
    {
        Level.V0_10_2: sorted(KEYS, key=bucket),
        Level.V0_11_0: [
            key
            for name in KEYS
            if name not in BESIDE[1:]
            for key in (BESIDE if name == BESIDE[0] else (name,))
        ],
    }
)
"""The order in which values are checked: that of a hash table, then that of the declaration."""
FORMATS_OF_REPLICAS: Final = ByLevel(
    {
        Level.V0_10_2: " must match for format [partitionId],[brokerId]:[partitionId],[brokerId]:"
        "[partitionId],[brokerId] etc",
        Level.V0_11_0: "must be the literal '*' or a list of replicas in the following format: "
        "[partitionId],[brokerId]:[partitionId],[brokerId]:...",
    }
)
LOWEST: Final = {"segment.index.bytes": 0}
"""Where the JVM takes less than kafka08.topic_config."""
POLICIES: Final = ("compact", "delete")
WHOLE: Final = re.compile(r"([+-]?)0*(\d{1,19})")
"""With as many digits as LONG_MAX has: Python refuses to read numbers of thousands."""
FRACTION: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?Infinity")
ALL_DIGITS: Final = (1e-3, 1e7)
"""Where Java writes a number without an exponent: from, and below."""


def text_of_refusal(overrides: Mapping[str, str], level: Level) -> str | None:
    """The text about the first of these values that the JVM of `level` refuses, in its order; None
    if it takes them all."""
    for name in ORDER[level]:
        fault = fault_of(name, overrides[name], level) if name in overrides else None
        if fault is not None:
            value, reason = fault
            return f"Invalid value {value} for configuration {name}: {reason}"
    return None


def fault_of(name: str, text: str, level: Level) -> tuple[str, str] | None:
    """The value as the text has it, and what is wrong with it."""
    key = KEYS[name]
    trimmed = text.strip()
    if key.kind is bool:
        is_boolean = trimmed.lower() in {"true", "false"}
        return None if is_boolean else (text, "Expected value to be either true or false")
    if key.kind is int:
        return fault_of_int(name, text, key)
    if key.kind is float:
        return fault_of_float(text)
    if name in THROTTLED:
        return fault_of_replicas(name, trimmed, level)
    if name == CLEANUP_POLICY:
        return fault_of_word(items_of(trimmed) if trimmed else [], POLICIES)
    return fault_of_word([trimmed], CODECS) if name == "compression.type" else None


def fault_of_int(name: str, text: str, key: TopicKey) -> tuple[str, str] | None:
    is_long = key.declared.high == LONG_MAX
    low, high = (LONG_MIN, LONG_MAX) if is_long else (INT_MIN, INT_MAX)
    found = WHOLE.fullmatch(text.strip())
    value = None if found is None else int("".join(found.groups()))
    if value is None or not low <= value <= high:
        return text, f"Not a number of type {'LONG' if is_long else 'INT'}"
    least = LOWEST.get(name, key.declared.low)
    if least is not None and value < least:
        return str(value), f"Value must be at least {least}"
    return None


def fault_of_float(text: str) -> tuple[str, str] | None:
    """For a fraction between 0 and 1."""
    trimmed = text.strip()
    if FRACTION.fullmatch(trimmed) is None:
        return None if trimmed == "NaN" else (text, "Not a number of type DOUBLE")
    value = float(trimmed)
    if value < 0:
        return java_double(value), "Value must be at least 0"
    return (java_double(value), "Value must be no more than 1") if value > 1 else None


def java_double(value: float) -> str:
    """`Double.toString`."""
    low, high = ALL_DIGITS
    if value in (float("inf"), float("-inf")):
        return f"{'-' * (value < 0)}Infinity"
    if value == 0 or low <= abs(value) < high:
        return repr(value)
    digits = f"{value!r}".lower().partition("e")[0].lstrip("-").replace(".", "").strip("0")
    exponent = int(f"{value:e}".partition("e")[2])
    return f"{'-' * (value < 0)}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def items_of(trimmed: str) -> list[str]:
    """The items of a list, without the blanks around them."""
    return [item.strip() for item in trimmed.split(",")]


def fault_of_word(words: list[str], legal: tuple[str, ...]) -> tuple[str, str] | None:
    for word in words:
        if word not in legal:
            return word, f"String must be one of: {', '.join(legal)}"
    return None


def fault_of_replicas(name: str, trimmed: str, level: Level) -> tuple[str, str] | None:
    if REPLICAS.fullmatch(trimmed) is not None:
        return None
    items = ", ".join(items_of(trimmed))
    return f"[{items}]", f"{name} {FORMATS_OF_REPLICAS[level]}"
