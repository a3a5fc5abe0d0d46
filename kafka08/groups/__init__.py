"""A consumer group seen from outside: who is in it, who owns what, how far it got, what is wrong.

`reader` reads the `facts` from ZooKeeper and the brokers, `members` and `trees` those that are in
ZooKeeper of many groups at once; `lag` (pure) adds up what is not read, `findings` (pure) turns
facts into sentences of advice. Groups that have a coordinator, from 0.9 on, are read by
`coordinator_reader` and explained by `coordinated_findings`. Nothing here changes a group.
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
