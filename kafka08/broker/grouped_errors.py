"""GroupedErrors: the errors of many partitions in one request, one log line per kind of error.

When the leader of a thousand partitions changes, followers fetch all of them before it knows, and
again a moment later. 0.8.2.2 logs every partition every time, on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka08.structs import TopicPartition


class GroupedErrors:
    """Errors of one request by class. Iterates over (`partition [t,0] and 9 more`, error)."""

    def __init__(self) -> None:
        self._first: dict[type[Exception], tuple[TopicPartition, Exception]] = {}
        self._counts: dict[type[Exception], int] = {}

    def add(self, topic_partition: TopicPartition, error: Exception) -> None:
        """Add an error; the first of each class is kept, the others are counted."""
        kind = type(error)
        self._first.setdefault(kind, (topic_partition, error))
        self._counts[kind] = self._counts.get(kind, 0) + 1

    def __iter__(self) -> Iterator[tuple[str, Exception]]:
        for kind, (topic_partition, error) in self._first.items():
            more = self._counts[kind] - 1
            yield f"partition {topic_partition}" + (f" and {more} more" if more else ""), error
