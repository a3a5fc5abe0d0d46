"""The model's session message by message, on a simulated World."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kafka08.zk.errors import SessionExpired
from kafka08.zk.model.messages import (
    Code,
    ConnectReply,
    ConnectRequest,
    EventType,
    FromServer,
    PingRequest,
    Reply,
    WatchEvent,
    ZnodeStat,
)
from kafka08.zk.model.session import RETRY_S, LinkOwner, ModelSession, ToServer, World
from kafka08.zk.operations import Get, Node, Watcher
from kafka08.zk.zookeeper import SessionSettings

STAT = ZnodeStat(*[0] * 11)
TIMEOUT_MS = 6000
HEARTBEAT_S = TIMEOUT_MS / 1000 / 3
ACCEPTED = ConnectReply(TIMEOUT_MS, 77, b"secret")
EXPIRED = ConnectReply(0, 0, bytes(16))


@dataclass
class Link:
    sent: list[ToServer] = field(default_factory=list)
    is_closed: bool = False

    def send(self, message: ToServer) -> None:
        self.sent.append(message)

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Timer:
    at: float
    call: Callable[[], object]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True


class PlayedWorld:
    def __init__(self) -> None:
        self.now = 0.0
        self.links: list[Link] = []
        self.timers: list[Timer] = []

    def monotonic(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        self.timers.append(Timer(self.now + seconds, call))
        return self.timers[-1]

    def event(self) -> Any:
        return threading.Event()

    def open(self, hosts: str, owner: LinkOwner) -> Link:
        self.links.append(Link())
        return self.links[-1]

    def pass_time(self, seconds: float) -> None:
        """Calls the timers that are due, in order of time."""
        until = self.now + seconds
        while due := [t for t in self.timers if t.at <= until and not t.is_cancelled]:
            timer = min(due, key=lambda t: t.at)
            self.timers.remove(timer)
            self.now = max(self.now, timer.at)
            timer.call()
        self.now = until


class Stage:
    """A session and its world."""

    def __init__(self) -> None:
        self.world = PlayedWorld()
        settings = SessionSettings("h:1", timeout_ms=TIMEOUT_MS)
        self.session = ModelSession(settings, cast(World, self.world))
        self.session.start()

    @property
    def link(self) -> Link:
        return self.world.links[-1]

    def accept(self, reply: ConnectReply = ACCEPTED) -> None:
        self.session.on_open(self.link)
        self.session.on_message(self.link, reply)

    def receive(self, message: FromServer) -> None:
        self.session.on_message(self.link, message)

    def lose(self) -> None:
        self.session.on_closed(self.link)
        self.world.pass_time(2 * RETRY_S)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def reply_to(xid: int, zxid: int = 5) -> Reply:
    return Reply(xid, zxid, Code.OK, (b"x", STAT))


def test_a_new_connection_takes_the_session_up(stage: Stage) -> None:
    """The client sends session id, password and the newest zxid that it has seen."""
    stage.accept()
    stage.session.send(Get("/a"))
    stage.receive(reply_to(1, zxid=9))
    stage.lose()
    stage.session.on_open(stage.link)
    assert stage.link.sent == [ConnectRequest(9, TIMEOUT_MS, 77, b"secret")]


def test_an_expired_session_is_followed_by_a_new_one(stage: Stage) -> None:
    """Operations of the old session fail with SessionExpired. The new session starts without its
    state."""
    stage.accept()
    stage.session.send(Get("/a"))
    stage.receive(reply_to(1, zxid=9))
    stage.lose()
    queued = stage.session.send(Get("/a"))
    stage.accept(EXPIRED)
    assert isinstance(queued.outcome(), SessionExpired)
    assert stage.session.session_id is None
    stage.world.pass_time(0)
    stage.session.on_open(stage.link)
    assert stage.link.sent == [ConnectRequest(0, TIMEOUT_MS, 0, bytes(16))]


def test_a_response_proves_when_its_request_was_sent(stage: Stage) -> None:
    """The contact counts from when the request was sent, not from when the response arrived."""
    stage.world.now = 1
    stage.accept()
    assert stage.session.last_heard == 1
    stage.world.now = 2
    stage.session.send(Get("/a"))
    stage.world.now = 5
    stage.receive(reply_to(1))
    assert stage.session.last_heard == 2


def test_requests_are_counted_and_heartbeats_are_not(stage: Stage) -> None:
    """`requests` counts the requests of all sessions, without heartbeats."""
    stage.accept()
    stage.session.send(Get("/a"))
    stage.world.pass_time(HEARTBEAT_S)
    assert stage.link.sent[-1] == (2, PingRequest())
    assert stage.session.requests_sent == 1


def test_whatever_comes_counts_as_a_response_to_a_heartbeat(stage: Stage) -> None:
    """Any message proves that the connection works, also while the heartbeat's reply waits behind
    others."""
    stage.accept()
    first = stage.link
    stage.world.pass_time(HEARTBEAT_S)
    stage.receive(WatchEvent(EventType.CREATED, "/a", 1))
    stage.world.pass_time(HEARTBEAT_S)
    assert not first.is_closed
    stage.world.pass_time(HEARTBEAT_S)
    assert first.is_closed


def test_a_connection_on_which_nothing_comes_is_given_up(stage: Stage) -> None:
    """The client closes it after the session timeout. It does not take a response on the next
    connection for one to an earlier request."""
    stage.session.on_open(stage.link)
    first = stage.link
    stage.world.pass_time(TIMEOUT_MS / 1000 + 2 * RETRY_S)
    assert first.is_closed
    assert stage.link is not first
    began = stage.world.now
    stage.accept()
    assert stage.session.last_heard == began


def test_messages_on_an_old_connection_are_ignored(stage: Stage) -> None:
    """A message on a connection that the client has given up is ignored."""
    stage.accept()
    old = stage.link
    stage.lose()
    stage.accept()
    response = stage.session.send(Get("/a"))
    stage.session.on_message(old, Reply(1, 5, Code.NO_NODE))
    assert not response.ready()
    stage.session.on_closed(old)
    stage.receive(reply_to(1))
    assert response.outcome() == Node("x", 0)


def test_xids_start_again_with_each_connection(stage: Stage) -> None:
    """Each connection numbers its requests from the start, as kazoo does."""
    stage.accept()
    stage.session.send(Get("/a"))
    stage.lose()
    stage.accept()
    stage.session.send(Get("/b"))
    sent = stage.link.sent[-1]
    assert isinstance(sent, tuple)
    assert sent[0] == 1


def test_a_watch_that_was_refused_is_not_kept(stage: Stage) -> None:
    """The server sets no watch on a refused read, so a later event belongs to another watch."""
    told: list[str] = []
    stage.accept()
    stage.session.send(Get("/a", Watcher("/a", told.append)))
    stage.receive(Reply(1, 5, Code.NO_NODE))
    stage.receive(WatchEvent(EventType.CREATED, "/a", 6))
    stage.world.pass_time(0)
    assert told == []


def test_every_watcher_of_a_znode_is_called_once(stage: Stage) -> None:
    """The watchers are called in the order in which they were set. The same watcher counts once."""
    told: list[str] = []
    first, second = Watcher("first", told.append), Watcher("second", told.append)
    stage.accept()
    for xid, watcher in enumerate((first, second, first), 1):
        stage.session.send(Get("/a", watcher))
        stage.receive(reply_to(xid))
    stage.receive(WatchEvent(EventType.DATA_CHANGED, "/a", 6))
    stage.receive(WatchEvent(EventType.DATA_CHANGED, "/a", 7))
    stage.world.pass_time(0)
    assert told == ["first", "second"]
