"""Lost connections under a scripted adapter: which operations are sent again, and which count as
done."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kafka08.errors import BadVersion, NodeExists, NoNode, SessionLost
from kafka08.zk.errors import ConnectionLost, SessionExpired, failure
from kafka08.zk.operations import Create, Delete, Get, Node, Operation, Set
from kafka08.zk.resender import LARGE_BYTES, Resender
from kafka08.zk.session import SessionTracker
from kafka08.zk.zookeeper import ConnectionState, Event, ZooKeeper

SESSION = 77
NEVER = object()
Script = dict[type, list[Any]]


@dataclass
class Clock:
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def time_ms(self) -> int:
        return 0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class At:
    """An outcome that comes at this time."""

    time: float
    outcome: Any


class FakeResult:
    """A Pending that is ready, or will be At a time, or with NEVER never."""

    def __init__(self, outcome: Any, clock: Clock) -> None:
        self._at = outcome if isinstance(outcome, At) else At(0.0, outcome)
        if outcome is NEVER:
            self._at.time = math.inf
        self._clock = clock

    def ready(self) -> bool:
        return self._clock.now >= self._at.time

    def wait(self, seconds: float) -> None:
        self._clock.now = max(self._clock.now, min(self._clock.now + seconds, self._at.time))

    def outcome(self) -> Any:
        return self._at.outcome


@dataclass
class Played:
    """Answers operations by a script: class → outcomes in order. An error's class means that
    error."""

    clock: Clock
    script: Script
    calls: list[Operation] = field(default_factory=list)
    session_id: int = SESSION

    def send(self, operation: Operation) -> FakeResult:
        self.calls.append(operation)
        outcome = self.script[type(operation)].pop(0)
        if isinstance(outcome, type):
            outcome = failure(outcome, operation.path)
        return FakeResult(outcome, self.clock)


class Connected:
    """The event of a connection. A wait for it runs the next function of the script."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._meanwhile = meanwhile

    def wait(self, timeout: float) -> None:
        self._meanwhile()


def run(operation: Operation, script: Script, meanwhile: str = "") -> tuple[Any, list[Operation]]:
    """The result of one operation, and the calls that were made for it."""
    [result], calls = run_all([operation], script, meanwhile)
    return result, calls


def run_all(
    operations: Sequence[Operation], script: Script, meanwhile: str = "", window: int = 1
) -> tuple[list[Any], list[Operation]]:
    """Their results, and the calls that were made for them."""
    clock, tracker = Clock(), SessionTracker()
    tracker.on_connection_state(ConnectionState.CONNECTED)

    def happen() -> None:
        if meanwhile == "session ends":
            tracker.on_connection_state(ConnectionState.LOST)
            tracker.on_connection_state(ConnectionState.CONNECTED)
        if meanwhile == "time passes":
            clock.now += 100

    played = Played(clock, script)
    zookeeper, connected = cast(ZooKeeper, played), cast(Event, Connected(happen))
    resender = Resender(
        zookeeper, tracker, connected, server="ZooKeeper at h:1", timeout_s=10, clock=clock
    )
    results = resender.run(operations, range(len(operations)), window)
    return [results[index] for index in range(len(operations))], played.calls


def test_a_read_is_sent_again() -> None:
    """A read is repeated after a lost connection, also in a new session."""
    script: Script = {Get: [ConnectionLost, SessionExpired, Node("x", 3)]}
    result, calls = run(Get("/a"), script, meanwhile="session ends")
    assert (result, len(calls)) == (Node("x", 3), 3)


@pytest.mark.parametrize("operation", [Set("/a", "x"), Create("/a"), Delete("/a")])
def test_a_write_is_not_sent_again_in_a_new_session(operation: Operation) -> None:
    """A write is not repeated in a new session: with the old one its owner may have lost the right
    to write."""
    losses: Script = {kind: [ConnectionLost] for kind in (Set, Create, Delete)}
    result, calls = run(operation, losses, meanwhile="session ends")
    assert isinstance(result, SessionLost)
    assert len(calls) == 1


