"""A group of either kind as tables in a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from kafka08.cli.echo import say, show
from kafka08.cli.table import show_table
from kafka08.groups.views import (
    STATE,
    ShownCoordinatedGroup,
    ShownGroup,
    ShownZooKeeperGroup,
)
from kafka08.listing import counted
from kafka08.observe.coordinated import CoordinatedGroups
from kafka08.observe.snapshot import COORDINATOR, ZOOKEEPER
from kafka08.structs import TopicPartition, host_port

MEMBER_COLUMNS: Final = ("member", "subscribes", "owns")
COORDINATED_MEMBER_COLUMNS: Final = ("member", "client", "host", "subscribes", "owns")
STATE_COLUMNS: Final = (*STATE, "members")
PARTITION_COLUMNS: Final = (
    "topic",
    "partition",
    "owner",
    "zookeeper",
    "kafka",
    "log start",
    "log end",
    "lag",
)
EXPIRY_COLUMN: Final = "kafka expires"


def show_group(view: ShownGroup) -> None:
    """Its tables on stdout."""
    if isinstance(view, ShownCoordinatedGroup):
        _show_coordinated_members(view)
    elif isinstance(view, ShownZooKeeperGroup):
        rows = [tuple(member.values()) for member in view.members_as_dicts()]
        show_table(MEMBER_COLUMNS, [row[: len(MEMBER_COLUMNS)] for row in rows])
        if rows and view.partitions:
            show()
    rows = [(*view.row(p).values(), p.lag_text) for p in view.partitions]
    if view.commits:
        expiries = [_expiry(view, p.topic_partition) for p in view.partitions]
        rows = [(*row, expiry) for row, expiry in zip(rows, expiries, strict=True)]
        show_table((*PARTITION_COLUMNS, EXPIRY_COLUMN), rows)
    else:
        show_table(PARTITION_COLUMNS, rows)


def _expiry(view: ShownGroup, tp: TopicPartition) -> str | None:
    commit, expires_ms = view.commits.get(tp), view.expires_ms(tp)
    if commit is None:
        return None
    if expires_ms is None:
        return "not while it has members"
    return commit.expiry_text(expires_ms, time.time() * 1000)


def _show_coordinated_members(view: ShownCoordinatedGroup) -> None:
    group = view.facts.group
    where = f"{group.coordinator.id} ({host_port(group.coordinator.host, group.coordinator.port)})"
    state = (group.state, group.protocol_type, group.protocol, len(group.members))
    show_table(STATE_COLUMNS, [(where, *state)])
    if group.members:
        show()
        rows = [
            (m.member_id, m.client_id, m.host, m.fault or ",".join(m.topics), len(m.owns))
            for m in group.members
        ]
        show_table(COORDINATED_MEMBER_COLUMNS, rows)
    if view.partitions:
        show()


def warn_of_failed_requests(reasons: Sequence[str]) -> None:
    """Print on stderr what is unknown, and why."""
    for what in reasons:
        say(f"Unknown: {what}")
    if reasons:
        say("Try: find what is wrong: kafka08 doctor")


def note_zookeeper_is_not_read(listed: CoordinatedGroups) -> None:
    """Say on stderr that a list made without ZooKeeper leaves its groups out, if there are brokers
    of 0.8, which know no other groups, or if nothing was found."""
    if listed.old_brokers:
        old = counted(listed.old_brokers, "broker")
        say(
            f"Groups in ZooKeeper are not listed, and the cluster has {old} of 0.8, which have no "
            "others. Give --zookeeper.",
        )
    elif not listed.groups:
        say("Groups in ZooKeeper are not listed; --zookeeper shows them too.")


def note_other_kind(name: str, shown: str) -> None:
    """Say that a group of the same name and the other kind exists."""
    other, where = (
        (COORDINATOR, "a coordinator") if shown == ZOOKEEPER else (ZOOKEEPER, "ZooKeeper")
    )
    say(f"This is the group of {shown}; {where} has members of {name} too: --kind {other}")
