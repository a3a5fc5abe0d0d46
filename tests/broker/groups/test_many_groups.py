"""A thousand groups of ten members on one broker: real requests and logs, and a clock that the test
moves. CPU time has a limit of about three times what was measured on a quiet core."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

from kafka08.broker.groups.group_state import GroupState
from kafka08.protocol.codec import decode_response, encode_request, encode_response
from kafka08.protocol.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka08.protocol.join_group import JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse
from kafka08.protocol.sync_group import SyncGroupAssignment, SyncGroupRequest, SyncGroupResponse
from kafka08.protocol.types import Request
from tests.broker.groups.test_group_coordinator import Broker
from tests.broker.world import Client
from tests.cpu_speed import slowdown

GROUPS = 1000
MEMBERS = 10
SESSION_MS = 30_000
HEARTBEAT_MS = 3_000
SETTLING_CPU_S = 3.0
IDLE_CPU = 0.07
"""Of a core."""


class Meter:
    """The CPU time of the broker, whose only thread is the test's, as of a quiet core."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.seconds = 0.0
        self.slowdowns: list[float] = []

    def compare(self) -> None:
        """Measure the processor's speed; called now and then between two calls of `read`, which
        takes the median: some measurements contain a garbage collection."""
        self.slowdowns.append(slowdown())

    def send(self, client: Client, frame: bytes) -> None:
        began = time.thread_time()
        client.send(frame)
        self.seconds += time.thread_time() - began

    def advance(self, ms: float) -> None:
        began = time.thread_time()
        self.broker.advance(ms)
        self.seconds += time.thread_time() - began

    def read(self) -> float:
        """The seconds since the last call."""
        seconds = self.seconds / median(self.slowdowns)
        self.seconds = 0.0
        self.slowdowns.clear()
        return seconds


class Member:
    """A member on a connection of its own."""

    def __init__(self, meter: Meter, group: str) -> None:
        self.meter = meter
        self.client = Client(meter.broker.world)
        self.group = group
        self.joined = JoinGroupResponse(0, -1, "", "", "", [])

    def join(self) -> None:
        request = JoinGroupRequest(
            self.group,
            SESSION_MS,
            SESSION_MS,
            self.joined.member_id,
            "consumer",
            [JoinGroupProtocol("range", b"m")],
            version=1,
        )
        self.meter.send(self.client, encode_request(request, 1, "c"))

    def finish_join(self) -> None:
        self.joined = self.response(JoinGroupRequest, 1)
        assert 0 == self.joined.error_code

    def sync(self) -> None:
        joined = self.joined
        plan = [SyncGroupAssignment(m.member_id, m.member_id.encode()) for m in joined.members]
        request = SyncGroupRequest(self.group, joined.generation, joined.member_id, plan)
        self.meter.send(self.client, encode_request(request, 1, "c"))

    def heartbeat_frame(self) -> bytes:
        joined = self.joined
        request = HeartbeatRequest(self.group, joined.generation, joined.member_id)
        return encode_request(request, 1, "c")

    def response(self, request: type[Request], version: int = 0) -> Any:
        """The response to its last request."""
        (frame,) = self.client.frames()
        return decode_response(request, frame, version)[1]


def test_a_thousand_groups_of_ten_settle_and_idle_at_little_cpu(tmp_path: Path) -> None:
    """Every member gets the assignment that its leader made for it. Then all send heartbeats for
    longer than a session: that takes a small part of a core, and no group rebalances."""
    meter = Meter(Broker(tmp_path))
    groups = [[Member(meter, f"group-{n}") for _ in range(MEMBERS)] for n in range(GROUPS)]
    for number, members in enumerate(groups):
        settle(members)
        if number % 50 == 0:
            meter.compare()
    assert meter.read() < SETTLING_CPU_S
    everybody = [(m.client, m.heartbeat_frame()) for members in groups for m in members]
    accepted = encode_response(HeartbeatResponse(0), 1)
    for _ in range(SESSION_MS // HEARTBEAT_MS + 1):
        meter.advance(HEARTBEAT_MS)
        meter.compare()
        for client, frame in everybody:
            meter.send(client, frame)
            assert client.outbox == [accepted]
            client.outbox.clear()
    assert meter.read() < IDLE_CPU * (SESSION_MS + HEARTBEAT_MS) / 1000
    _, found = meter.broker.world.context.group_coordinator.all_groups()
    assert {(GroupState.STABLE, MEMBERS, 2)} == {
        (group.state, len(group.members), group.generation) for group in found
    }
    assert GROUPS == len(found)


def settle(members: list[Member]) -> None:
    """One begins; the others wait until it joins again."""
    first, *others = members
    first.join()
    first.finish_join()
    for member in (*others, first):
        member.join()
    for member in members:
        member.finish_join()
    for member in reversed(members):
        member.sync()
    for member in members:
        assigned = SyncGroupResponse(0, member.joined.member_id.encode())
        assert member.response(SyncGroupRequest) == assigned
