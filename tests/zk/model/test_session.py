"""The model's session under ZkClient: lost messages, and the events that its owner gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from kafka08.errors import SessionLost, ZooKeeperUnreachable
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import ConnectionLost
from kafka08.zk.model.server import Server
from kafka08.zk.model.session import ModelSession
from kafka08.zk.operations import Create, Get, Node, Set
from kafka08.zk.session import SessionEvent, SessionState
from tests.zk.in_process import InProcessLink, InProcessWorld

TIMEOUT_MS = 6000


@pytest.fixture
def world() -> InProcessWorld:
    return InProcessWorld(Server(tick_ms=500))


@pytest.fixture
def zk(world: InProcessWorld) -> Iterator[ZkClient]:
    with client_of(world) as client:
        yield client


def client_of(world: InProcessWorld) -> ZkClient:
    return ZkClient("model:2181", session_timeout_ms=TIMEOUT_MS, adapter=world.connect, clock=world)


def link_of(world: InProcessWorld, zk: ZkClient) -> InProcessLink:
    return world.link_of(cast(ModelSession, zk._zookeeper))


def test_a_write_whose_reply_was_lost_counts_as_done(world: InProcessWorld, zk: ZkClient) -> None:
    """The client sends a write again after a lost connection, and recognises its own write by the
    data it finds."""
    link_of(world, zk).loses_next_reply = True
    assert zk.create("/a", "1") == "/a"
    link_of(world, zk).loses_next_reply = True
    assert zk.set("/a", "2", version=0) == 1
    assert zk.get("/a") == Node("2", 1)
    link_of(world, zk).loses_next_reply = True
    assert zk.delete("/a") is True


def test_a_multi_whose_reply_was_lost_may_have_been_done(
    world: InProcessWorld, zk: ZkClient
) -> None:
    """A multi whose reply was lost raises SessionLost, although here the server had done it."""
    link_of(world, zk).loses_next_reply = True
    with pytest.raises(SessionLost):
        zk.multi([Create("/a", "1"), Set("/a", "2")])
    assert zk.get("/a") == Node("2", 1)


def test_a_lost_connection_keeps_the_session(world: InProcessWorld, zk: ZkClient) -> None:
    """After SUSPENDED and RECONNECTED the session's ephemerals are still there. Its watchers were
    called and dropped."""
    told: list[object] = []
    zk.add_session_listener(told.append)
    zk.create_ephemeral("/e", "x")
    zk.watch_data("/e", told.append)
    session_id = zk.session_id
    world.break_link(link_of(world, zk))
    assert zk.get("/e") == Node("x", 0, session_id or 0)
    assert told == [SessionEvent.SUSPENDED, "/e", SessionEvent.RECONNECTED]
    zk.set("/e", "y")
    assert told[3:] == []


def test_a_session_that_cannot_reach_the_server_expires(
    world: InProcessWorld, zk: ZkClient
) -> None:
    """EXPIRED is reported once, when the new session exists. Other clients see the ephemerals
    disappear before."""
    told: list[SessionEvent] = []
    zk.add_session_listener(told.append)
    zk.create_ephemeral("/e", "x")
    old = zk.session_id
    world.cut()
    world.sleep(2 * TIMEOUT_MS / 1000)
    assert told == [SessionEvent.SUSPENDED]
    world.heal()
    world.sleep(2)
    assert told == [SessionEvent.SUSPENDED, SessionEvent.EXPIRED]
    assert zk.session_id not in {old, None}
    assert not zk.exists("/e")


def test_calls_wait_out_a_restart(world: InProcessWorld, zk: ZkClient) -> None:
    """Calls wait until the server is back, in the same session."""
    session_id = zk.session_id
    zk.create("/a", "1")
    world.restart_server()
    assert zk.set("/a", "2", version=0) == 1
    assert zk.session_id == session_id


def test_a_restart_gives_the_session_its_whole_timeout(world: InProcessWorld, zk: ZkClient) -> None:
    """The session survives although it was disconnected for longer than its timeout in all."""
    session_id = zk.session_id
    world.cut()
    world.sleep(0.8 * TIMEOUT_MS / 1000)
    world.restart_server()
    world.sleep(0.8 * TIMEOUT_MS / 1000)
    world.heal()
    assert zk.exists("/")
    assert zk.session_id == session_id


def test_an_idle_session_lives_by_its_heartbeats(world: InProcessWorld, zk: ZkClient) -> None:
    """Heartbeats every third of the timeout keep an idle session alive and count as contact. They
    do not count as requests."""
    session_id, sent = zk.session_id, zk.requests_sent
    world.sleep(10 * TIMEOUT_MS / 1000)
    assert zk.session_id == session_id
    assert zk.state is SessionState.CONNECTED
    assert world.monotonic() - zk.last_contact <= TIMEOUT_MS / 1000 / 3
    assert zk.may_have_session
    assert zk.requests_sent == sent


def test_a_session_is_in_doubt_once_its_timeout_has_passed(
    world: InProcessWorld, zk: ZkClient
) -> None:
    """Cut off for the session timeout, a client no longer counts on its session; a reply restores
    that."""
    world.cut()
    world.sleep(TIMEOUT_MS / 1000)
    assert not zk.may_have_session
    world.heal()
    assert zk.exists("/")
    assert zk.may_have_session


def test_a_half_open_connection_is_given_up(world: InProcessWorld, zk: ZkClient) -> None:
    """The client closes the connection after two heartbeats without a response, before the session
    ends."""
    told: list[SessionEvent] = []
    zk.add_session_listener(told.append)
    link_of(world, zk).is_silent = True
    world.sleep(TIMEOUT_MS / 1000)
    assert told == [SessionEvent.SUSPENDED, SessionEvent.RECONNECTED]


def test_outstanding_operations_fail_when_the_connection_is_lost(
    world: InProcessWorld, zk: ZkClient
) -> None:
    """Each outstanding operation fails with its own error. Operations requested while it connects
    are done later."""
    session = cast(ModelSession, zk._zookeeper)
    zk.create("/a", "1")
    sent = [session.send(Get("/a")) for _ in range(3)]
    session._lose_connection()
    assert [type(response.outcome()) for response in sent] == [ConnectionLost] * 3
    queued = session.send(Get("/a"))
    queued.wait(TIMEOUT_MS / 1000)
    assert queued.outcome() == Node("1", 0)


def test_an_unreachable_server_is_an_error(world: InProcessWorld) -> None:
    """start() fails after the connection timeout, by the simulated clock."""
    world.cut()
    began = world.monotonic()
    with pytest.raises(ZooKeeperUnreachable, match="model:2181: connection refused"):
        client_of(world).start()
    assert world.monotonic() - began == TIMEOUT_MS / 1000


def test_the_same_calls_give_the_same_messages() -> None:
    """The messages do not depend on the time of day, on chance, or on the order of a hash."""

    def run() -> list[str]:
        world, story = InProcessWorld(Server(tick_ms=500)), []
        deliver = world._deliver

        def written(outputs: list[object]) -> None:
            story.append(f"{world.monotonic()} {outputs}")
            deliver(outputs)  # type: ignore[arg-type]

        world._deliver = written  # type: ignore[method-assign,assignment]
        with client_of(world) as zk:
            zk.pipeline([Create(f"/{n}", "x") for n in range(20)])
            for n in range(20):
                zk.watch_data(f"/{n}", story.append)
            world.break_link(link_of(world, zk))
            zk.get("/1")
            world.sleep(10)
        return story

    assert run() == run()
