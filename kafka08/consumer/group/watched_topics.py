"""WatchedTopics: whether new metadata calls for another assignment of a group. Pure.

It does if a member's subscription has other topics than its last JoinGroup or, at the leader, if a
topic has another number of partitions than the assignment was computed from. A topic must have had
too few for a while: a broker that has just started knows none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

from kafka08.client.metadata import ClusterMetadata

MISSING_CHECK_S: Final = 1.0
"""How often the leader of a group looks for subscribed topics that do not exist yet, and how long a
topic must have been gone before it is given up."""


class WatchedTopics:
    """The topics of one member. Times are seconds of a monotonic clock.

    counts   topic → partition count that the assignment was computed from; {} unless this member
             leads and has computed one since it joined
    """

    def __init__(self) -> None:
        self.counts: Mapping[str, int] = {}
        self._joined: Sequence[str] = ()
        self._shrunk_since = inf
        """Since when a topic has fewer partitions than in `counts`."""

    def begin(self, topics: Sequence[str]) -> None:
        """The member joins with these topics, sorted."""
        self._joined = topics
        self.count({})

    def count(self, counts: Mapping[str, int]) -> None:
        """The leader has computed an assignment from these counts."""
        self.counts = counts
        self._shrunk_since = inf

    def have_changed(self, topics: Sequence[str], metadata: ClusterMetadata, now: float) -> bool:
        """Whether this metadata, in which the subscription has these topics, calls for another
        assignment."""
        if not self.note_shrinking(metadata, now):
            self._shrunk_since = inf
        return (
            topics != self._joined
            or max(self._changes(metadata), default=0) > 0
            or now - self._shrunk_since >= MISSING_CHECK_S
        )

    def note_shrinking(self, metadata: ClusterMetadata, now: float) -> bool:
        """Whether a topic has fewer partitions in this metadata. The first time counts."""
        has_shrunk = min(self._changes(metadata), default=0) < 0
        if has_shrunk:
            self._shrunk_since = min(self._shrunk_since, now)
        return has_shrunk

    def misses_some(self) -> bool:
        """Whether a topic has no partitions, or has fewer now."""
        return self._shrunk_since < inf or 0 in self.counts.values()

    def _changes(self, metadata: ClusterMetadata) -> list[int]:
        """How many partitions each topic has more than in `counts`. One that no broker lists has
        none."""
        return [
            len(info.partitions if (info := metadata.topics.get(topic)) else ()) - count
            for topic, count in self.counts.items()
        ]
