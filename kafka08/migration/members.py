"""The live members of a group during a migration: kafka08 members follow orders by themselves.

An operator must reconfigure other members (kafka08/groups/members.py tells them apart).
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.observe.members import Member
from kafka08.zk.migration_protocol import OffsetStorage, Order


def behind(members: Iterable[Member], order: Order) -> list[str]:
    """The kafka08 members that have not confirmed `order`."""
    return [m.consumer_id for m in members if m.is_ours and m.confirmed != order]


def instructions(members: Iterable[Member], storage: OffsetStorage) -> list[str]:
    """The changes that `storage` needs by hand, one line for each member of another client."""
    keys = " and ".join(f"{key}={value}" for key, value in storage.properties.items())
    return [
        f"{member.consumer_id} is not a kafka08 member: set {keys} in its consumer.properties and "
        "restart it"
        for member in members
        if not member.is_ours
    ]
