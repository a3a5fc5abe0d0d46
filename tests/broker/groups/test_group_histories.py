"""Random histories of a group: members join, sync, send heartbeats, commit, leave or stop; appends
fail.

After every step the invariants hold on which members rely. A failure prints seed and level, which
repeat the history."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from kafka08.broker.groups.group_events import JoinResult, Protocols
from kafka08.broker.groups.group_state import GroupState
from kafka08.levels import Level
from tests.broker.groups.group_harness import Asked, GroupHarness

STEPS = 400
SEEDS = range(25)
LISTS: tuple[Protocols, ...] = (
    (("range", b"1"), ("roundrobin", b"1")),
    (("range", b"2"), ("roundrobin", b"1")),
    (("roundrobin", b"1"), ("range", b"1")),
    (("range", b"1"),),
)
APPEND_CODES = (0, 0, 0, 0, 15, 27)


@dataclass
class Client:
    """A consumer and what it knows of its group."""

    member_id: str = ""
    generation: int = -1
    join: Asked[JoinResult] | None = None
    sync: Asked[tuple[bytes, int]] | None = None

    @property
    def waits(self) -> bool:
        return self.join is not None or self.sync is not None


class History:
    def __init__(self, seed: int, level: Level) -> None:
        self.random = random.Random(seed)
        self.level = level
        self.harness = GroupHarness(level, appends_at_once=False)
        self.clients = [Client() for _ in range(6)]
        self.generation = 0
        self.answered: dict[int, list[JoinResult]] = {}

    def run(self) -> None:
        steps = (
            self.join, self.join, self.join, self.sync, self.sync, self.sync, self.beat, self.beat,
            self.commit, self.leave, self.die, self.wait, self.wait, self.append, self.append,
            self.expire,
        )  # fmt: skip
        for _ in range(STEPS):
            self.random.choice(steps)()
            self.hear()
            self.check()
        self.harness.unload()
        for client in self.clients:
            assert client.join is None or not client.join.parked
            assert client.sync is None or not client.sync.parked
        assert ({}, None) == (self.harness.sessions, self.harness.rebalance_due)

    # Steps

    def idle(self) -> Client | None:
        free = [client for client in self.clients if not client.waits]
        return self.random.choice(free) if free else None

    def join(self) -> None:
        client = self.idle()
        if client is None:
            return
        if self.harness.group.state is GroupState.DEAD:
            numbers = self.harness.numbers  # no member id comes twice
            self.harness = GroupHarness(self.level, appends_at_once=False)
            self.harness.numbers = numbers
            self.generation = 0
            self.answered.clear()
        client.join = self.harness.join(
            client.member_id,
            self.random.choice(LISTS),
            session_ms=self.random.choice((6000, 10_000)),
            rebalance_ms=self.random.choice((1000, 30_000)),
        )

    def sync(self) -> None:
        client = self.idle()
        if client is None or not client.member_id:
            return
        plan = {other.member_id: b"%d" % client.generation for other in self.clients}
        client.sync = self.harness.sync(client.member_id, client.generation, plan)

    def beat(self) -> None:
        client = self.random.choice(self.clients)
        code = self.harness.heartbeat(client.member_id, client.generation)
        if code == 0:
            self.check_member(client)

    def commit(self) -> None:
        """A fenced member never commits."""
        client = self.random.choice(self.clients)
        generation = client.generation - self.random.choice((0, 0, 1))
        code = self.harness.commit(client.member_id, generation)
        if code == 0 and generation >= 0:
            assert generation == self.harness.group.generation
            self.check_member(client)

    def check_member(self, client: Client) -> None:
        assert client.member_id in self.harness.group.members
        assert client.generation == self.harness.group.generation

    def leave(self) -> None:
        client = self.idle()
        if client is not None and client.member_id:
            self.harness.leave(client.member_id)

    def die(self) -> None:
        """The client's connection may close while a request of it is parked."""
        self.clients[self.random.randrange(len(self.clients))] = Client()

    def wait(self) -> None:
        self.harness.advance(self.random.choice((1, 900, 3000, 6000)))

    def append(self) -> None:
        if self.harness.appends:
            self.harness.finish_append(self.random.choice(APPEND_CODES))

    def expire(self) -> None:
        """The group's offsets may expire. 0.9 has no such step."""
        if self.level is Level.V0_10_2:
            self.harness.group.expire(has_offsets=self.random.random() < 0.5)

    # What clients hear

    def hear(self) -> None:
        for client in self.clients:
            if client.join is not None and not client.join.parked:
                result, client.join = client.join.response, None
                self.joined(client, result)
            if client.sync is not None and not client.sync.parked:
                (assignment, code), client.sync = client.sync.response, None
                if code == 0:
                    assert assignment in {b"", b"%d" % client.generation}
                elif code == 25:
                    client.member_id = ""

    def joined(self, client: Client, result: JoinResult) -> None:
        if result.error_code:
            if result.error_code == 25:
                client.member_id = ""
            return
        client.member_id, client.generation = result.member_id, result.generation
        others = self.answered.setdefault(result.generation, [])
        others.append(result)
        assert 1 == len({other.leader_id for other in others}), "one leader"
        assert 1 == len({other.protocol for other in others}), "one protocol"
        for other in others:
            assert not other.members or other.member_id == other.leader_id

    # What always holds

    def check(self) -> None:
        harness, group = self.harness, self.harness.group
        assert group.generation >= self.generation, "a generation only grows"
        self.generation = group.generation
        if group.state is GroupState.DEAD:
            assert {} == harness.sessions
            return
        assert bool(group.members) == (group.leader_id is not None)
        assert group.leader_id is None or group.leader_id in group.members
        assert bool(group.members) == (group.state is not GroupState.EMPTY)
        assert (group.state is GroupState.PREPARING_REBALANCE) == (
            harness.rebalance_due is not None
        )
        assert harness.sessions.keys() <= group.members.keys()
        for member_id, member in group.members.items():
            assert member.has_timer == (member_id in harness.sessions)
            assert member.has_timer or member.is_parked, "no member without a timer"
            assert not member.has_timer or harness.sessions[member_id] <= member.expires_ms
            assert not member.parked_join or group.state is GroupState.PREPARING_REBALANCE
            assert not member.parked_sync or group.state is GroupState.AWAITING_SYNC
        parked = sum(member.parked_join is not None for member in group.members.values())
        assert parked == group._parked_joins
        assert parked < len(group.members) or not group.members


@pytest.mark.parametrize("level", [Level.V0_9_0, Level.V0_10_2], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_history_keeps_the_invariants(seed: int, level: Level) -> None:
    """A generation has one leader and one protocol; a member gets only its own generation's
    assignment; every member has a timer; a fenced member commits nothing; every request gets a
    response."""
    History(seed, level).run()


@pytest.mark.parametrize("level", [Level.V0_9_0, Level.V0_10_2], ids=str)
def test_the_histories_reach_every_state(level: Level) -> None:
    """The histories reach every state; otherwise they would prove little."""
    seen = set()

    class Noted(History):
        def check(self) -> None:
            seen.add(self.harness.group.state)

    for seed in SEEDS:
        Noted(seed, level).run()
    assert set(GroupState) == seen
