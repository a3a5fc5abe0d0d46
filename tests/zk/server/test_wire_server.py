"""Connections of the ZooKeeper server for tests: bytes in, bytes out."""

from __future__ import annotations

import random
import struct

import pytest

from kafka08.zk.model.messages import (
    MAX_BUFFER_BYTES,
    CheckVersionRequest,
    Code,
    ConnectRequest,
    CreateRequest,
    DeleteRequest,
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    PingRequest,
    Reply,
    Request,
    SetDataRequest,
    SetWatchesRequest,
    WatchEvent,
)
from kafka08.zk.server.wire_server import HANDSHAKE_BYTES_MAX, HANDSHAKE_MS
from tests.zk.model.wire import encode, encode_connect
from tests.zk.server.clients import TICK_MS, Client, World, framed

REQUESTS: list[Request] = [
    CreateRequest("/a", b"x"),
    CreateRequest("/a/s-", None, ephemeral=True, sequence=True),
    SetDataRequest("/a", b"yy", 0),
    GetDataRequest("/a", True),
    ExistsRequest("/none", True),
    GetChildrenRequest("/a", True),
    MultiRequest(
        (CheckVersionRequest("/a", 1), SetDataRequest("/a", b"z"), CreateRequest("/b", b""))
    ),
    MultiRequest((CreateRequest("/c", b""), DeleteRequest("/none"), CreateRequest("/d", b""))),
    SetWatchesRequest(0, ("/a",), ("/none",), ("/a",)),
    DeleteRequest("/b"),
    PingRequest(),
]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    client = world.client()
    client.connect()
    return client


def test_bytes_may_come_in_any_pieces() -> None:
    """Single bytes have the same replies as whole requests, and as all requests at once."""
    stream = framed(encode_connect(ConnectRequest()))
    stream += b"".join(framed(encode(xid, request)) for xid, request in enumerate(REQUESTS, 1))
    results = set()
    for size in (1, 7, len(stream)):
        client = World().client()
        for start in range(0, len(stream), size):
            client.write(stream[start : start + size])
        results.add(bytes(client.got))
    assert len(results) == 1


def test_events_come_before_the_reply_of_their_write(world: World, client: Client) -> None:
    """A client that writes what it watches has the event first; another one has it too."""
    other = world.client()
    other.connect()
    client.ask(CreateRequest("/a", b""), GetDataRequest("/a", True))
    other.ask(GetDataRequest("/a", True))
    event, reply = client.ask(SetDataRequest("/a", b"x"))
    assert isinstance(event, WatchEvent)
    assert (event.type, event.path) == (EventType.DATA_CHANGED, "/a")
    assert isinstance(reply, Reply)
    assert [event] == other.received()


def test_a_client_before_3_4_gets_a_reply_without_the_read_only_field(world: World) -> None:
    """A ConnectRequest has the field read-only since 3.4; its reply has it if the request has."""
    sizes = []
    for more in (b"", b"\0"):
        client = world.client()
        client.write(framed(encode_connect(ConnectRequest()) + more))
        sizes.append(len(client.got))
    assert sizes == [sizes[0], sizes[0] + 1]


@pytest.mark.parametrize(
    "record",
    [
        struct.pack(">i", -1),
        struct.pack(">i", MAX_BUFFER_BYTES + 1),
        framed(b""),
        framed(struct.pack(">ii", 1, 4)),
        framed(struct.pack(">iii", 1, 4, 1000) + b"/a"),
        framed(struct.pack(">ii", 1, 101) + struct.pack(">qi", 0, 1 << 30)),
        framed(struct.pack(">ii", 1, 14) + struct.pack(">i?i", 1, False, -1)),
    ],
    ids=["negative", "too long", "empty", "no body", "text", "vector", "multi"],
)
def test_hostile_bytes_close_the_connection_alone(
    world: World, client: Client, record: bytes
) -> None:
    """The connection is closed without a reply; its session lives, and so does the server."""
    client.ask(CreateRequest("/mine", b"", ephemeral=True))
    client.write(record)
    assert client.is_closed
    assert not client.got
    again = world.client()
    again.connect(
        ConnectRequest(session_id=client.session.session_id, password=client.session.password)
    )
    [reply] = again.ask(ExistsRequest("/mine"))
    assert isinstance(reply, Reply)
    assert reply.code is Code.OK


