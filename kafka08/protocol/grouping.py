"""Groups partitions by topic, as messages have them, and lists them by TopicPartition again.

Topics and partitions keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from kafka08.structs import TopicPartition

T = TypeVar("T")
P_co = TypeVar("P_co", bound="_OfPartition", covariant=True)


class _OfPartition(Protocol):
    @property
    def partition(self) -> int: ...


class _OfTopic(Protocol[P_co]):
    @property
    def topic(self) -> str: ...
    @property
    def partitions(self) -> Sequence[P_co]: ...


def by_topic(items: Mapping[TopicPartition, T]) -> dict[str, list[tuple[int, T]]]:
    """`{topic: [(partition, item), …]}`."""
    topics: dict[str, list[tuple[int, T]]] = {}
    for (topic, partition), item in items.items():
        topics.setdefault(topic, []).append((partition, item))
    return topics


def by_partition(topics: Iterable[_OfTopic[P_co]]) -> dict[TopicPartition, P_co]:
    """TopicPartition → partition of a request or response. 0.8: the last of repeated partitions
    counts, for the JVM reads them into a map."""
    return {
        TopicPartition(of_topic.topic, of_partition.partition): of_partition
        for of_topic in topics
        for of_partition in of_topic.partitions
    }
