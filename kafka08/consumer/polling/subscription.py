"""What a KafkaConsumer reads: topics by name, topics by a pattern, or partitions by number."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from kafka08.consumer.subscription import TopicFilter
from kafka08.structs import INTERNAL_TOPICS, TopicPartition
from kafka08.topic_name import fault_of


@dataclass(frozen=True, slots=True)
class Topics:
    """These topics, shared with the group."""

    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pattern:
    """All topics whose whole name a pattern lets through, shared with the group."""

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
    """These partitions, without a group."""

    partitions: tuple[TopicPartition, ...]


Subscription: TypeAlias = Topics | Pattern | Chosen


def parse_topics(
    wanted: str | Iterable[str] | re.Pattern[str] | TopicFilter, *, exclude_internal_topics: bool
) -> Topics | Pattern:
    """ValueError for what cannot be a topic's name; TypeError for what is not text."""
    if isinstance(wanted, re.Pattern | TopicFilter):
        return Pattern(wanted, exclude_internal_topics)
    names = frozenset([wanted] if isinstance(wanted, str) else wanted)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a topic is a str, not a {type(name).__name__}")
        if (fault := fault_of(name)) is not None:
            raise ValueError(f"topic {name!r}: {fault}")
    return Topics(names)
