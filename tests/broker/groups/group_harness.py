"""Runs one Group as its driver does: actions at once, timers on a clock that the test moves."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kafka08.broker.groups.group import Group
from kafka08.broker.groups.group_events import (
    Actions,
    EndRebalance,
    EndSession,
    Join,
    JoinResult,
    Protocols,
    RemoveGroup,
    RespondToJoin,
    RespondToSync,
    StartRebalance,
    StartSession,
    StoreGroup,
)
from kafka08.levels import Level

T = TypeVar("T")

SESSION_MS = 10_000
REBALANCE_MS = 20_000
RANGE: Protocols = (("range", b"m"),)


@dataclass
class Asked(Generic[T]):
    """A request whose response may still be outstanding."""

    responses: list[T] = field(default_factory=list)

    @property
    def parked(self) -> bool:
        return not self.responses

    @property
    def response(self) -> T:
        (response,) = self.responses
        return response


class GroupHarness:
    """Without `appends_at_once`, `appends` has the StoreGroups that have not ended."""

    def __init__(
        self,
        level: Level = Level.V0_10_2,
        *,
        appends_at_once: bool = True,
        initial_delay_ms: float = 0,
    ) -> None:
        self.group = Group("g", level, initial_delay_ms)
        self.now = 0.0
        self.appends_at_once = appends_at_once
        self.appends: list[StoreGroup] = []
        self.records: list[StoreGroup] = []
        self.removed = False
        self.sessions: dict[str, float] = {}
        self.rebalance_due: float | None = None
        self.numbers = itertools.count(1)

    # Requests

    def join(
        self,
        member_id: str = "",
        protocols: Protocols = RANGE,
        *,
        protocol_type: str = "consumer",
        rebalance_ms: int = REBALANCE_MS,
        session_ms: int = SESSION_MS,
    ) -> Asked[JoinResult]:
        asked: Asked[JoinResult] = Asked()
        request = Join(
            member_id,
            "" if member_id else f"m{next(self.numbers)}",
            "client",
            "/127.0.0.1",
            rebalance_ms,
            session_ms,
            protocol_type,
            protocols,
            asked.responses.append,
        )
        self.run(self.group.join(request, self.now))
        return asked

    def sync(
        self, member_id: str, generation: int | None = None, plan: Mapping[str, bytes] | None = None
    ) -> Asked[tuple[bytes, int]]:
        asked: Asked[tuple[bytes, int]] = Asked()
        number = self.group.generation if generation is None else generation

        def reply(assignment: bytes, error_code: int) -> None:
            asked.responses.append((assignment, error_code))

        self.run(self.group.sync(member_id, number, plan or {}, reply, self.now))
        return asked

    def heartbeat(self, member_id: str, generation: int | None = None) -> int:
        number = self.group.generation if generation is None else generation
        return self.group.heartbeat(member_id, number, self.now)

    def leave(self, member_id: str) -> int:
        error_code, actions = self.group.leave(member_id, self.now)
        self.run(actions)
        return error_code

    def commit(self, member_id: str, generation: int | None = None) -> int:
        number = self.group.generation if generation is None else generation
        return self.group.check_commit(member_id, number, self.now)

    def unload(self) -> None:
        self.run(self.group.unload())

    def finish_append(self, error_code: int = 0) -> None:
        store = self.appends.pop(0)
        self.run(self.group.stored(store, error_code, self.now))

    # A whole rebalance

    def settle(self, members: int) -> list[str]:
        """A STABLE group with this number of new members. The first is the leader."""
        first = self.join().response.member_id
        joins = [self.join() for _ in range(members - 1)]
        if joins:
            joins.insert(0, self.join(first))
        ids = [first, *(join.response.member_id for join in joins[1:])]
        for member_id in reversed(ids):
            self.sync(member_id, plan={known: known.encode() for known in ids})
        return ids

    # Timers

    def advance(self, ms: float) -> None:
        """Moves the clock. Each timer ends at its own time."""
        end = self.now + ms
        while True:
            timers: list[tuple[float, str | None]] = [(d, m) for m, d in self.sessions.items()]
            if self.rebalance_due is not None:
                timers.append((self.rebalance_due, None))
            due, member_id = min(timers, key=lambda timer: timer[0], default=(end + 1, None))
            if due > end:
                break
            self.now = due
            if member_id is None:
                self.rebalance_due = None
                self.run(self.group.rebalance_timer(self.now))
            else:
                del self.sessions[member_id]
                self.run(self.group.session_timer(member_id, self.now))
        self.now = end

    # Actions

    def run(self, actions: Actions) -> None:
        for action in actions:
            match action:
                case RespondToJoin():
                    action.reply(action.result)
                case RespondToSync():
                    action.reply(action.assignment, action.error_code)
                case StartSession():
                    assert action.member_id not in self.sessions, "one timer for each member"
                    self.sessions[action.member_id] = self.now + action.delay_ms
                case EndSession():
                    self.sessions.pop(action.member_id, None)
                case StartRebalance():
                    assert self.rebalance_due is None, "one rebalance timer for each group"
                    self.rebalance_due = self.now + action.delay_ms
                case EndRebalance():
                    self.rebalance_due = None
                case RemoveGroup():
                    self.removed = True
                case StoreGroup():
                    self.records.append(action)
                    self.appends.append(action)
                    if self.appends_at_once:
                        self.finish_append()
