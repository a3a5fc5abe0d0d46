"""A member's subscription: named topics, or all topics that a pattern allows.

A subscription is in the member's znode, where every other member reads and expands it: {topic:
streams} with the pattern `static`, or {regular expression: streams} with `white_list` or
`black_list`. Sources: kafka.consumer.TopicFilter and TopicCount 0.8.2.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from kafka08.consumer.java_pattern import compile_java_pattern
from kafka08.errors import ConfigError
from kafka08.structs import INTERNAL_TOPICS
from kafka08.zk.nodes import BLACK_LIST, STATIC, WHITE_LIST, ConsumerRegistration


class TopicFilter:
    """A pattern over whole topic names, in Java's syntax.

    As in 0.8.2.2 a comma means `|`; blanks, and quotes around the pattern, are dropped. Raises
    ConfigError for a pattern that java_pattern.py does not support.
    """

    PATTERN: ClassVar[str]

    def __init__(self, pattern: str) -> None:
        self.regex = normalized(pattern)
        self._compiled = compile_java_pattern(self.regex)

    def matches(self, topic: str) -> bool:
        """ConfigError if the pattern takes too long."""
        return self._compiled.fullmatch(topic)

    def allows(self, topic: str, *, exclude_internal_topics: bool = True) -> bool:
        """Whether `topic` is read under this filter."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((type(self), self.regex))

    def __str__(self) -> str:
        return self.regex

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.regex!r})"


class Whitelist(TopicFilter):
    """Every topic whose whole name matches."""

    PATTERN = WHITE_LIST

    def allows(self, topic: str, *, exclude_internal_topics: bool = True) -> bool:
        return self.matches(topic) and not (exclude_internal_topics and topic in INTERNAL_TOPICS)


class Blacklist(TopicFilter):
    """Every topic whose whole name does not match."""

    PATTERN = BLACK_LIST

    def allows(self, topic: str, *, exclude_internal_topics: bool = True) -> bool:
        return not self.matches(topic) and not (
            exclude_internal_topics and topic in INTERNAL_TOPICS
        )


def normalized(pattern: str) -> str:
    """The pattern as 0.8.2.2 keeps it. Source: kafka.consumer.TopicFilter."""
    text = pattern.strip().replace(",", "|").replace(" ", "")
    return re.sub(r"[\"']+$", "", re.sub(r"^[\"']+", "", text))


class Subscription(Protocol):
    """A member's subscription, and its topics among those that exist."""

    @property
    def is_static(self) -> bool:
        """Whether the topics are named, rather than found by a pattern."""

    def topics(self, existing: Iterable[str]) -> dict[str, int]:
        """topic → streams. Named topics count whether they exist or not."""

    def registration(self, timestamp_ms: int) -> ConsumerRegistration:
        """The text of the member's znode."""


@dataclass(frozen=True, slots=True)
class StaticSubscription:
    """Named topics, each with its number of streams (at least 1)."""

    streams: Mapping[str, int]
    is_static: ClassVar[bool] = True

    def topics(self, existing: Iterable[str]) -> dict[str, int]:
        return dict(self.streams)

    def registration(self, timestamp_ms: int) -> ConsumerRegistration:
        return ConsumerRegistration(dict(self.streams), STATIC, timestamp_ms)


@dataclass(frozen=True, slots=True)
class FilterSubscription:
    """All topics that a filter allows; the same `streams` streams read all of them."""

    topic_filter: TopicFilter
    streams: int
    exclude_internal_topics: bool = True
    is_static: ClassVar[bool] = False

    def topics(self, existing: Iterable[str]) -> dict[str, int]:
        internal = self.exclude_internal_topics
        return {
            topic: self.streams
            for topic in sorted(existing)
            if self.topic_filter.allows(topic, exclude_internal_topics=internal)
        }

    def registration(self, timestamp_ms: int) -> ConsumerRegistration:
        return ConsumerRegistration(
            {self.topic_filter.regex: self.streams}, self.topic_filter.PATTERN, timestamp_ms
        )


def subscription_of(
    registration: ConsumerRegistration, *, exclude_internal_topics: bool
) -> Subscription:
    """The subscription in a member's znode.

    As in 0.8.2.2 an empty one is static with any pattern, and the reader's own
    exclude.internal.topics applies, not the member's. ConfigError for a pattern that is not
    supported, or for fewer than 1 streams.
    """
    streams = registration.subscription
    if any(count < 1 for count in streams.values()):
        raise ConfigError(f"a registration has fewer than one stream: {dict(streams)}")
    if not streams or registration.pattern not in {WHITE_LIST, BLACK_LIST}:
        return StaticSubscription(dict(streams))
    pattern, count = next(iter(streams.items()))
    kind = Whitelist if registration.pattern == WHITE_LIST else Blacklist
    return FilterSubscription(kind(pattern), count, exclude_internal_topics)


def thread_ids(consumer_id: str, streams: int) -> list[str]:
    """The names of a member's streams, `<consumer id>-<n>`."""
    return [f"{consumer_id}-{number}" for number in range(streams)]
