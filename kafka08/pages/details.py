"""Reads the data of the console's pages of one group, of one topic and of the doctor, on request.

Each call opens its own connections, so a call that hangs does not block others. Raises
ZooKeeperError, and KafkaError for a group or topic that does not exist.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kafka08.admin import AdminClient
from kafka08.doctor import CHECKS, SnapshotReader, findings_of
from kafka08.groups import GroupReader
from kafka08.groups.views import ShownGroup, shown
from kafka08.observe.snapshot import ClusterView
from kafka08.pages.live import Live
from kafka08.pages.overview import findings_as_json
from kafka08.runtime import ClientRuntime


def topic_details(live: Live, name: str) -> dict[str, Any]:
    """The topic's partitions, overrides, whether it is marked for deletion, and the groups that
    read it. AdminError for an unknown topic."""
    with AdminClient(live.zookeeper, is_patient=False, runtime=live.runtime) as admin:
        [topic] = admin.describe_topics([name])
    view = live.view
    return topic.as_dict() | {"groups": [] if view is None else readers_of(view, name)}


def readers_of(view: ClusterView, topic: str) -> list[dict[str, Any]]:
    """The groups that read a topic, each with its lag there: None if it is unknown everywhere."""
    partitions = [tp for tp in view.partitions if tp.topic == topic]
    found = []
    for name, group in view.groups.items():
        lags = [view.lags[name][tp] for tp in partitions if tp in view.lags[name]]
        if lags:
            known = [lag.messages for lag in lags if lag.messages is not None]
            found.append(
                {
                    "group": name,
                    "members": group.members,
                    "lag": sum(known) if known else None,
                    "is_exact": all(lag.is_exact for lag in lags),
                }
            )
    return found


def doctor_details(zookeeper: str, runtime: ClientRuntime) -> dict[str, Any]:
    with SnapshotReader(zookeeper, runtime=runtime) as reader:
        snapshot = reader.read_snapshot()
    return {
        "now_ms": snapshot.now_ms,
        "checks": len(CHECKS),
        "findings": findings_as_json(findings_of(snapshot)),
    }


def group_details(live: Live, name: str) -> dict[str, Any]:
    """The group's details. `kinds`: in ZooKeeper, with a coordinator, or both; empty for an unknown
    group. `verdicts` are for its committed offsets."""
    failed_requests: list[str] = []
    with GroupReader(live.zookeeper, runtime=live.runtime) as reader:
        snapshot = reader.snapshot(name)
        group = snapshot.groups[name]
        if group.unknown_group is not None:
            failed_requests.append(f"whether a coordinator has the group: {group.unknown_group}")
        views = [shown(snapshot, name, kind) for kind in group.kinds]
        commits = reader.commits(name, [p for view in views for p in view.partitions])
    for view in views:
        view.commits = commits
    return {
        "group": name,
        "kinds": [_kind(view) for view in views],
        "verdicts": [
            [row.topic, row.partition, row.verdict, row.seconds_late]
            for row in live.partitions_of(name)
        ],
        "lags": live.lags_of(name),
        "failed_requests": failed_requests,
    }


def _kind(view: ShownGroup) -> dict[str, Any]:
    return view.as_dict() | {"findings": [asdict(finding) for finding in view.findings()]}
