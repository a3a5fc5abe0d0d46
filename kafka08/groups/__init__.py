"""A consumer group seen from outside: who is in it, who owns what, how far it got, what is wrong.

`reader` fetches the `facts` from ZooKeeper and the brokers, `members` and `trees` those that are in
ZooKeeper of many groups at once; `findings` (pure) turns them into sentences of advice. Nothing
here changes a group.
"""

from __future__ import annotations

from kafka08.groups.facts import GroupFacts, GroupSummary, Owner, PartitionFacts
from kafka08.groups.findings import Finding, explain
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
    "explain",
]
