"""The subscription of a KafkaConsumer: topics by name, topics by pattern, or partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

from kafka08.consumer.subscription import TopicFilter
from kafka08.structs import INTERNAL_TOPICS, TopicPartition
from kafka08.topic_name import fault_of


@dataclass(frozen=True, slots=True)
class Topics:
    """These topics; the group assigns their partitions."""

    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pattern:
    """All topics whose whole name matches; the group assigns their partitions."""

    pattern: re.Pattern[str] | TopicFilter
    exclude_internal_topics: bool

    def of(self, topics: Iterable[str]) -> frozenset[str]:
        return frozenset(topic for topic in topics if self._allows(topic))

    def _allows(self, topic: str) -> bool:
        excluded = self.exclude_internal_topics
        if isinstance(self.pattern, TopicFilter):
            return self.pattern.allows(topic, exclude_internal_topics=excluded)
        is_excluded = excluded and topic in INTERNAL_TOPICS
        return not is_excluded and self.pattern.fullmatch(topic) is not None


@dataclass(frozen=True, slots=True)
class Chosen:
    """Exactly these partitions, without an assignment by the group."""

    partitions: tuple[TopicPartition, ...]


Subscription: TypeAlias = Topics | Pattern | Chosen


def parse_partitions(wanted: Iterable[object]) -> list[TopicPartition]:
    """The partitions without duplicates. TypeError for anything but a pair of topic and partition,
    ValueError for an illegal topic or a negative partition."""
    return list(dict.fromkeys(map(_parse_partition, wanted)))


def _parse_partition(wanted: Any) -> TopicPartition:
    try:
        topic, partition = wanted
        found = TopicPartition(topic, index(partition))
    except (TypeError, ValueError):
        raise TypeError(f"{wanted!r} is not a TopicPartition") from None
    _check_topic(topic)
    if found.partition < 0:
        raise ValueError(f"{found}: the lowest partition is 0")
    return found


def parse_topics(
    wanted: str | Iterable[str] | re.Pattern[str] | TopicFilter, *, exclude_internal_topics: bool
) -> Topics | Pattern:
    """ValueError for an illegal topic name, TypeError for a name that is not a str."""
    if isinstance(wanted, re.Pattern | TopicFilter):
        return Pattern(wanted, exclude_internal_topics)
    names = frozenset([wanted] if isinstance(wanted, str) else wanted)
    for name in names:
        _check_topic(name)
    return Topics(names)


def _check_topic(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"a topic name must be a str, not {type(name).__name__}")
    if (fault := fault_of(name)) is not None:
        raise ValueError(f"topic {name!r}: {fault}. Pass a pattern as re.compile(...)")
