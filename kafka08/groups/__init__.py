"""A consumer group seen from outside: who is in it, who owns what, how far it got, what is wrong.

`reader` reads the `facts` from ZooKeeper and the brokers, `members` and `trees` those that are in
ZooKeeper of many groups at once; `lag` (pure) adds up what is not read, `findings` (pure) turns
facts into sentences of advice. Nothing here changes a group. docs/admin.md has programs.
"""

from __future__ import annotations

from kafka08.groups.facts import GroupFacts, GroupSummary, Owner, PartitionFacts
from kafka08.groups.findings import Finding, explain
from kafka08.groups.lag import TopicLag, lag_by_topic
from kafka08.groups.members import Member
from kafka08.groups.reader import GroupReader

__all__ = [
    "Finding",
    "GroupFacts",
    "GroupReader",
    "GroupSummary",
    "Member",
    "Owner",
    "PartitionFacts",
    "TopicLag",
    "explain",
    "lag_by_topic",
]
