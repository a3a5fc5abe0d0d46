"""Lost connections under a kazoo that the test plays: what is sent again, what counts as done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)

from kafka08.errors import BadVersion, NodeExists, NoNode, SessionLost
from kafka08.zk.operations import Create, Delete, Get, Node, Operation, Set
from kafka08.zk.resender import Resender
from kafka08.zk.session import SessionTracker

SESSION = 77


@dataclass
class Clock:
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def time_ms(self) -> int:
        return 0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Answer:
    """A kazoo AsyncResult that is ready, or (None) never will be."""

    def __init__(self, outcome: Any, clock: Clock) -> None:
        self._outcome = outcome
        self._clock = clock
        self.exception = outcome if isinstance(outcome, Exception) else None

    def ready(self) -> bool:
        return self._outcome is not None

    def wait(self, timeout: float) -> None:
        if not self.ready():
            self._clock.now += timeout

    def get(self) -> Any:
        return self._outcome


@dataclass
class FakeKazoo:
    """Answers calls by a script: method name → outcomes in order."""

    clock: Clock
    script: dict[str, list[Any]]
    calls: list[str] = field(default_factory=list)
    _session_id: int = SESSION

    def __getattr__(self, name: str) -> Callable[..., Answer]:
        def call(path: str, *_: Any, **__: Any) -> Answer:
            self.calls.append(f"{name} {path}")
            return Answer(self.script[name].pop(0), self.clock)

        return call


class Connected:
    """The event of a standing connection; waiting for it runs what happens meanwhile."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._meanwhile = meanwhile

    def wait(self, timeout: float) -> None:
        self._meanwhile()


def stat(version: int = 0, owner: int = 0) -> SimpleNamespace:
    return SimpleNamespace(version=version, ephemeralOwner=owner, numChildren=0, ctime=1, mtime=2)


def run(
    operation: Operation, script: dict[str, list[Any]], meanwhile: str = ""
) -> tuple[Any, list[str]]:
    """The result of one operation and the calls made for it."""
    clock, tracker = Clock(), SessionTracker()
    tracker.on_kazoo_state("CONNECTED")

    def happen() -> None:
        if meanwhile == "session ends":
            tracker.on_kazoo_state("LOST")
            tracker.on_kazoo_state("CONNECTED")
        if meanwhile == "time passes":
            clock.now += 100

    kazoo = FakeKazoo(clock, script)
    resender = Resender(kazoo, tracker, Connected(happen), patience_seconds=10, clock=clock)
    return resender.run_one(operation), kazoo.calls


def test_a_read_is_sent_again() -> None:
    """Reads repeat after a lost connection, in a new session too."""
    script = {"get_async": [ConnectionLoss(), SessionExpiredError(), (b"x", stat(3))]}
    result, calls = run(Get("/a"), script, meanwhile="session ends")
    assert (result, len(calls)) == (Node("x", 3), 3)


@pytest.mark.parametrize("operation", [Set("/a", "x"), Create("/a"), Delete("/a")])
def test_a_write_is_not_sent_again_in_a_new_session(operation: Operation) -> None:
    """Its owner may have lost the right to it with the old session."""
    losses = {f"{name}_async": [ConnectionLoss()] for name in ("set", "create", "delete")}
    result, calls = run(operation, losses, meanwhile="session ends")
    assert isinstance(result, SessionLost)
    assert len(calls) == 1


def test_an_expired_session_fails_a_write_at_once() -> None:
    """It was not done, and is not done behind its owner's back later."""
    result, calls = run(Set("/a", "x"), {"set_async": [SessionExpiredError()]})
    assert isinstance(result, SessionLost)
    assert len(calls) == 1


def test_a_closed_client_fails_reads_too() -> None:
    """Nobody will ever answer."""
    result, _ = run(Get("/a"), {"get_async": [ConnectionClosedError()]})
    assert isinstance(result, SessionLost)


def test_patience_ends() -> None:
    """No answer, or no connection, within it: SessionLost, and no further attempt."""
    result, _ = run(Get("/a"), {"get_async": [None]})
    assert str(result) == "/a: no answer from ZooKeeper in 10 s"
    result, calls = run(Get("/a"), {"get_async": [ConnectionLoss()]}, meanwhile="time passes")
    assert isinstance(result, SessionLost)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("found", "result"),
    [
        ((b"mine", stat(6)), 6),
        ((b"mine", stat(6, owner=SESSION)), 6),
        ((b"other", stat(6)), BadVersion),
        ((b"mine", stat(7)), BadVersion),
        (NoNodeError(), BadVersion),
    ],
)
def test_a_conditional_write_may_have_been_done(found: Any, result: Any) -> None:
    """It finds its own data exactly one version on; anything else is somebody else's."""
    script = {"set_async": [ConnectionLoss(), BadVersionError()], "get_async": [found]}
    got, _ = run(Set("/a", "mine", 5), script)
    assert (got if isinstance(got, int) else type(got)) == result


@pytest.mark.parametrize(
    ("ephemeral", "owner", "data", "done"),
    [
        (False, 0, b"mine", True),
        (False, 0, b"other", False),
        (True, SESSION, b"mine", True),
        (True, SESSION + 1, b"mine", False),
    ],
)
def test_a_create_may_have_been_done(ephemeral: bool, owner: int, data: bytes, done: bool) -> None:
    """It finds its own data, and for an ephemeral its own session."""
    script = {
        "create_async": [ConnectionLoss(), NodeExistsError()],
        "get_async": [(data, stat(owner=owner))],
    }
    result, _ = run(Create("/a", "mine", ephemeral=ephemeral), script)
    assert result == "/a" if done else isinstance(result, NodeExists)


def test_a_delete_may_have_been_done() -> None:
    """It finds nothing left; without a lost connection that is NoNode."""
    result, _ = run(Delete("/a"), {"delete_async": [ConnectionLoss(), NoNodeError()]})
    assert result is None
    result, _ = run(Delete("/a"), {"delete_async": [NoNodeError()]})
    assert isinstance(result, NoNode)
