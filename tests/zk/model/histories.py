"""Random histories of several clients: run once on a real ZooKeeper, and any number of times on the
model.

A history is a list of steps that depends on its seed alone, never on responses of a server. After
each step the messages that arrived on the step's connection are recorded; those of other
connections are recorded with their next steps. So the replies and events of a connection are
compared in their order, and an event that another connection's write causes is compared at the
place where the server sent it.

Ids need no translation, because the model begins with the zxid and the session id of the real
server. Only times differ, and each time of the model must always correspond to the same time of the
server."""

from __future__ import annotations

import itertools
import random
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from kafka08.embedded.zookeeper_process import MAX_SESSION_MS, TICK_MS
from kafka08.zk.model.messages import (
    CheckVersionRequest,
    CloseSessionRequest,
    ConnectReply,
    ConnectRequest,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    FromServer,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    PingRequest,
    Reply,
    Request,
    SetDataRequest,
    SetWatchesRequest,
    StepRequest,
    WatchEvent,
    ZnodeStat,
)
from kafka08.zk.model.server import Close, Instant, Output, Server
from kafka08.zk.model.sessions import password_of
from tests.waiting import until
from tests.zk.model.wire import WireClient

CLIENTS = 4
LONG_MS = MAX_SESSION_MS
SHORT_MS = 4 * TICK_MS
"""Long enough for the steps between its beginning and its silence, on a busy machine."""
NAMES = "abc"
ODD_PATHS = (
    "/",
    "/zookeeper",
    "/zookeeper/quota",
    "relative",
    "/t//a",
    "/t/a/",
    "/t/./a",
    "/t/\x01",
)


@dataclass(frozen=True)
class Open:
    """Opens a connection."""

    connection: int
    request: ConnectRequest


@dataclass(frozen=True)
class Ask:
    """Sends requests, without waiting for a reply in between."""

    connection: int
    requests: tuple[tuple[int, Request], ...]


@dataclass(frozen=True)
class Drop:
    """Closes the client's side of the connection, without ending the session."""

    connection: int


@dataclass(frozen=True)
class Gone:
    """The server has closed this connection, because another one took over its session."""

    connection: int


@dataclass(frozen=True)
class Expire:
    """Sends nothing until the server ends the session, which has the shortest timeout, and closes
    the connection."""

    connection: int


Step: TypeAlias = Open | Ask | Drop | Gone | Expire


@dataclass(frozen=True)
class Seen:
    """The messages that arrived on the step's connection since its last step, and whether the
    server closed it."""

    messages: tuple[FromServer, ...]
    closed: bool = False


@dataclass
class Client:
    session_id: int
    connection: int
    is_connected: bool = True
    watched: set[str] = field(default_factory=set)


