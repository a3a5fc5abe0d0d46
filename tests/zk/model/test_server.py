"""Behaviour that one real server in a test cannot show, or not exactly: moved sessions, limits,
restarts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafka08.embedded.zookeeper import ZooKeeperServer
from kafka08.zk.model.messages import (
    MAX_BUFFER_BYTES,
    CheckVersionRequest,
    Code,
    ConnectReply,
    ConnectRequest,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    MultiRequest,
    Reply,
    Request,
    SetDataRequest,
    wire_size,
)
from kafka08.zk.model.server import Close, Instant, Output, Send, Server
from kafka08.zk.model.sessions import password_of
from tests.zk.model.wire import WireClient, encode

NOW = Instant(0, 0)


def accepted(outputs: list[Output]) -> ConnectReply:
    (output,) = outputs
    assert isinstance(output, Send)
    assert isinstance(output.message, ConnectReply)
    return output.message


def code_of(outputs: list[Output]) -> Code:
    output = outputs[-1]
    assert isinstance(output, Send)
    assert isinstance(output.message, Reply)
    return output.message.code


def test_a_moved_session_writes_nothing_by_its_old_connection() -> None:
    """After a session has moved to another member of the ensemble, a write on the old connection
    fails with SessionMoved and closes it."""
    server = Server()
    session_id = accepted(server.connect(1, ConnectRequest(), NOW, member=1)).session_id
    again = ConnectRequest(session_id=session_id, password=password_of(session_id))
    assert accepted(server.connect(2, again, NOW, member=2)).session_id == session_id
    assert server.receive(1, 1, CreateRequest("/late", b""), NOW) == [Close(1)]
    assert code_of(server.receive(2, 1, ExistsRequest("/late"), NOW)) is Code.NO_NODE


def test_a_session_that_is_heard_lives() -> None:
    """A session ends, with its connection, when no message arrived for its timeout."""
    server = Server(tick_ms=500)
    accepted(server.connect(1, ConnectRequest(timeout_ms=1000), NOW))
    server.receive(1, 1, ExistsRequest("/"), Instant(1400, 0))
    assert server.expire(Instant(2400, 0)) == []
    assert server.expire(Instant(2500, 0)) == [Close(1)]


def test_a_restart_gives_sessions_their_whole_timeout() -> None:
    """After a restart of any length, a session has its whole timeout again. Connections and watches
    are gone."""
    server = Server(tick_ms=500)
    session_id = accepted(server.connect(1, ConnectRequest(timeout_ms=1000), NOW)).session_id
    server.receive(1, 1, ExistsRequest("/a", watch=True), NOW)
    server.restart(Instant(60_000, 0))
    again = ConnectRequest(session_id=session_id, password=password_of(session_id))
    accepted(server.connect(2, again, Instant(61_000, 0)))
    made = server.receive(2, 1, CreateRequest("/a", b""), Instant(61_000, 0))
    assert [output.connection for output in made] == [2]


@pytest.mark.parametrize(
    "request_",
    [
        CreateRequest("/ä", None, True, True),
        CreateRequest("/a", b"x" * 100),
        SetDataRequest("/a", b"x", 3),
        MultiRequest((CreateRequest("/a", b"x"), DeleteRequest("/b"), CheckVersionRequest("/c"))),
        MultiRequest(()),
    ],
)
def test_the_size_of_a_write_is_that_on_the_wire(request_: Request) -> None:
    """The limit counts the bytes of the request without its length field."""
    assert wire_size(request_) == len(encode(1, request_))


def test_a_request_that_is_too_long_ends_the_connection(apache_zookeeper: ZooKeeperServer) -> None:
    """A request that is too long closes the connection, as on a real server. One byte less is
    accepted."""
    longest = CreateRequest("/longest", b"")
    room = MAX_BUFFER_BYTES - wire_size(longest)
    for size, is_done in ((room, True), (room + 1, False)):
        request = CreateRequest("/longest", bytes(size))
        server = Server()
        server.connect(1, ConnectRequest(), NOW)
        ours = server.receive(1, 1, request, NOW)
        assert (Close(1) not in ours) is is_done
        real = WireClient((apache_zookeeper.host, apache_zookeeper.port), ConnectRequest())
        real.send(1, request)
        real.receive_all()
        assert real.closed is not is_done
        if is_done:
            real.send(2, DeleteRequest("/longest"))
            real.receive_all()
        real.close()


def test_odd_characters_of_a_path_are_refused_as_by_a_real_server(
    apache_zookeeper: ZooKeeperServer,
) -> None:
    """A real server sees a path as Java does: in UTF-16, where a character above U+FFFF has two
    surrogates, which no path may have."""
    requests: list[Request] = [
        *(
            CreateRequest(f"/odd-{character}", b"")
            for character in ("ä", "\ue000", "\uf900", "\U0001f600", "\U0010ffff")
        ),
        SetDataRequest("/odd-\U0001f600", b""),
        MultiRequest((CheckVersionRequest("/odd-\U0001f600"),)),
        ExistsRequest("/odd-\U0001f600"),
        ExistsRequest("/odd-\0"),
        DeleteRequest("/odd-ä"),
        DeleteRequest("/odd-\uf900"),
    ]
    server = Server()
    server.connect(1, ConnectRequest(), NOW)
    real = WireClient((apache_zookeeper.host, apache_zookeeper.port), ConnectRequest())
    ours = []
    for xid, request in enumerate(requests, 1):
        (output,) = server.receive(1, xid, request, NOW)
        assert isinstance(output, Send)
        assert isinstance(output.message, Reply)
        ours.append((request, output.message.code, codes_of(output.message)))
        real.send(xid, request)
    real.receive_all()
    replies = [seen for seen in real.seen if isinstance(seen, Reply)]
    theirs = [
        (request, reply.code, codes_of(reply))
        for request, reply in zip(requests, replies, strict=True)
    ]
    real.close()
    assert theirs == ours


def codes_of(reply: Reply) -> Sequence[object]:
    """Those of a multi's steps."""
    return reply.result if isinstance(reply.result, list) else []