def test_damaged_requests_never_break_the_server() -> None:
    """Requests with random bytes changed, cut or added have some reply or close the connection; a
    well-behaved client is served afterwards."""
    chance = random.Random(8)
    world = World()
    for _ in range(600):
        client = world.client()
        client.connect()
        record = bytearray(encode(1, chance.choice(REQUESTS)))
        for _ in range(chance.randint(1, 4)):
            record[chance.randrange(len(record))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        if chance.random() < 0.3:
            del record[chance.randrange(len(record)) :]
        client.write(framed(bytes(record)))
        world.wire.disconnect(client.number)
    good = world.client()
    good.connect()
    assert len(good.ask(*REQUESTS[:1])) == 1


def test_before_its_session_a_connection_holds_little(world: World) -> None:
    """The first record must not be long, and a connection that sends none is closed in time."""
    client = world.client()
    client.write(struct.pack(">i", HANDSHAKE_BYTES_MAX + 1))
    assert client.is_closed
    silent = world.client()
    world.advance(HANDSHAKE_MS - 1)
    assert not silent.is_closed
    world.advance(1)
    assert silent.is_closed


def test_a_session_ends_after_its_timeout_with_its_znodes(world: World, client: Client) -> None:
    """Without heartbeats it ends; a heartbeat in time keeps it."""
    client.ask(CreateRequest("/mine", b"", ephemeral=True))
    for _ in range(3):
        world.advance(client.session.timeout_ms - 1)
        client.ask(PingRequest())
    assert world.server.find("/mine")
    world.advance(client.session.timeout_ms + TICK_MS)
    assert client.is_closed
    assert not world.server.find("/mine")


def test_a_type_that_is_unknown_is_refused_and_the_next_request_served(client: Client) -> None:
    """It has the error UNIMPLEMENTED (-6)."""
    client.write(framed(struct.pack(">ii", 5, 106)))
    assert struct.unpack_from(">iiqi", client.got)[3] == -6
    client.got.clear()
    assert len(client.ask(PingRequest())) == 1


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (b"ruok", "imok"),
        (b"srvr", "Mode: standalone"),
        (b"stat", " /127.0.0.1:1[1]("),
        (b"mntr", "zk_ephemerals_count\t1\n"),
        (b"conf", "clientPort=2181\n"),
        (b"cons", "to=6000"),
        (b"dump", "\t/mine\n"),
        (b"envi", "zookeeper.version=3.9"),
        (b"wchs", "Total watches:1"),
        (b"isro", "rw"),
    ],
)
def test_four_letter_words(world: World, client: Client, word: bytes, said: str) -> None:
    """Each is answered, and its connection closed."""
    client.ask(CreateRequest("/mine", b"", ephemeral=True), GetDataRequest("/mine", True))
    asking = world.client()
    asking.write(word)
    assert said in asking.got.decode()
    assert asking.is_closed


def test_a_session_is_expired_on_command(world: World, client: Client) -> None:
    """Its znodes go and its connection is closed; it cannot be had again."""
    client.ask(CreateRequest("/mine", b"", ephemeral=True))
    session = client.session.session_id
    assert world.order(do="sessions") == {"sessions": [{"id": session, "timeout_ms": 6000}]}
    assert world.order(do="expire", session=session) == {}
    assert client.is_closed
    assert not world.server.find("/mine")
    again = world.client().connect(ConnectRequest(session_id=session))
    assert again.timeout_ms == 0


def test_a_client_is_disconnected_on_command(world: World, client: Client) -> None:
    """The connection is closed, and the session stays."""
    world.order(do="disconnect", session=None)
    assert client.is_closed
    again = world.client().connect(
        ConnectRequest(session_id=client.session.session_id, password=client.session.password)
    )
    assert again.session_id == client.session.session_id


def test_replies_and_events_are_delayed_on_command(world: World, client: Client) -> None:
    """They come later, in their order; the change itself is made at once."""
    client.ask(CreateRequest("/a", b""), GetDataRequest("/a", True))
    world.order(do="delay", session=client.session.session_id, ms=70)
    client.send(SetDataRequest("/a", b"x"))
    assert (znode := world.server.find("/a"))
    assert znode.data == b"x"
    world.order(do="delay", session=client.session.session_id, ms=0)
    client.send(PingRequest())
    world.advance(69)
    assert [] == client.received()
    world.advance(1)
    kinds = [type(message) for message in client.received()]
    assert kinds == [WatchEvent, Reply, Reply]


def test_a_reply_is_lost_on_command(world: World, client: Client) -> None:
    """The request is applied, and the connection closed without its reply. Heartbeats do not
    count."""
    world.order(do="lose", session=None, count=1)
    assert len(client.ask(PingRequest())) == 1
    assert [] == client.ask(CreateRequest("/a", b""))
    assert client.is_closed
    assert world.server.find("/a")
    again = world.client()
    again.connect()
    assert len(again.ask(CreateRequest("/b", b""))) == 1


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b'{"do": "burn"}', b'{"do": "expire", "session": 7}', b'{"do": "delay"}',
     b'{"do": "lose", "session": "x", "count": 1}', b"[" * 4000],
)  # fmt: skip
def test_a_command_that_cannot_be_executed_says_why(world: World, line: bytes) -> None:
    """The response is an error, and nothing else happens."""
    client = world.client()
    client.write(b"ctrl" + line + b"\n")
    assert client.got.startswith(b'{"error": ')
    assert client.is_closed
