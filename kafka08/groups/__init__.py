"""A consumer group seen from outside: its members, owners, offsets, lag and problems.

`reader` reads the `facts` of one group from ZooKeeper and the brokers; `members` and `trees` read
the znodes of many groups at once. `lag` (pure) adds up the lag by topic, `findings` (pure) derives
problems and advice from the facts. For groups that have a coordinator, from 0.9 on, there are
`coordinator_reader` and `coordinated_findings`. Nothing here changes a group.
docs/admin.md has programs.
"""

from __future__ import annotations

from kafka08.groups.coordinated import (
    CoordinatedFacts,
    CoordinatedGroup,
    CoordinatedGroups,
    CoordinatedMember,
)
from kafka08.groups.coordinated_findings import explain_coordinated
from kafka08.groups.facts import GroupFacts, GroupSummary, Owner, PartitionFacts
from kafka08.groups.findings import Finding, explain
from kafka08.groups.lag import TopicLag, lag_by_topic
from kafka08.groups.members import Member
from kafka08.groups.reader import GroupReader

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
