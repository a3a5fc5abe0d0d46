"""GroupedErrors: the errors of many partitions in one request, one log line per kind of error.

When the leader of a thousand partitions changes, followers fetch all of them before it knows, and
again a moment later. 0.8.2.2 logs every partition every time, on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka08.errors import ApiError, Refusal
from kafka08.structs import TopicPartition


class GroupedErrors:
    """Errors of one request by code. Iterates over (`partition [t,0] and 9 more`, text)."""

    def __init__(self) -> None:
        self._first: dict[int, tuple[TopicPartition, str]] = {}
        self._counts: dict[int, int] = {}

    def add(self, topic_partition: TopicPartition, error: ApiError | Refusal) -> None:
        """Add an error; the text of the first of each code is kept, the others are counted."""
        code = error.code
        if code not in self._first:
            self._first[code] = topic_partition, str(error)
        self._counts[code] = self._counts.get(code, 0) + 1

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for code, (topic_partition, text) in self._first.items():
            more = self._counts[code] - 1
            yield f"partition {topic_partition}" + (f" and {more} more" if more else ""), text
