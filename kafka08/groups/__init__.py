"""A consumer group seen from outside: its members, owners, offsets, lag and problems.

`reader` reads the facts of one group from ZooKeeper and the brokers, as `kafka08.observe` has them;
`findings` and `coordinated_findings` (pure) derive problems and advice from the facts. Nothing here
changes a group. docs/admin.md has programs.
"""

from __future__ import annotations

from kafka08.groups.coordinated_findings import explain_coordinated
from kafka08.groups.findings import Finding, explain
from kafka08.groups.reader import GroupReader
from kafka08.observe.coordinated import CoordinatedGroup, CoordinatedGroups, CoordinatedMember
from kafka08.observe.group import CoordinatedFacts, GroupFacts, GroupSummary, PartitionFacts
from kafka08.observe.lag import TopicLag, lag_by_topic
from kafka08.observe.members import Member
from kafka08.observe.snapshot import Owner

__all__ = [
    "CoordinatedFacts",
    "CoordinatedGroup",
    "CoordinatedGroups",
    "CoordinatedMember",
    "Finding",
    "GroupFacts",
    "GroupReader",
    "GroupSummary",
    "Member",
    "Owner",
    "PartitionFacts",
    "TopicLag",
    "explain",
    "explain_coordinated",
    "lag_by_topic",
]
