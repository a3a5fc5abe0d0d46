"""Histories: how log ends and group offsets changed from view to view.

Pure. Partitions and groups that disappear from the view are dropped, so memory is bounded by the
cluster: ENDS_MAX ends per partition, and HISTORY_MAX commits per partition of each group.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import Final, NamedTuple

from kafka08.exporter.verdict import HISTORY_MAX, Commit, Verdict, verdict_of
from kafka08.exporter.view import ClusterView, Committed
from kafka08.structs import TopicPartition

ENDS_MAX: Final = 240
"""Number of ends kept per log: an hour at an interval of 15 s."""
RECENT_ENDS: Final = 10
"""Number of the newest ends; a group that had reached one of them was at the end a moment ago."""
COMMITS_MIN: Final = 3
WATCHED_MS_MIN: Final = 300_000
"""A history with fewer commits gets a verdict only after this time."""

GroupPartition = tuple[str, TopicPartition]


class End(NamedTuple):
    """The end of a log at a time."""

    time_ms: int
    offset: int


class GroupHistory:
    """The commits of a group in one partition, and when its history began."""

    __slots__ = ("commits", "last", "since_ms")

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self.commits: deque[Commit] = deque(maxlen=HISTORY_MAX)
        self.last: Committed | None = None


class Histories:
    """The histories of one cluster. `add` each view, oldest first."""

    def __init__(self) -> None:
        self._ends: dict[TopicPartition, list[End]] = {}
        self._groups: dict[GroupPartition, GroupHistory] = {}

    def add(self, view: ClusterView) -> None:
        """Record what changed."""
        self._ends = {tp: self._ends.get(tp, []) for tp in view.partitions}
        for tp, partition in view.partitions.items():
            if partition.end is not None:
                self._add_end(self._ends[tp], End(view.now_ms, partition.end))
        known = self._groups
        self._groups = {}
        for name, group in view.groups.items():
            for tp, committed in group.newest().items():
                history = known.get((name, tp)) or GroupHistory(view.now_ms)
                self._groups[name, tp] = history
                if committed != history.last:
                    history.last = committed
                    lag = lag_of(view, tp, committed.offset)
                    history.commits.append(Commit(committed.offset, view.now_ms, lag))

    @staticmethod
    def _add_end(ends: list[End], now: End) -> None:
        if ends and now.offset < ends[-1].offset:
            ends.clear()  # the topic was recreated, or its log was truncated
        if len(ends) >= 2 and ends[-1].offset == ends[-2].offset == now.offset:
            ends.pop()  # for a log without appends the first and the last time suffice
        ends.append(now)
        del ends[:-ENDS_MAX]

    def seconds_late(self, view: ClusterView, tp: TopicPartition, offset: int) -> float | None:
        """Age of the message at `offset`: the time lag of a group that committed that offset. From
        the message's timestamp if the view has it; else from the time when the log ended there, or,
        for an offset below the oldest recorded end, at least the age of that end. 0.0 if there is
        no such message yet; None if the log end is unknown."""
        partition = view.partitions.get(tp)
        if partition is None or partition.end is None:
            return None
        offset = partition.first_from(offset)
        if offset >= partition.end:
            return 0.0
        stamped_ms = view.times.get((tp, offset))
        if stamped_ms is not None:
            return max(0.0, (view.now_ms - stamped_ms) / 1000)
        ends = self._ends.get(tp)
        if not ends:
            return None
        index = bisect_right(ends, offset, key=lambda known: known.offset)
        # The message at `offset` was written between the ends `index - 1` and `index`.
        if index == 0:
            return (view.now_ms - ends[0].time_ms) / 1000
        if index == len(ends):
            return 0.0
        before, after = ends[index - 1], ends[index]
        share = (offset - before.offset) / (after.offset - before.offset)
        written_ms = before.time_ms + share * (after.time_ms - before.time_ms)
        return max(0.0, (view.now_ms - written_ms) / 1000)

    def verdict(self, view: ClusterView, group: str, tp: TopicPartition) -> Verdict:
        """The verdict by Burrow's rules; OK while the history is too short."""
        history = self._groups.get((group, tp))
        if history is None or history.last is None:
            return Verdict.OK
        lag = lag_of(view, tp, history.last.offset)
        watched_ms = view.now_ms - history.since_ms
        if not lag or (len(history.commits) < COMMITS_MIN and watched_ms < WATCHED_MS_MIN):
            return Verdict.OK
        recent = [end.offset for end in self._ends.get(tp, [])[-RECENT_ENDS:]]
        return verdict_of(list(history.commits), recent, lag, view.now_ms)


def lag_of(view: ClusterView, tp: TopicPartition, offset: int) -> int | None:
    """Messages from `offset` to the log end, at least 0; None if the end is unknown."""
    partition = view.partitions.get(tp)
    if partition is None or partition.end is None:
        return None
    return max(0, partition.end - offset)
