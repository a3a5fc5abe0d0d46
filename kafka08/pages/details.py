"""Reads the data of the console's pages of one group, of one topic and of the doctor, on request.

Each call opens its own connections, so a call that hangs does not block others. Raises
ZooKeeperError, and KafkaError for a group or topic that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kafka08.admin import AdminClient
from kafka08.doctor import CHECKS, SnapshotReader, findings_of
from kafka08.errors import KafkaError
from kafka08.groups import CoordinatedFacts, GroupFacts, GroupReader, PartitionFacts
from kafka08.groups.views import ShownCoordinatedGroup, ShownGroup, ShownZooKeeperGroup
from kafka08.observe.group import coordinated_facts, group_facts
from kafka08.pages.live import Live
from kafka08.pages.overview import findings_as_json
from kafka08.runtime import ClientRuntime


def topic_details(zookeeper: str, name: str, runtime: ClientRuntime) -> dict[str, Any]:
    """The topic's partitions, overrides, and whether it is marked for deletion. AdminError for an
    unknown topic."""
    with AdminClient(zookeeper, runtime=runtime) as admin:
        [topic] = admin.describe_topics([name])
    return topic.as_dict()


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
    views: list[ShownGroup] = []
    failed_requests: list[str] = []
    with GroupReader(live.zookeeper, runtime=live.runtime) as reader:
        snapshot = reader.snapshot(name)
        facts = group_facts(snapshot, name) if reader.may_be_in_zookeeper(name) else None
        try:
            coordinated = coordinated_facts(snapshot, name)
        except KafkaError as error:
            coordinated = None
            failed_requests.append(f"whether a coordinator has the group: {error}")
        commits = reader.commits(name, [*partitions_of(facts), *partitions_of(coordinated)])
    if facts is not None and (facts.in_zookeeper or (facts.exists and coordinated is None)):
        views.append(ShownZooKeeperGroup(facts))
    if coordinated is not None and not (views and coordinated.group.is_simple):
        views.append(ShownCoordinatedGroup(coordinated))
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


def partitions_of(facts: GroupFacts | CoordinatedFacts | None) -> Sequence[PartitionFacts]:
    return () if facts is None else facts.partitions


def _kind(view: ShownGroup) -> dict[str, Any]:
    return view.as_dict() | {"findings": [asdict(finding) for finding in view.findings()]}
