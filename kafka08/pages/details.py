"""The data of the pages of one group, of one topic and of the doctor: for the console read on
request, for a report taken from the doctor's snapshot.

Each call for the console opens its own connections, so a call that hangs does not block others.
Raises ZooKeeperError, and KafkaError for a group or topic that does not exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from kafka08.admin.choice import admin_of
from kafka08.doctor import CHECKS, SnapshotReader, findings_of
from kafka08.doctor.snapshot import Snapshot
from kafka08.exporter.summary import GroupPartitionRow
from kafka08.groups import GroupReader
from kafka08.groups.views import ShownGroup, shown
from kafka08.observe.commit_times import KafkaCommit
from kafka08.observe.group_lags import LagSum
from kafka08.observe.snapshot import ClusterView
from kafka08.pages.live import Live
from kafka08.structs import TopicPartition

ROWS_MAX: Final = 20_000
"""Most partitions of groups whose details a report has: 5 MB of it."""


def topic_details(live: Live, name: str) -> dict[str, Any]:
    """The topic's partitions, overrides, whether it is marked for deletion, and the groups that
    read it. AdminError for an unknown topic."""
    with admin_of(live.place, live.runtime) as admin:
        [topic] = admin.describe_topics([name])
    view = live.view
    return topic.as_dict() | {"groups": [] if view is None else readers_of(view, name)}


def readers_of(view: ClusterView, topic: str) -> list[dict[str, Any]]:
    """The groups that read a topic, each with its lag there: None if it is unknown everywhere."""
    return [
        _reader(view, name, lags)
        for name in view.groups
        if topic in view.lags[name].uncommitted
        and (lags := view.lags[name].by_topic()[topic]).partitions
    ]


def _reader(view: ClusterView, group: str, lags: LagSum) -> dict[str, Any]:
    return {
        "group": group,
        "members": view.groups[group].members,
        "lag": lags.lag,
        "is_exact": not lags.inexact,
    }


def doctor_details(live: Live) -> dict[str, Any]:
    with SnapshotReader(*live.place, runtime=live.runtime) as reader:
        return doctor_answer(reader.read_snapshot())


def doctor_answer(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "now_ms": snapshot.now_ms,
        "checks": len(CHECKS),
        "findings": [finding.as_dict() for finding in findings_of(snapshot)],
    }


def group_details(live: Live, name: str) -> dict[str, Any]:
    """The group's details. `kinds`: in ZooKeeper, with a coordinator, or both; empty for an unknown
    group. `verdicts` are for its committed offsets."""
    with GroupReader(*live.place, runtime=live.runtime) as reader:
        snapshot = reader.snapshot(name)
        views = [shown(snapshot, name, kind) for kind in snapshot.groups[name].kinds]
        commits = reader.commits(name, [p for view in views for p in view.partitions])
    return group_answer(snapshot, name, views, commits, live.partitions_of(name))


def group_answer(
    view: ClusterView,
    name: str,
    views: Sequence[ShownGroup],
    commits: Mapping[TopicPartition, KafkaCommit],
    rows: Iterable[GroupPartitionRow],
) -> dict[str, Any]:
    unknown = view.groups[name].unknown_group
    why = [] if unknown is None else [f"whether a coordinator has the group: {unknown}"]
    for one in views:
        one.commits = commits
    return {
        "group": name,
        "kinds": [_kind(one) for one in views],
        "verdicts": [[row.topic, row.partition, row.verdict, row.seconds_late] for row in rows],
        "failed_requests": why,
    }


def answers_of(
    snapshot: Snapshot, rows_of: Callable[[str], Iterable[GroupPartitionRow]]
) -> dict[str, Any]:
    """The answers of the console to its pages, for a report. Groups with the most lag come
    first; those beyond ROWS_MAX partitions are left out. `rows_of`: a group's partitions with their
    verdicts."""
    view = snapshot.view
    commits: defaultdict[str, dict[TopicPartition, KafkaCommit]] = defaultdict(dict)
    for (name, tp), commit in snapshot.commits.items():
        commits[name][tp] = commit
    groups: dict[str, Any] = {}
    left = ROWS_MAX
    for name in sorted(view.groups, key=lambda name: -lag_of(view, name)):
        left -= len(view.lags[name])
        if left < 0:
            break
        views = [shown(view, name, kind) for kind in view.groups[name].kinds]
        groups[name] = group_answer(view, name, views, commits[name], rows_of(name))
    lags: defaultdict[str, dict[str, LagSum]] = defaultdict(dict)
    for name in groups:
        for topic, of_topic in view.lags[name].by_topic().items():
            if of_topic.partitions:
                lags[topic][name] = of_topic
    return {
        "/api/doctor": doctor_answer(snapshot),
        "/api/group": groups,
        "/api/topic": {
            name: {
                "config": facts.config or {},
                "marked_for_deletion": name in snapshot.deletions,
                "groups": [_reader(view, *item) for item in lags[name].items()],
            }
            for name, facts in snapshot.topics.items()
        },
    }


def lag_of(view: ClusterView, group: str) -> int:
    return view.lags[group].total().messages


def _kind(view: ShownGroup) -> dict[str, Any]:
    return view.as_dict() | {"findings": [asdict(finding) for finding in view.findings()]}
