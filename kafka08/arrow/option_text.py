"""Spark's options in their raw form: text by case-insensitive names. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafka08.config import BLANKS, LONG_MAX
from kafka08.errors import ConfigError
from kafka08.nearest import did_you_mean
from kafka08.structs import TopicPartition

DURATION: Final = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.IGNORECASE)
UNIT_MS: Final = {
    "": 1,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
KAFKA_PREFIX: Final = "kafka."


class OptionText:
    """The options of one read or write. Each `take…` returns one option, or None (or the default)
    without it, and raises ConfigError that names the option, its value and the allowed values.
    `finish` rejects names that no `take…` asked for."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._left = {name.lower(): str(value).strip(BLANKS) for name, value in options.items()}
        self._known: list[str] = []

    def take(self, name: str) -> str | None:
        """The text of an option. `name` is spelled as documented, for errors."""
        self._known.append(name)
        return self._left.pop(name.lower(), None)

    def take_bool(self, name: str, default: bool) -> bool:
        text = self.take(name)
        if text is None:
            return default
        if text.lower() not in {"true", "false"}:
            raise ConfigError(f"{name}: {text!r} is neither 'true' nor 'false'")
        return text.lower() == "true"

    def take_number(
        self, name: str, default: Any = None, *, low: int = 1, high: int = LONG_MAX
    ) -> Any:
        """A whole number from `low` to `high`."""
        text = self.take(name)
        if text is None:
            return default
        try:
            number = int(text)
        except ValueError:
            raise ConfigError(f"{name}: {text!r} is not a whole number") from None
        if number < low:
            raise ConfigError(f"{name}: {text!r} is below {low}")
        if number > high:
            raise ConfigError(f"{name}: {text!r} is above {high}")
        return number

    def take_choice(self, name: str, choices: Iterable[str], default: Any = None) -> Any:
        text = self.take(name)
        if text is None:
            return default
        allowed = list(choices)
        if text.lower() not in allowed:
            raise ConfigError(f"{name}: {text!r} is not one of {', '.join(allowed)}")
        return text.lower()

    def take_duration_ms(self, name: str, default: int) -> int:
        """A time as Spark writes it: `500ms`, `30s`, `15m`, `2h`; without a unit milliseconds."""
        text = self.take(name)
        if text is None:
            return default
        match = DURATION.fullmatch(text)
        if match is None or match[2].lower() not in UNIT_MS:
            raise ConfigError(f"{name}: {text!r} is not a time like 500ms, 30s, 15m or 2h")
        return int(match[1]) * UNIT_MS[match[2].lower()]

    def take_kafka_keys(self, refused: Mapping[str, str]) -> dict[str, str]:
        """Every `kafka.…` option by its key without the prefix, and zookeeper.connect, which needs
        none. `refused`: key → why it must not be set."""
        keys = {
            name.removeprefix(KAFKA_PREFIX): self._left.pop(name)
            for name in sorted(self._left)
            if name.startswith(KAFKA_PREFIX)
        }
        for key in keys:
            if key in refused:
                raise ConfigError(f"{KAFKA_PREFIX}{key} is not supported: {refused[key]}")
        zookeeper = self.take("zookeeper.connect")
        if zookeeper is not None:
            keys.setdefault("zookeeper.connect", zookeeper)
        return keys

    def ignore(self, *names: str) -> None:
        """Drop options that Spark itself adds."""
        for name in names:
            self._left.pop(name, None)

    def finish(self) -> None:
        """Reject unknown options: a misspelt limit must not read everything."""
        if self._left:
            unknown = sorted(self._left)
            meant = did_you_mean(unknown[0], set(self._known)) if len(unknown) == 1 else ""
            raise ConfigError(
                f"unknown option{'s' * (len(unknown) > 1)} {', '.join(unknown)}; "
                f"valid are {', '.join(sorted(set(self._known)))} and kafka.*{meant}"
            )


def partitions_from_json(text: str, option: str) -> tuple[TopicPartition, ...]:
    """`{"topic":[0,1]}`, sorted, without repetitions."""
    parsed = _json_object(text, option)
    found: set[TopicPartition] = set()
    for topic, partitions in parsed.items():
        if not isinstance(partitions, list) or not all(map(_is_natural, partitions)):
            raise ConfigError(f'{option}: {text!r} is not of the form {{"topic":[0,1]}}')
        found.update(TopicPartition(topic, partition) for partition in partitions)
    if not found:
        raise ConfigError(f"{option}: {text!r} names no partition")
    return tuple(sorted(found))


def numbers_from_json(text: str, option: str, *, low: int) -> dict[TopicPartition, int]:
    """`{"topic":{"0":23}}`: a number from `low` to LONG_MAX for each partition."""
    parsed = _json_object(text, option)
    numbers = {}
    for topic, of_topic in parsed.items():
        if not isinstance(of_topic, dict):
            raise ConfigError(f'{option}: {text!r} is not of the form {{"topic":{{"0":23}}}}')
        for partition, number in of_topic.items():
            if not (partition.isascii() and partition.isdigit()):
                raise ConfigError(f"{option}: {partition!r} is not a partition")
            if type(number) is not int or not low <= number <= LONG_MAX:
                raise ConfigError(
                    f"{option}: {number!r} of {TopicPartition(topic, int(partition))} is not a "
                    f"number from {low} to {LONG_MAX}"
                )
            numbers[TopicPartition(topic, int(partition))] = number
    return numbers


def numbers_to_json(numbers: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """The object that `numbers_from_json` reads, topics and partitions in order."""
    topics: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(numbers):
        topics.setdefault(topic, {})[str(partition)] = numbers[TopicPartition(topic, partition)]
    return topics


def _json_object(text: str, option: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{option}: {text!r} is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise ConfigError(f"{option}: {text!r} is not a JSON object")
    return parsed


def _is_natural(number: object) -> bool:
    return type(number) is int and number >= 0
