"""GroupState: the states of a coordinated group, and the legal transitions.

Source: kafka.coordinator.GroupState, GroupMetadata.validPreviousStates 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class GroupState(Enum):
    """The value is the name in a DescribeGroups response."""

    EMPTY = "Empty"
    """No members; the group may have offsets. 0.9 has this state only until the first member joins.

    Join           the first member is added → PreparingRebalance
    Sync, Heartbeat, Leave, Commit of a member: 25
    Commit         with a generation below 0: stored
    expiry         no offsets are left → Dead
    """

    PREPARING_REBALANCE = "PreparingRebalance"
    """Members join again; their joins are parked.

    Join           parked; once every known member is parked → AwaitingSync
    Sync           27
    Heartbeat      27, and the session is renewed (not in 0.9)
    Leave          the member is removed, which may complete the rebalance
    Commit         stored, for the generation before
    time is up     members whose join is not parked are removed → AwaitingSync; without members
                   → Empty (0.9: Dead)
    """

    AWAITING_SYNC = "AwaitingSync"
    """The generation has begun; its members wait for the leader's assignment.

    Join           unchanged member: answered at once; else → PreparingRebalance
    Sync           parked; that of the leader is stored, then → Stable
    Heartbeat      27
    Commit         27
    Leave, expiry  → PreparingRebalance; parked syncs get 27
    """

    STABLE = "Stable"
    """Every member can have its assignment.

    Join           unchanged follower: answered at once; else → PreparingRebalance
    Sync           the member's assignment
    Heartbeat      0
    Commit         stored, for a member of this generation
    Leave, expiry  → PreparingRebalance
    """

    DEAD = "Dead"
    """The group was removed: it has expired, or another broker coordinates it. Final; every request
    gets 25."""

    # Enum's own hash is a Python function.
    __hash__ = object.__hash__


VALID_PREVIOUS: Final[dict[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.AWAITING_SYNC, GroupState.EMPTY}
    ),
    GroupState.AWAITING_SYNC: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.AWAITING_SYNC}),
    GroupState.DEAD: frozenset(GroupState),
}
"""State → the states it may follow."""
