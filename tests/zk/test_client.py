"""ZkClient on a real ZooKeeper and on the model: data, watches, ephemeral znodes, lost sessions."""

from __future__ import annotations

import gc
import logging
import queue
import socket
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import cast
from wsgiref.simple_server import demo_app, make_server

import pytest
from kazoo.protocol.states import KeeperState

from kafka08.clock import SYSTEM_CLOCK
from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.errors import (
    BadVersion,
    Closed,
    NodeExists,
    NoNode,
    SessionLost,
    ZooKeeperError,
    ZooKeeperUnreachable,
)
from kafka08.structs import host_port
from kafka08.zk.client import EARLIER_SESSION_S, ZkClient
from kafka08.zk.errors import BadArguments
from kafka08.zk.faults import expire_session
from kafka08.zk.kazoo_adapter.session import KazooSession
from kafka08.zk.operations import Check, Children, Create, Delete, Exists, Get, Node, Operation, Set
from kafka08.zk.reachability import NOT_SERVING
from kafka08.zk.session import SessionEvent, SessionState, SessionTracker
from kafka08.zk.zookeeper import ConnectionState
from tests.zk.conftest import WAIT_S, RealSessions, Sessions
from tests.zk.in_process import InProcessWorld


def test_a_start_sees_the_state_that_it_waited_for(
    zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection's thread may be interrupted between the event that ends the wait and the new
    state: on a busy machine one of a thousand starts failed, at once."""
    process = SessionTracker.on_connection_state

    def late(tracker: SessionTracker, state: ConnectionState) -> None:
        time.sleep(0.1)
        process(tracker, state)

    monkeypatch.setattr(SessionTracker, "on_connection_state", late)
    with ZkClient(zk_connect) as client:
        assert client.state is SessionState.CONNECTED


def test_a_failed_start_has_the_reason_of_each_server() -> None:
    """The error has the timeout, and each server of the list with the reason."""
    client = ZkClient("127.0.0.1:1,no.such.host.invalid", connection_timeout_ms=100)
    with pytest.raises(ZooKeeperUnreachable) as caught:
        client.start()
    for part in ("within 100 ms", "127.0.0.1:1: connection refused", "invalid:2181: name"):
        assert part in str(caught.value)


def test_an_impatient_start_does_not_wait_for_who_refuses_it() -> None:
    """No server of the list listens, or none has the name: the error is there at once."""
    hosts, long_ms = "127.0.0.1:1,no.such.host.invalid", int(1000 * WAIT_S)
    client = ZkClient(hosts, connection_timeout_ms=long_ms, is_patient=False)
    with pytest.raises(
        ZooKeeperUnreachable, match=r"invalid:2181 \(127.0.0.1:1: connection refused"
    ):
        client.start()


def test_an_impatient_start_does_not_wait_for_who_closes_the_connection() -> None:
    """As a broker does, whose address was given as ZooKeeper's, nor for an HTTP server. One without
    a quorum replies to the question, and is waited for."""
    with (
        closing_server(b"") as broker,
        closing_server(NOT_SERVING) as alone,
        make_server("127.0.0.1", 0, demo_app) as web,
    ):
        threading.Thread(target=web.serve_forever, daemon=True).start()
        at = f"127.0.0.1:{web.server_port}"
        client = ZkClient(at, connection_timeout_ms=int(1000 * WAIT_S), is_patient=False)
        with pytest.raises(
            ZooKeeperUnreachable, match=r"is no ZooKeeper server: it replies '.*HTML"
        ):
            client.start()
        web.shutdown()
        long_ms = int(1000 * WAIT_S)
        client = ZkClient(broker, connection_timeout_ms=long_ms, is_patient=False)
        with pytest.raises(ZooKeeperUnreachable, match=f"{broker} .* without a reply"):
            client.start()
        client = ZkClient(f"{broker},{alone}", connection_timeout_ms=400, is_patient=False)
        with pytest.raises(ZooKeeperUnreachable, match=r"within 400 ms .* no quorum"):
            client.start()


def test_a_server_that_has_lost_data_is_said_to_refuse_the_session() -> None:
    """ZooKeeper refuses a client that has seen more than it knows, for ever: nothing but a new
    process gets a session there."""
    with EmbeddedZooKeeper() as server, ZkClient(server.connect_string) as client:
        assert "refuses" not in client.why_unreachable()
        cast(KazooSession, client._zookeeper)._kazoo.last_zxid = 1 << 60
        assert "has seen zxid 0x1000000000000000: its own is 0x" in client.why_unreachable()
        assert "restart this process" in client.why_unreachable()


@contextmanager
def closing_server(reply: bytes) -> Iterator[str]:
    """The address of a server that sends this to every connection that sent something, and closes
    it."""

    def serve(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, suppress(OSError):
                    connection.recv(1024)
                    connection.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield host_port(*server.getsockname())
        server.shutdown(socket.SHUT_RDWR)


def test_an_impatient_start_waits_for_one_of_several() -> None:
    """A server that refuses says nothing of the others, which may be slow."""
    with socket.create_server(("127.0.0.1", 0)) as slow:
        hosts = f"127.0.0.1:1,127.0.0.1:{slow.getsockname()[1]}"
        client = ZkClient(hosts, connection_timeout_ms=400, is_patient=False)
        with pytest.raises(ZooKeeperUnreachable, match="within 400 ms"):
            client.start()


def test_an_impatient_call_gives_up_on_a_server_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some seconds after the last reply, long before the session would end."""
    monkeypatch.setattr("kafka08.zk.client.HASTY_S", 0.3)
    with (
        EmbeddedZooKeeper() as server,
        ZkClient(server.connect_string, is_patient=False) as client,
    ):
        assert client.exists("/zookeeper")
        server.pause()
        with pytest.raises(SessionLost, match="no reply from ZooKeeper"):
            client.exists("/zookeeper")
        server.resume()


def test_close_ends_a_start_that_waits() -> None:
    """close() ends a start() that still connects. A program that is stopped then does not wait for
    the whole timeout."""
    client = ZkClient("127.0.0.1:1", connection_timeout_ms=1000 * WAIT_S)
    closer = threading.Timer(0.1, client.close)
    closer.start()
    begun = time.monotonic()
    with pytest.raises(Closed):
        client.start()
    closer.join()
    assert time.monotonic() - begun < WAIT_S / 2


def test_null_and_empty_data_are_kept_apart(zk: ZkClient) -> None:
    """Parents that `create` makes have null data, as those of 0.8.2.2 have. Data of "" stays ""."""
    zk.create("/a/b/c", "")
    assert zk.get("/a/b/c") == Node("", 0)
    assert zk.get("/a/b") == Node(None, 0)
    zk.set("/a/b", "ü")
    assert zk.get("/a/b") == Node("ü", 1)
    zk.set("/a/b", None)
    assert zk.get("/a/b") == Node(None, 2)


def test_errors_name_the_znode(zk: ZkClient) -> None:
    """Each failure has its own class and the path of the znode."""
    zk.create("/there", "x")
    with pytest.raises(NoNode, match="/absent"):
        zk.get("/absent")
    with pytest.raises(NoNode, match="/absent"):
        zk.children("/absent")
    with pytest.raises(NodeExists, match="/there"):
        zk.create("/there")
    with pytest.raises(BadVersion, match="/there"):
        zk.set("/there", "y", version=7)
    with pytest.raises(NoNode, match="/absent/child"):
        zk.create("/absent/child", make_parents=False)
    zk.create("/there/below")
    with pytest.raises(ZooKeeperError, match="/there: has children"):
        zk.delete("/there")
    assert zk.get_or_none("/absent") is None
    assert zk.children_or_empty("/absent") == []
    assert zk.stat("/absent") is None
    assert zk.delete("/absent", missing_ok=True) is False


def test_an_error_keeps_nothing_of_its_caller_alive(zk: ZkClient) -> None:
    """An error whose own frame refers to it waits for a collection, and with it all that its
    callers hold: a dropped cluster was not stopped before."""

    class Held:
        pass

    def ask() -> weakref.ref[Held]:
        held = Held()
        with suppress(NoNode):
            zk.get("/missing")
        return weakref.ref(held)

    gc.disable()
    try:
        assert ask()() is None
    finally:
        gc.enable()


def test_versions_guard_writes(zk: ZkClient) -> None:
    """A conditional write returns the next version. `put` writes whether or not the znode
    exists."""
    zk.put("/p/q", "1")
    zk.put("/p/q", "2")
    assert zk.get("/p/q") == Node("2", 1)
    assert zk.set("/p/q", "3", version=1) == 2
    zk.delete_recursive("/p")
    zk.delete_recursive("/p")
    assert not zk.exists("/p")


def test_sequence_nodes_are_numbered(zk: ZkClient) -> None:
    """ZooKeeper appends ten digits to the name. The result is the path below the chroot."""
    zk.ensure("/changes")
    made = [zk.create("/changes/config_change_", "x", sequence=True) for _ in range(2)]
    assert made == ["/changes/config_change_0000000000", "/changes/config_change_0000000001"]
    assert zk.children("/changes") == ["config_change_0000000000", "config_change_0000000001"]


def test_a_burst_keeps_the_order_and_isolates_conflicts(zk: ZkClient) -> None:
    """Results have the order of the requests. A stale version fails alone, and missing parents are
    created."""
    made = zk.pipeline([Create(f"/t/{n}/state", str(n)) for n in range(450)])
    assert made == [f"/t/{n}/state" for n in range(450)]
    assert zk.get("/t/7") == Node(None, 0)
    zk.set("/t/3/state", "other")
    written = zk.pipeline([Set(f"/t/{n}/state", "new", 0) for n in range(450)])
    assert [n for n, result in enumerate(written) if result != 1] == [3]
    assert isinstance(written[3], BadVersion)
    mixed = zk.pipeline([Get("/t/3/state"), Children("/none"), Delete("/t/4/state"), Get("/t")])
    assert mixed[0] == Node("other", 1)
    assert isinstance(mixed[1], NoNode)
    assert mixed[2] is None
    assert mixed[3] == Node(None, 0)


def test_a_transaction_is_done_all_or_not_at_all(zk: ZkClient) -> None:
    """If a step fails, the error names it and nothing is changed."""
    zk.create("/a", "1")
    with pytest.raises(BadVersion, match="/a:"):
        zk.multi([Create("/b", "x"), Set("/a", "2", version=5), Delete("/a")])
    with pytest.raises(NodeExists) as caught:
        zk.multi([Create("/b", "x"), Create("/a", "x")])
    assert caught.value.path == "/a"
    assert not zk.exists("/b")
    done = zk.multi([Check("/a", 0), Create("/b", "x"), Set("/a", "2", version=0)])
    assert done == [None, "/b", 1]
    assert zk.get("/b") == Node("x", 0)


@pytest.mark.parametrize("name", [".", "..", "\ud800"])
def test_a_path_that_no_znode_can_have_is_refused_alone(zk: ZkClient, name: str) -> None:
    """A path that UTF-8 cannot encode, or with a part . or .., fails with BadArguments. Other
    operations of the burst, and the session, are not affected."""
    zk.create("/a")
    path = f"/a/{name}/b"
    bad: list[Operation] = [Get(path), Exists(path), Children(path), Create(path), Set(path, "")]
    *refused, there = zk.pipeline([*bad, Delete(path), Get("/a")])
    assert [BadArguments] * 6 == [type(result) for result in refused]
    assert there == Node("", 0)
    made, error = zk.write_all([Create("/b"), Create(path)])
    assert ("/b", BadArguments) == (made, type(error))
    with pytest.raises(BadArguments) as caught:
        zk.multi([Create("/c"), Check(path, 0)])
    assert caught.value.path == path
    assert not zk.exists("/c")


def test_a_watch_is_called_once_and_the_reader_rearms_it(sessions: Sessions, zk: ZkClient) -> None:
    """A watch fires for creation, change or deletion, once, however often its znode was read. The
    reader sets it again."""
    seen = sessions.inbox()
    assert zk.watch_data("/w", seen.put) is None
    assert zk.watch_data("/w", seen.put) is None
    zk.create("/w", "1")
    assert seen.get(timeout=WAIT_S) == "/w"
    assert zk.watch_data("/w", seen.put) == Node("1", 0)
    zk.set("/w", "2")
    assert seen.get(timeout=WAIT_S) == "/w"
    zk.set("/w", "3")
    assert zk.watch_data("/w", seen.put) == Node("3", 2)
    zk.delete("/w")
    assert seen.get(timeout=WAIT_S) == "/w"
    assert seen.empty()


def test_children_are_watched_before_the_parent_exists(sessions: Sessions, zk: ZkClient) -> None:
    """The children of a znode that does not exist are [], and its creation fires the watch."""
    seen = sessions.inbox()
    assert zk.watch_children("/dir", seen.put) == []
    zk.create("/dir/b")
    assert seen.get(timeout=WAIT_S) == "/dir"
    while (children := zk.watch_children("/dir", seen.put)) != ["b"]:
        seen.get(timeout=WAIT_S)
    zk.create("/dir/a")
    assert seen.get(timeout=WAIT_S) == "/dir"
    assert [*children, *zk.children("/dir")] == ["b", "a", "b"]


def test_ephemeral_znodes_go_with_their_session(sessions: Sessions, zk: ZkClient) -> None:
    """Closing a client deletes the ephemerals of its own session at once, and no others."""
    with sessions.client() as other:
        other.create_ephemeral("/ids/1", "one")
        stat = zk.stat("/ids/1")
        assert stat is not None
        assert stat.ephemeral_owner == other.session_id
    assert not zk.exists("/ids/1")
    assert zk.exists("/ids")


def test_an_ephemeral_of_this_session_with_the_same_data_is_fine(zk: ZkClient) -> None:
    """`create` succeeds if this session already has the ephemeral with the same data: its reply may
    have been lost. With other data it is a conflict."""
    zk.create_ephemeral("/e", "mine")
    zk.create_ephemeral("/e", "mine")
    with pytest.raises(NodeExists, match="/e exists already with 'mine'"):
        zk.create_ephemeral("/e", "other")


def test_an_ephemeral_of_this_session_is_not_waited_out(zk: ZkClient) -> None:
    """Waiting would be useless, because the znode disappears only with this session. A broker that
    registers a second time has a later timestamp."""
    zk.create_ephemeral("/e", "mine at noon")
    responses = [True]
    zk.create_ephemeral(
        "/e", "mine later", expected_mine=lambda _: bool(responses and responses.pop())
    )
    assert "mine at noon" == zk.get("/e").data


def test_an_ephemeral_of_an_earlier_session_is_waited_out(sessions: Sessions, zk: ZkClient) -> None:
    """`create` waits for the end of an earlier session of the same owner. A znode of another owner
    is a conflict."""
    earlier = sessions.client()
    earlier.start()
    earlier.create_ephemeral("/e", "mine")
    with pytest.raises(NodeExists):
        zk.create_ephemeral("/e", "mine")
    with pytest.raises(NodeExists):
        zk.create_ephemeral("/e", "mine", expected_mine=lambda text: text == "yours")

    def end_it(text: str) -> bool:
        expire_session(earlier)
        return text == "mine"

    zk.create_ephemeral("/e", "mine", expected_mine=end_it)
    earlier.close()
    stat = zk.stat("/e")
    assert stat is not None
    assert stat.ephemeral_owner == zk.session_id


def test_a_session_that_lives_on_is_not_an_earlier_one_of_ours() -> None:
    """The wait ends: a copy of a running broker, which has its id and address, must not take its
    place when that one is restarted."""
    world = InProcessWorld()
    running, copy = (ZkClient("h:1", adapter=world.connect, clock=world) for _ in range(2))
    running.start()
    copy.start()
    running.create_ephemeral("/e", "mine")
    before = world.monotonic()
    with pytest.raises(NodeExists, match=f"its session 0x{running.session_id:x} lives on"):
        copy.create_ephemeral("/e", "mine", expected_mine=lambda _: True)
    assert EARLIER_SESSION_S <= world.monotonic() - before < EARLIER_SESSION_S + 10


def test_close_ends_the_wait_for_an_earlier_session(zk_connect: str) -> None:
    """A broker that is stopped while it waits for its earlier znode stops at once: the call raises
    when the client is closed, not after a session timeout."""
    with (
        ZkClient(zk_connect, session_timeout_ms=30_000) as earlier,
        ZkClient(zk_connect, session_timeout_ms=30_000) as client,
    ):
        earlier.create_ephemeral("/e", "mine")
        waiting, ended = threading.Event(), threading.Event()

        def is_mine(_: str) -> bool:
            waiting.set()
            return True

        def register() -> None:
            with pytest.raises(ZooKeeperError):
                client.create_ephemeral("/e", "mine", expected_mine=is_mine)
            ended.set()

        threading.Thread(target=register, daemon=True).start()
        assert waiting.wait(WAIT_S)
        client.close()
        assert ended.wait(client.session_timeout_ms / 1000 / 2)


def test_an_expired_session_is_reported_once_with_the_new_one(sessions: Sessions) -> None:
    """EXPIRED arrives when the new session exists. The ephemerals are gone and the watches have
    fired."""
    events, seen = sessions.inbox(), sessions.inbox()
    with sessions.client() as client:
        client.add_session_listener(events.put)
        client.create_ephemeral("/e", "x")
        client.watch_data("/e", seen.put)
        old = client.session_id
        expire_session(client)
        told = [events.get(timeout=WAIT_S)]
        while told[-1] is not SessionEvent.EXPIRED:
            told.append(events.get(timeout=WAIT_S))
        assert client.session_id not in {old, None}
        assert seen.get(timeout=WAIT_S) == "/e"
        assert not client.exists("/e")
        client.create_ephemeral("/e", "x")
        assert told.count(SessionEvent.EXPIRED) == 1
        assert SessionEvent.RECONNECTED not in told
    assert events.empty(), "a closed client tells nothing"


def test_a_restarted_server_keeps_the_session() -> None:
    """Calls wait until the server is back, in the same session, and a conditional write is not done
    twice."""
    events: queue.Queue[SessionEvent] = queue.Queue()
    # On a busy machine a restart takes longer than the default session timeout.
    with (
        EmbeddedZooKeeper() as server,
        ZkClient(server.connect_string, session_timeout_ms=60_000) as client,
    ):
        client.add_session_listener(events.put)
        client.create_ephemeral("/e", "x")
        session = client.session_id
        server.restart()
        assert session is not None
        assert client.get("/e") == Node("x", 0, session)
        assert client.set("/e", "y", version=0) == 1
        assert SYSTEM_CLOCK.monotonic() - client.last_contact < WAIT_S
        assert events.get(timeout=WAIT_S) is SessionEvent.SUSPENDED
        assert events.get(timeout=WAIT_S) is SessionEvent.RECONNECTED


def test_a_server_that_stays_away_raises_session_lost() -> None:
    """A call fails after the session and the connection timeout; it never hangs."""
    with EmbeddedZooKeeper() as server:
        client = ZkClient(server.connect_string, session_timeout_ms=1000, connection_timeout_ms=500)
        client.start()
        client.create("/x")
        server.stop()
        began = time.monotonic()
        with pytest.raises(SessionLost, match="/x"):
            client.get("/x")
        assert time.monotonic() - began < WAIT_S
        client.close()


def suspended(server: EmbeddedZooKeeper, session_timeout_ms: int) -> ZkClient:
    """A client whose server has just stopped."""
    client = ZkClient(server.connect_string, session_timeout_ms=session_timeout_ms)
    client.start()
    server.stop()
    RealSessions(server.connect_string).eventually(
        lambda: client.state is SessionState.SUSPENDED, "suspension"
    )
    return client


def test_a_transaction_on_a_suspended_session_raises_session_lost() -> None:
    """A transaction gives up as every other call does. (It used to wait until the server came
    back.)"""
    with EmbeddedZooKeeper() as server:
        client = suspended(server, 1000)
        with pytest.raises(SessionLost, match="/y: no reply from ZooKeeper"):
            client.multi([Create("/y")])
        client.close()


def test_a_failed_start_has_hosts_and_timeout() -> None:
    """The error of start() has the hosts and the timeout."""
    client = ZkClient("127.0.0.1:1,127.0.0.1:2/x", connection_timeout_ms=300)
    with pytest.raises(ZooKeeperError, match=r"127.0.0.1:1,127.0.0.1:2 within 300 ms"):
        client.start()


def test_an_absent_chroot_is_refused_unless_it_is_to_be_made(sessions: Sessions) -> None:
    """A broker creates the chroot and its parents with null data. Other clients fail with its
    name."""
    with pytest.raises(NoNode, match=r"the chroot /test.*/absent/way"):
        sessions.client("/absent/way").start()
    with sessions.client("/absent/way", make_chroot=True) as client:
        assert client.children("/") == []
        assert client.get("/") == Node(None, 0)
    with sessions.client("/absent/way"):
        pass


def test_a_closed_client_raises_session_lost(sessions: Sessions) -> None:
    """A call after close() fails at once. close() may be called again."""
    client = sessions.client()
    client.start()
    client.close()
    client.close()
    with pytest.raises(SessionLost):
        client.get("/")


def test_close_ends_a_call_that_waits_for_a_connection() -> None:
    """close() ends a call that waits for a connection, since there will be none. Otherwise the call
    waits for its whole timeout."""
    client = ZkClient("127.0.0.1:1", connection_timeout_ms=1000 * WAIT_S)
    kazoo = cast(KazooSession, client._zookeeper)._kazoo
    eventually = RealSessions("").eventually
    with ThreadPoolExecutor() as pool:
        starting = pool.submit(client.start)
        eventually(lambda: kazoo.client_state == KeeperState.CONNECTING, "a first try")
        calling = pool.submit(client.get, "/x")
        eventually(lambda: bool(kazoo._queue), "the call under way")
        client.close()
        with pytest.raises(SessionLost, match="/x"):
            calling.result(timeout=WAIT_S / 2)
        with pytest.raises(Closed):
            starting.result(timeout=WAIT_S / 2)


def test_kazoo_is_not_noisy(zk_connect: str, caplog: pytest.LogCaptureFixture) -> None:
    """Connecting and closing logs nothing above INFO."""
    with caplog.at_level(logging.DEBUG), ZkClient(zk_connect) as client:
        client.exists("/x")
    assert [r for r in caplog.records if r.name.endswith("kazoo")] == []


def test_it_works_with_gevent_and_starves_no_greenlet(zk_connect: str) -> None:
    """Under the gevent handler other greenlets run during a burst of requests and while a session
    is lost."""
    program = """
        import sys
        from gevent import monkey; monkey.patch_all()
        import gevent
        from kafka08.zk.client import EARLIER_SESSION_S, ZkClient
        from kafka08.zk.faults import expire_session
        from kafka08.zk.kazoo_adapter import on_gevent
        from kafka08.zk.operations import Create, Get
        from kafka08.zk.session import SessionEvent, SessionState
        ticks, events = [], []
        def tick():
            while True:
                ticks.append(1)
                gevent.sleep(0.005)
        ticker = gevent.spawn(tick)
        client = ZkClient(sys.argv[1], adapter=on_gevent)
        client.add_session_listener(events.append)
        client.start()
        before = len(ticks)
        client.pipeline([Create(f"/g/{n}", str(n)) for n in range(600)])
        read = client.pipeline([Get(f"/g/{n}") for n in range(600)])
        assert [node.data for node in read] == [str(n) for n in range(600)]
        assert len(ticks) - before >= 3, len(ticks) - before
        expire_session(client)
        with gevent.Timeout(20):
            while SessionEvent.EXPIRED not in events:
                gevent.sleep(0.01)
        assert client.get("/g/1").data == "1"
        client.close()
        ticker.kill()
        print("done", end="")
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), zk_connect],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "done"), run.stderr
