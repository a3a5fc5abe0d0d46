"""Histories: how the ends of logs and the offsets of groups moved, from one view to the next.

Pure. What is not in a view any more is forgotten, so the memory is that of the cluster: ENDS_MAX
ends for each partition and HISTORY_MAX commits for each partition of each group.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import Final, NamedTuple

from kafka08.exporter.verdict import HISTORY_MAX, Commit, Verdict, verdict_of
from kafka08.exporter.view import ClusterView, Committed
from kafka08.structs import TopicPartition

ENDS_MAX: Final = 240
"""Ends that are remembered of a log: an hour at an interval of 15 s."""
RECENT_ENDS: Final = 10
"""The newest of them, by which a group is taken to have been at the end a moment ago."""
COMMITS_MIN: Final = 3
WATCHED_MS_MIN: Final = 300_000
"""A history with fewer commits is judged only after so long."""

GroupPartition = tuple[str, TopicPartition]


class End(NamedTuple):
    """Where a log ended at a time."""

    time_ms: int
    offset: int


class GroupHistory:
    """The commits of a group in one partition, and since when it is watched."""

    __slots__ = ("commits", "last", "since_ms")

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self.commits: deque[Commit] = deque(maxlen=HISTORY_MAX)
        self.last: Committed | None = None


class Histories:
    """Give it each view, oldest first."""

    def __init__(self) -> None:
        self._ends: dict[TopicPartition, list[End]] = {}
        self._groups: dict[GroupPartition, GroupHistory] = {}

    def add(self, view: ClusterView) -> None:
        """Remember what moved."""
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
            ends.clear()  # the topic was made again, or its log was truncated
        if len(ends) >= 2 and ends[-1].offset == ends[-2].offset == now.offset:
            ends.pop()  # of a log that stands still the first and the last time say all
        ends.append(now)
        del ends[:-ENDS_MAX]

    def seconds_late(self, view: ClusterView, tp: TopicPartition, offset: int) -> float | None:
        """How long ago the message at `offset` was written: as late is a group that committed it.
        By the timestamp of the message if the view has it; else by when the log ended there, so at
        least the time since the first end that is remembered if it is below that. 0.0 if there is
        no such message yet; None if the end is not known."""
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
        """By Burrow's rules; OK as long as too little is known."""
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
    """Messages from `offset` to the end of the log; None if that is not known. Never below 0."""
    partition = view.partitions.get(tp)
    if partition is None or partition.end is None:
        return None
    return max(0, partition.end - offset)
