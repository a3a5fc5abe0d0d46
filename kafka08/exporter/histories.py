"""Histories: how log ends and group offsets changed from view to view.

Pure. Partitions and groups that disappear from the view are dropped, so memory is bounded by the
cluster: ENDS_MAX ends per partition, and HISTORY_MAX commits per partition of each group.

A hundred thousand partitions of groups are usual, and each view asks for all of them. So what
depends on the commits alone is decided when one is recorded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

from kafka08.exporter.verdict import (
    HISTORY_MAX,
    Commit,
    Verdict,
    has_stopped,
    verdict_on_commits,
    was_at_end,
    worst,
)
from kafka08.observe.lag import UNKNOWN
from kafka08.observe.snapshot import ClusterView, Committed, GroupState
from kafka08.structs import TopicPartition

ENDS_MAX: Final = 240
"""Number of ends kept per log: an hour at an interval of 15 s."""
RECENT_ENDS: Final = 10
"""Number of the newest ends; a group that had reached one of them was at the end a moment ago."""
COMMITS_MIN: Final = 3
WATCHED_MS_MIN: Final = 300_000
"""A history with fewer commits gets a verdict only after this time."""


class LogEnds:
    """The ends of a log, oldest first: `offsets`, which never fall, at `times_ms`."""

    __slots__ = ("offsets", "times_ms")

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.times_ms: list[int] = []

    def add(self, time_ms: int, offset: int) -> None:
        offsets, times_ms = self.offsets, self.times_ms
        if offsets and offset < offsets[-1]:  # the topic was recreated, or its log was truncated
            offsets.clear()
            times_ms.clear()
        if len(offsets) >= 2 and offsets[-1] == offsets[-2] == offset:
            times_ms[-1] = time_ms  # for a log without appends the first and the last time suffice
            return
        offsets.append(offset)
        times_ms.append(time_ms)
        del offsets[:-ENDS_MAX], times_ms[:-ENDS_MAX]

    @property
    def lowest_recent(self) -> int | None:
        return self.offsets[-RECENT_ENDS:][0] if self.offsets else None


class GroupHistory:
    """The commits of a group in one partition, and when its history began.

    verdict   on the commits, if the group has not stopped
    """

    __slots__ = ("commits", "last", "since_ms", "verdict")

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self.commits: list[Commit] = []
        self.last: Committed | None = None
        self.verdict = Verdict.OK

    def add(self, committed: Committed, time_ms: int, lag: int | None) -> int:
        """Record a commit; returns how many there were since the last one, at least 1. The first
        one that is seen counts as none, because its time is unknown."""
        before, self.last = self.last, committed
        self.commits.append(Commit(committed.offset, time_ms, lag))
        del self.commits[:-HISTORY_MAX]
        self.verdict = verdict_on_commits(self.commits)
        if before is None:
            return 0
        return max(1, committed.version - before.version) if before.version >= 0 else 1


class Histories:
    """The histories of one cluster. `add` each view, oldest first.

    commits   group → commits seen: each one to ZooKeeper, whose znodes count; of those to Kafka at
              most one per partition and view
    """

    def __init__(self) -> None:
        self.commits: dict[str, int] = {}
        self._ends: dict[TopicPartition, LogEnds] = {}
        self._groups: dict[str, dict[TopicPartition, GroupHistory]] = {}

    def add(self, view: ClusterView) -> None:
        """Record what changed."""
        known_ends = self._ends
        self._ends = {tp: known_ends.get(tp) or LogEnds() for tp in view.partitions}
        for tp, partition in view.partitions.items():
            if partition.end is not None:
                self._ends[tp].add(view.now_ms, partition.end)
        known, self._groups = self._groups, {}
        for name, group in view.groups.items():
            self._groups[name] = self._add_group(view, name, group.newest(), known.get(name, {}))
        self.commits = {name: self.commits.get(name, 0) for name in view.groups}

    def _add_group(
        self,
        view: ClusterView,
        name: str,
        newest: Mapping[TopicPartition, Committed],
        known: Mapping[TopicPartition, GroupHistory],
    ) -> dict[TopicPartition, GroupHistory]:
        histories = {}
        commits = 0
        for tp, committed in newest.items():
            history = histories[tp] = known.get(tp) or GroupHistory(view.now_ms)
            if committed != history.last:
                lag = view.lags[name].own[tp].messages
                commits += history.add(committed, view.now_ms, lag)
        self.commits[name] = self.commits.get(name, 0) + commits
        return histories

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
        if ends is None or not ends.offsets:
            return None
        index = bisect_right(ends.offsets, offset)
        # The message at `offset` was written between the ends `index - 1` and `index`.
        if index == 0:
            return (view.now_ms - ends.times_ms[0]) / 1000
        if index == len(ends.offsets):
            return 0.0
        before, after = ends.offsets[index - 1 : index + 1]
        began_ms, ended_ms = ends.times_ms[index - 1 : index + 1]
        written_ms = began_ms + (offset - before) / (after - before) * (ended_ms - began_ms)
        return max(0.0, (view.now_ms - written_ms) / 1000)

    def of_group(self, view: ClusterView, group: str) -> Verdict | None:
        """The worst verdict of its partitions, never OK while one is unknown; None if all are."""
        lags = view.lags[group]
        if not lags and view.groups[group].members == 0:
            return Verdict.OK
        found = [self.verdict(view, group, tp) for tp, lag in lags.own.items() if lag != UNKNOWN]
        is_whole = len(found) == len(lags.own)
        for rest in lags.rest().values():
            if rest.unread:
                found.append(uncommitted_verdict(view.groups[group]))
            if rest.known > rest.unread:
                found.append(Verdict.OK)
            is_whole = is_whole and rest.known == rest.partitions
        if found and not is_whole:
            found.append(Verdict.WATCHING)
        return worst(found) if found else None

    def verdict(self, view: ClusterView, group: str, tp: TopicPartition) -> Verdict:
        """The verdict by Burrow's rules. At once: BEYOND for an offset beyond the log's end, and
        STOP for a group with unread messages and without members, unless it was seen to commit.
        WATCHING while the history is too short for another one."""
        lag = view.lags[group].get(tp, UNKNOWN)
        if lag.is_beyond_end:
            return Verdict.BEYOND
        if not lag.messages:
            return Verdict.OK
        history = self._groups.get(group, {}).get(tp)
        if history is None:
            return uncommitted_verdict(view.groups[group])
        commits = history.commits
        if view.groups[group].members == 0 and len(commits) < 2:
            return Verdict.STOP
        watched_ms = view.now_ms - history.since_ms
        if len(commits) < COMMITS_MIN and watched_ms < WATCHED_MS_MIN:
            return Verdict.WATCHING
        ends = self._ends.get(tp)
        lowest_end = None if ends is None else ends.lowest_recent
        if has_stopped(commits, view.now_ms) and not was_at_end(commits, lowest_end):
            return Verdict.STOP
        return history.verdict


def uncommitted_verdict(group: GroupState) -> Verdict:
    """The verdict where a group has committed nothing of a log with messages."""
    return Verdict.STOP if group.members == 0 else Verdict.WATCHING