def test_an_expired_session_fails_a_write_at_once() -> None:
    """A write fails when the session expires. It was not done, and is not done later without its
    owner's knowledge."""
    result, calls = run(Set("/a", "x"), {Set: [SessionExpired]})
    assert isinstance(result, SessionLost)
    assert len(calls) == 1


def test_a_closed_client_fails_reads_too() -> None:
    """A read fails when the client is closed, since there will be no response."""
    result, _ = run(Get("/a"), {Get: [SessionLost]})
    assert isinstance(result, SessionLost)


def test_the_timeout_ends_it() -> None:
    """Without a response or a connection within the timeout, the call raises SessionLost and does
    not try again."""
    result, _ = run(Get("/a"), {Get: [NEVER]})
    assert str(result) == "/a: no reply from ZooKeeper at h:1 in 10 s"
    result, calls = run(Get("/a"), {Get: [ConnectionLost]}, meanwhile="time passes")
    assert str(result) == "/a: no reply from ZooKeeper at h:1 in 10 s"
    assert len(calls) == 1


def test_each_response_renews_the_timeout() -> None:
    """Many operations may take longer than the timeout, as long as ZooKeeper responds to one after
    the other. When it stops, the rest fail after the timeout."""
    nodes = [Node("x", number) for number in range(30)]
    slow = [At(9.0 * (number + 1), node) for number, node in enumerate(nodes)]
    results, calls = run_all([Get("/a")] * 30, {Get: list(slow)})
    assert (results, len(calls)) == (nodes, 30)
    results, calls = run_all([Get("/a")] * 30, {Get: [*slow[:3], *[NEVER] * 27]}, window=2)
    assert results[:3] == nodes[:3]
    assert all(isinstance(result, SessionLost) for result in results[3:])
    assert len(calls) == 4, "none is sent that nobody waits for"


@pytest.mark.parametrize(
    ("found", "result"),
    [
        (Node("mine", 6), 6),
        (Node("mine", 6, SESSION), 6),
        (Node("other", 6), BadVersion),
        (Node("mine", 7), BadVersion),
        (NoNode, BadVersion),
    ],
)
def test_a_conditional_write_may_have_been_done(found: Any, result: Any) -> None:
    """A conditional write counts as done if the znode has its data at exactly the next version.
    Otherwise another client wrote it."""
    script: Script = {Set: [ConnectionLost, BadVersion], Get: [found]}
    got, _ = run(Set("/a", "mine", 5), script)
    assert (got if isinstance(got, int) else type(got)) == result


@pytest.mark.parametrize(
    ("ephemeral", "owner", "data", "done"),
    [
        (False, 0, "mine", True),
        (False, 0, "other", False),
        (True, SESSION, "mine", True),
        (True, SESSION + 1, "mine", False),
    ],
)
def test_a_create_may_have_been_done(ephemeral: bool, owner: int, data: str, done: bool) -> None:
    """A create counts as done if the znode has its data, and for an ephemeral also its session."""
    script: Script = {
        Create: [ConnectionLost, NodeExists],
        Get: [Node(data, 0, owner)],
    }
    result, _ = run(Create("/a", "mine", ephemeral=ephemeral), script)
    assert result == "/a" if done else isinstance(result, NodeExists)


def test_a_delete_may_have_been_done() -> None:
    """A delete counts as done if the znode is gone. Without a lost connection that is NoNode."""
    result, _ = run(Delete("/a"), {Delete: [ConnectionLost, NoNode]})
    assert result is None
    result, _ = run(Delete("/a"), {Delete: [NoNode]})
    assert isinstance(result, NoNode)


def test_a_write_that_is_too_large_is_not_sent_again() -> None:
    """The server closes the connection of each such packet: 280 MB went out in 222 connections,
    and the error was a lost connection."""
    large = "x" * (LARGE_BYTES + 1)
    result, calls = run(Set("/a", large), {Set: [ConnectionLost, 1]})
    assert f"/a: ZooKeeper closed the connection of a write of {len(large)} bytes" in str(result)
    assert len(calls) == 1