class Author:
    """Writes histories. first_session_id is the id of the server's next session."""

    def __init__(self, first_session_id: int) -> None:
        self._next_session_id = first_session_id
        self._next_connection = 1
        self._next_xid = 1
        self._random = random.Random(0)
        self._clients: list[Client] = []

    def history(self, seed: int, length: int, expiries: int) -> Iterator[Step]:
        """`length` steps of CLIENTS clients. The last steps end all sessions."""
        self._random = random.Random(seed)
        yield from self._open_client()
        yield self._ask(self._clients[0], CreateRequest("/t", b""))
        at = set(self._random.sample(range(length // 2, length), expiries))
        for number in range(length):
            while len(self._clients) < CLIENTS:
                yield from self._open_client()
            if number in at:
                yield from self._expire_client()
            else:
                yield from self._next_steps()
        while self._clients:
            yield from self._end(self._clients[0])

    def _next_steps(self) -> Iterator[Step]:
        client = self._random.choice(self._clients)
        if not client.is_connected:
            yield from self._reattach(client)
            return
        act = self._random.choices(
            [
                self._single,
                self._burst,
                self._watch_and_delete,
                self._drop,
                self._steal,
                self._misattach,
                self._end,
            ],
            [75, 12, 5, 2, 2, 1, 2],
        )[0]
        yield from act(client)

    def _open_client(self, timeouts_ms: Sequence[int] = (LONG_MS, 2 * LONG_MS)) -> Iterator[Step]:
        client = Client(self._next_session_id, self._new_connection())
        self._next_session_id += 1
        self._clients.append(client)
        asked = self._random.choice(timeouts_ms)
        yield Open(client.connection, ConnectRequest(timeout_ms=asked))

    def _single(self, client: Client) -> Iterator[Step]:
        yield self._ask(client, self._request(client))

    def _burst(self, client: Client) -> Iterator[Step]:
        yield self._ask(client, *(self._request(client) for _ in range(self._random.randint(2, 9))))

    def _watch_and_delete(self, client: Client) -> Iterator[Step]:
        """Sets both watches on a znode and deletes it; different clients may do this."""
        path = self._path()
        yield self._ask(client, GetDataRequest(path, True), GetChildrenRequest(path, True))
        others = [other for other in self._clients if other.is_connected]
        yield self._ask(self._random.choice(others), DeleteRequest(path))
        yield self._ask(client, PingRequest())

    def _drop(self, client: Client) -> Iterator[Step]:
        client.is_connected = False
        yield Drop(client.connection)

    def _reattach(self, client: Client) -> Iterator[Step]:
        client.connection = self._new_connection()
        client.is_connected = True
        yield Open(client.connection, self._attach_request(client))
        if self._random.random() < 0.7:
            paths = sorted(client.watched)
            seen = self._random.randint(0, 40)
            yield self._ask(
                client,
                PingRequest(),
                SetWatchesRequest(
                    LATELY - seen,
                    tuple(self._random.sample(paths, min(2, len(paths)))),
                    tuple(self._random.sample(paths, min(2, len(paths)))),
                    tuple(self._random.sample(paths, min(2, len(paths)))),
                ),
            )

    def _steal(self, client: Client) -> Iterator[Step]:
        """Another connection takes over the session while this one is open."""
        yield self._ask(client, PingRequest())
        old, client.connection = client.connection, self._new_connection()
        yield Open(client.connection, self._attach_request(client))
        yield Gone(old)

    def _misattach(self, client: Client) -> Iterator[Step]:
        """The same with a wrong password, for a session that does not exist, or by a client that
        has seen a later zxid than the server."""
        request = self._attach_request(client)
        if self._random.random() < 0.3:
            yield Open(self._new_connection(), replace(request, last_zxid_seen=1 << 50))
            return
        request = replace(request, password=b"wrong".ljust(16))
        if self._random.random() < 0.5:
            request = replace(request, session_id=self._next_session_id + 1000)
            yield Open(self._new_connection(), request)
            return
        yield self._ask(client, PingRequest())
        yield Open(self._new_connection(), request)
        yield Gone(client.connection)
        client.is_connected = False

    def _end(self, client: Client) -> Iterator[Step]:
        if not client.is_connected:
            yield from self._reattach(client)
        self._clients.remove(client)
        yield self._ask(client, CloseSessionRequest())

    def _expire_client(self) -> Iterator[Step]:
        """A client with a short timeout creates ephemeral znodes, sets watches and stops
        sending."""
        yield from self._open_client((SHORT_MS, SHORT_MS + 1))
        client = self._clients.pop()
        made = [CreateRequest(self._path(), b"", ephemeral=True) for _ in range(6)]
        yield self._ask(client, *made, *(GetDataRequest(create.path, True) for create in made))
        for other in self._clients:
            if other.is_connected:
                watches = [ExistsRequest(create.path, True) for create in made]
                yield self._ask(other, *watches, GetChildrenRequest("/t", True))
        yield Expire(client.connection)

    def _attach_request(self, client: Client) -> ConnectRequest:
        return ConnectRequest(
            timeout_ms=LONG_MS,
            session_id=client.session_id,
            password=password_of(client.session_id),
        )

    def _new_connection(self) -> int:
        self._next_connection += 1
        return self._next_connection - 1

    def _ask(self, client: Client, *requests: Request) -> Ask:
        numbered = []
        for request in requests:
            numbered.append((self._next_xid, request))
            self._next_xid += 1
        return Ask(client.connection, tuple(numbered))

    def _request(self, client: Client) -> Request:
        kinds: list[Callable[[], Request]] = [
            lambda: GetDataRequest(*self._watched_path(client)),
            lambda: ExistsRequest(*self._watched_path(client)),
            lambda: GetChildrenRequest(*self._watched_path(client)),
            self._write,
            self._multi,
            PingRequest,
        ]
        return self._random.choices(kinds, [15, 15, 15, 45, 9, 1])[0]()

    def _multi(self) -> MultiRequest:
        steps: list[StepRequest] = []
        for _ in range(self._random.randint(0, 4)):
            is_check = self._random.random() < 0.2
            check = CheckVersionRequest(self._path(), self._version())
            steps.append(check if is_check else self._write())
        return MultiRequest(tuple(steps))

    def _write(self) -> CreateRequest | SetDataRequest | DeleteRequest:
        path = self._path()
        kind = self._random.choices(["create", "set", "delete"], [45, 25, 30])[0]
        if kind == "create":
            ephemeral, sequence = self._random.random() < 0.3, self._random.random() < 0.15
            return CreateRequest(path, self._data(), ephemeral, sequence)
        if kind == "set":
            return SetDataRequest(path, self._data(), self._version())
        return DeleteRequest(path, self._version())

    def _path(self) -> str:
        if self._random.random() < 0.03:
            return self._random.choice(ODD_PATHS)
        depth = self._random.choices([0, 1, 2, 3], [2, 50, 36, 12])[0]
        return "/t" + "".join(f"/{self._random.choice(NAMES)}" for _ in range(depth))

    def _watched_path(self, client: Client) -> tuple[str, bool]:
        path, watch = self._path(), self._random.random() < 0.7
        if watch and path.startswith("/"):
            client.watched.add(path)
        return path, watch

    def _version(self) -> int:
        return self._random.choices([-1, 0, 1, 2], [60, 25, 10, 5])[0]

    def _data(self) -> bytes | None:
        return self._random.choice([None, b"", b"x", b"more"])


LATELY = 1 << 40
"""Stands for the newest zxid that the client has seen; less the distance that the step wants."""


class RealZooKeeper:
    """Runs steps on a real server."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._clients: dict[int, WireClient] = {}
        first = self._open(0, ConnectRequest(timeout_ms=LONG_MS))
        first.send(1, PingRequest())
        first.receive_all()
        accepted, ping = first.seen
        assert isinstance(accepted, ConnectReply)
        assert isinstance(ping, Reply)
        self.first_session_id = accepted.session_id
        self.first_zxid = ping.zxid
        self._newest_zxid = ping.zxid

    def run(self, step: Step) -> tuple[Step, Seen]:
        """The step as it was run, with zxids filled in, and the messages that arrived."""
        if isinstance(step, Open):
            client = self._open(step.connection, step.request)
        client = self._clients[step.connection]
        if isinstance(step, Ask):
            step = Ask(step.connection, tuple((x, self._placed(r)) for x, r in step.requests))
            for xid, request in step.requests:
                client.send(xid, request)
            client.receive_all()
            if _ends_session(step):
                client.receive_until_closed()
        elif isinstance(step, Expire):
            before = self._zxid()
            client.receive_until_closed()
            # The server may close a connection that says nothing before it ends its session.
            until(lambda: self._zxid() > before, "the end of the session")
        elif isinstance(step, Gone) or (
            isinstance(step, Open) and client.seen == [ConnectReply(0, 0, bytes(16))]
        ):
            client.receive_until_closed()
        elif isinstance(step, Drop):
            client.drop()
        seen, client.seen = Seen(tuple(client.seen), client.closed), []
        if client.closed:
            client.close()
        for message in seen.messages:
            if isinstance(message, Reply):
                self._newest_zxid = max(self._newest_zxid, message.zxid)
        return step, seen

    def _zxid(self) -> int:
        """The zxid of the last write of any client."""
        with socket.create_connection(self._address) as connection:
            connection.sendall(b"srvr")
            response = b"".join(iter(partial(connection.recv, 4096), b""))
        [zxid] = re.findall(rb"Zxid: 0x([0-9a-f]+)", response)
        return int(zxid, 16)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _open(self, connection: int, request: ConnectRequest) -> WireClient:
        client = self._clients[connection] = WireClient(self._address, request)
        return client

    def _placed(self, request: Request) -> Request:
        if isinstance(request, SetWatchesRequest):
            distance = LATELY - request.relative_zxid
            return replace(request, relative_zxid=self._newest_zxid - distance)
        return request


class ModelZooKeeper:
    """Runs steps on the model."""

    def __init__(self, first_session_id: int, first_zxid: int) -> None:
        self.server = Server(
            tick_ms=TICK_MS,
            max_session_ms=MAX_SESSION_MS,
            first_session_id=first_session_id,
            zxid=first_zxid - 1,
        )
        self._elapsed_ms = 0
        self._writes = 0
        self._inboxes: dict[int, list[FromServer]] = {}
        self._closed: set[int] = set()
        self._deliver(self.server.connect(0, ConnectRequest(timeout_ms=LONG_MS), self._now()))

    def run(self, step: Step) -> Seen:
        if isinstance(step, Open):
            self._deliver(self.server.connect(step.connection, step.request, self._now()))
        elif isinstance(step, Ask):
            for xid, request in step.requests:
                self._deliver(self.server.receive(step.connection, xid, request, self._now()))
        elif isinstance(step, Drop):
            self.server.disconnect(step.connection)
        elif isinstance(step, Expire):
            self._elapsed_ms = self.server.next_deadline_ms() or 0
            self._deliver(self.server.expire(self._now()))
        messages = tuple(self._inboxes.pop(step.connection, ()))
        return Seen(messages, step.connection in self._closed)

    def _now(self) -> Instant:
        self._writes += 1
        return Instant(self._elapsed_ms, self._writes)

    def _deliver(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Close):
                self._closed.add(output.connection)
            else:
                self._inboxes.setdefault(output.connection, []).append(output.message)


class Comparison:
    """Replays on the model what was run on a real server. Raises AssertionError at the first
    difference, with the steps before it."""

    def __init__(self, model: ModelZooKeeper) -> None:
        self._model = model
        self._times: dict[int, int] = {0: 0}
        self._ends: set[int] = set()
        self._story: list[str] = []
        self.requests = 0
        self.events = 0

    def check(self, step: Step, real: Seen) -> None:
        modelled = self._model.run(step)
        if _ends_session(step):
            self._ends.add(self._model.server.zxid)
        self._story = [*self._story[-12:], str(step)]
        if isinstance(step, Drop):
            return  # what was still on its way is lost
        if isinstance(step, Expire):
            # Events of its own end may be lost with the connection.
            real, modelled = self._before_the_end(real), self._before_the_end(modelled)
        self.requests += len(step.requests) if isinstance(step, Ask) else 0
        self.events += sum(isinstance(message, WatchEvent) for message in real.messages)
        real_texts = _in_order(real, self._ends)
        model_texts = _in_order(modelled, self._ends)
        story = "\n".join(self._story)
        assert len(real_texts) == len(model_texts), self._difference(story, real, modelled)
        for theirs, ours in zip(real_texts, model_texts, strict=True):
            same = self._without_times(theirs, ours)
            assert theirs == same, self._difference(story, real, modelled)
        assert real.closed == modelled.closed, self._difference(story, real, modelled)

    def _difference(self, story: str, real: Seen, modelled: Seen) -> str:
        theirs = "\n  ".join(map(str, real.messages))
        ours = "\n  ".join(map(str, modelled.messages))
        return (
            f"after\n{story}\nZooKeeper:\n  {theirs}\n  closed: {real.closed}\n"
            f"model:\n  {ours}\n  closed: {modelled.closed}"
        )

    def _before_the_end(self, seen: Seen) -> Seen:
        end = self._model.server.zxid
        kept = [m for m in seen.messages if not (isinstance(m, WatchEvent) and m.zxid == end)]
        return Seen(tuple(kept), seen.closed)

    def _without_times(self, theirs: FromServer, ours: FromServer) -> FromServer:
        """Our messages with the server's times, where they correspond."""
        if not (isinstance(theirs, Reply) and isinstance(ours, Reply)):
            return ours
        result, model = theirs.result, ours.result
        timed: Any = model
        if isinstance(result, ZnodeStat):
            timed = self._timed(result, model)
        elif isinstance(result, list | tuple) and isinstance(model, list | tuple):
            pairs = itertools.zip_longest(result, model)
            made: Any = type(result)
            timed = made(self._timed(theirs, ours) for theirs, ours in pairs)
        return replace(ours, result=timed)

    def _timed(self, theirs: Any, ours: Any) -> Any:
        if not (isinstance(theirs, ZnodeStat) and isinstance(ours, ZnodeStat)):
            return ours
        ctime = self._times.setdefault(ours.ctime, theirs.ctime)
        mtime = self._times.setdefault(ours.mtime, theirs.mtime)
        return ours._replace(ctime=ctime, mtime=mtime)


def _ends_session(step: Step) -> bool:
    if isinstance(step, Ask):
        return any(isinstance(request, CloseSessionRequest) for _, request in step.requests)
    return isinstance(step, Expire)


def _in_order(seen: Seen, ends: set[int]) -> list[FromServer]:
    """The messages in the order of arrival, except that the deletions at a session's end are sorted
    by path: ZooKeeper deletes in the order of a hash set."""
    ordered: list[FromServer] = []
    for zxid, messages in itertools.groupby(seen.messages, _zxid_of_event):
        group = list(messages)
        ordered += sorted(group, key=str) if zxid in ends else group
    return ordered


def _zxid_of_event(message: FromServer) -> int:
    return message.zxid if isinstance(message, WatchEvent) else 0
