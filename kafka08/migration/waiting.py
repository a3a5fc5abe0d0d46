"""Waits for live members to confirm the order in the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kafka08.admin.connections import Connections
from kafka08.migration.members import behind
from kafka08.observe.members import read_members_of
from kafka08.zk.migration_protocol import Order

POLL_S: Final = 0.05


def wait_for(condition: Callable[[], bool], connections: Connections, timeout_s: float) -> bool:
    """Wait for the condition; False if it does not hold within the timeout. Looks at least once.
    Raises Interrupted."""
    give_up_at = connections.runtime.monotonic() + timeout_s
    while not condition():
        if connections.runtime.monotonic() >= give_up_at:
            return False
        connections.pause(POLL_S)
    return True


def await_confirmations(
    connections: Connections, orders: Mapping[str, Order], timeout_s: float
) -> dict[str, list[str]]:
    """Wait until every live member of ours follows its group's order, or until the timeout. Returns
    groups with members that have not confirmed by then → these members."""
    left: dict[str, list[str]] = {group: [] for group in orders}

    def all_have() -> bool:
        for group, members in read_members_of(connections.zk, list(left)).items():
            left[group] = behind(members, orders[group])
            if not left[group]:
                del left[group]
        return not left

    wait_for(all_have, connections, timeout_s)
    return left


def unconfirmed(members: Sequence[str]) -> list[str]:
    """The text about members that have not confirmed the order."""
    return [f"{m} has not confirmed: see its log, then repeat the step" for m in members]
