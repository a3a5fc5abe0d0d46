"""The connections of a server, without sockets and clock: bytes and times in, bytes out.

    opened ── "ruok" ──▶ answered, closed
       │
       ├── "ctrl {…}\\n" ──▶ done (faults.py), answered, closed
       │
       └── ConnectRequest ──▶ in session ── requests ──▶ replies, events
                                   │
                                   └── malformed or too long: closed; its session lives on

Its driver calls a method for each thing that happens, then sends what `take_outgoing` returns. A
connection holds at most one request that is not complete, and before its session only a small one.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kafka08.zk.model.messages import (
    MAX_BUFFER_BYTES,
    ConnectReply,
    Identity,
    PingRequest,
    Request,
    WatchEvent,
)
from kafka08.zk.model.server import Close, Instant, Output, Server
from kafka08.zk.server.faults import (
    COMMAND_BYTES_MAX,
    BadCommand,
    Command,
    Faults,
    read_command,
)
from kafka08.zk.server.jute import MalformedRecord
from kafka08.zk.server.replies import write_connect, write_event, write_reply
from kafka08.zk.server.requests import read_connect, read_request
from kafka08.zk.server.words import WORDS, Client, Settings, View

CONTROL: Final = b"ctrl"
HANDSHAKE_BYTES_MAX: Final = 1024
HANDSHAKE_MS: Final = 10_000
"""A connection without a session for so long is closed."""
_WORD_BYTES: Final = 4
_LENGTH_BYTES: Final = 4


class Outgoing(NamedTuple):
    """Bytes for a connection; is_last: close it behind them."""

    connection: int
    data: bytes
    is_last: bool


@dataclass(slots=True)
class _Connection:
    """held: what a commanded delay keeps back, (due in elapsed ms, bytes; None: the close)."""

    number: int
    peer: str
    opened_ms: int
    session_id: int = 0
    has_read_only: bool = True
    received: int = 0
    sent: int = 0
    is_closed: bool = False
    unread: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)
    held: deque[tuple[int, bytes | None]] = field(default_factory=deque)


class WireServer:
    """All connections to `server`."""

    def __init__(self, server: Server, settings: Settings) -> None:
        self._server = server
        self._settings = settings
        self._faults = Faults()
        self._connections: dict[int, _Connection] = {}
        self._changed: dict[int, _Connection] = {}
        self._timed: dict[int, _Connection] = {}
        """Those without a session, and those that hold something back."""
        self._expiry_ms = 0
        self._received = 0
        self._sent = 0

    def open(self, number: int, peer: str, now: Instant) -> None:
        """A connection from `peer` (`host:port`), which has this number from now on."""
        here = self._connections[number] = _Connection(number, peer, now.elapsed_ms)
        self._timed[number] = here

    def receive(self, number: int, data: bytes, now: Instant) -> None:
        """Bytes arrived; on a connection that we have closed they are dropped."""
        here = self._connections.get(number)
        if here is None or here.is_closed:
            return
        here.unread += data
        try:
            if not here.session_id and not self._begin(here, now):
                return
            self._serve_requests(here, now)
        except MalformedRecord:
            self._drop(here)

    def disconnect(self, number: int) -> None:
        """The client has closed the connection, or it failed."""
        if (here := self._connections.pop(number, None)) is not None:
            here.is_closed = True
            self._changed.pop(number, None)
            self._timed.pop(number, None)
            self._server.disconnect(number)

    def tick(self, now: Instant) -> None:
        """Do what is due: the ends of sessions, delayed messages, connections without a session."""
        if now.elapsed_ms >= self._expiry_ms:
            tick_ms = self._settings.tick_ms  # sessions end at its multiples alone
            self._expiry_ms = (now.elapsed_ms // tick_ms + 1) * tick_ms
            self._deliver(self._server.expire(now), None, now)
        for here in list(self._timed.values()):
            self._release(here, now)
            if not here.session_id and now.elapsed_ms >= here.opened_ms + HANDSHAKE_MS:
                self._drop(here)
            if here.is_closed or (here.session_id and not here.held):
                del self._timed[here.number]

    def next_deadline_ms(self) -> int:
        """When `tick` is due again, in elapsed milliseconds."""
        held = (here.held[0][0] for here in self._timed.values() if here.held)
        return min((self._expiry_ms, *held))

    def take_outgoing(self) -> list[Outgoing]:
        """Returns what is to be sent now, in order for each connection."""
        taken = []
        for here in self._changed.values():
            taken.append(Outgoing(here.number, bytes(here.unsent), here.is_closed))
            here.unsent.clear()
            if here.is_closed:
                del self._connections[here.number]
        self._changed.clear()
        return taken

    def _begin(self, here: _Connection, now: Instant) -> bool:
        """Read what a connection begins with. Whether it is in a session now."""
        word = bytes(here.unread[:_WORD_BYTES])
        if word == CONTROL:
            self._execute_line(here, now)
            return False
        if word in WORDS:
            self._answer(here, WORDS[word](self._view()))
            return False
        record = self._take_record(here, HANDSHAKE_BYTES_MAX)
        if record is None:
            return False
        handshake = read_connect(record)
        here.has_read_only = handshake.has_read_only
        host = here.peer.rpartition(":")[0].strip("[]")
        outputs = self._server.connect(
            here.number,
            handshake.request,
            now,
            identities=frozenset({Identity("ip", host)}),
        )
        self._deliver(outputs, None, now)
        return bool(here.session_id)

    def _serve_requests(self, here: _Connection, now: Instant) -> None:
        while (
            not here.is_closed and (record := self._take_record(here, MAX_BUFFER_BYTES)) is not None
        ):
            xid, request = read_request(record)
            outputs = self._server.receive(here.number, xid, request, now)
            is_lost = type(request) is not PingRequest and self._faults.take_loss(here.session_id)
            self._deliver(outputs, request, now, lost=here if is_lost else None)

    def _take_record(self, here: _Connection, most: int) -> bytes | None:
        """The next record, without its length; None if it is not complete. Raises MalformedRecord
        for one that is too long."""
        if len(here.unread) < _LENGTH_BYTES:
            return None
        length = int.from_bytes(here.unread[:_LENGTH_BYTES], "big", signed=True)
        if not 0 <= length <= most:
            raise MalformedRecord(f"a record of {length} bytes")
        end = _LENGTH_BYTES + length
        if len(here.unread) < end:
            return None
        record = bytes(here.unread[_LENGTH_BYTES:end])
        del here.unread[:end]
        here.received += 1
        self._received += 1
        return record

    def _deliver(
        self,
        outputs: list[Output],
        request: Request | None,
        now: Instant,
        lost: _Connection | None = None,
    ) -> None:
        """Queue the outputs. request: that of the reply among them, which `lost` does not get."""
        for output in outputs:
            here = self._connections.get(output.connection)
            if here is None:
                continue
            if isinstance(output, Close):
                self._send(here, None, now)
                continue
            message = output.message
            if isinstance(message, WatchEvent):
                self._send(here, write_event(message), now)
            elif isinstance(message, ConnectReply):
                here.session_id = message.session_id
                self._send(here, write_connect(message, has_read_only=here.has_read_only), now)
            elif here is not lost:
                assert request is not None, "a reply has a request"
                self._send(here, write_reply(request, message), now)
        if lost is not None:
            self._drop(lost)

    def _send(self, here: _Connection, data: bytes | None, now: Instant) -> None:
        """Queue bytes, or the close; behind what is held back."""
        delay_ms = self._faults.delay_ms(here.session_id)
        if here.held or delay_ms:
            here.held.append((now.elapsed_ms + delay_ms, data))
            self._timed[here.number] = here
        else:
            self._send_now(here, data)

    def _send_now(self, here: _Connection, data: bytes | None) -> None:
        if here.is_closed:
            return
        if data is None:
            here.is_closed = True
        else:
            here.unsent += data
            here.sent += 1
            self._sent += 1
        self._changed[here.number] = here

    def _release(self, here: _Connection, now: Instant) -> None:
        while here.held and here.held[0][0] <= now.elapsed_ms:
            self._send_now(here, here.held.popleft()[1])

    def _drop(self, here: _Connection) -> None:
        """Close it from our side, now. Its session lives on."""
        self._server.disconnect(here.number)
        here.unread.clear()
        here.held.clear()
        self._send_now(here, None)

    def _answer(self, here: _Connection, text: str) -> None:
        here.unread.clear()
        self._send_now(here, text.encode())
        self._send_now(here, None)

    def _execute_line(self, here: _Connection, now: Instant) -> None:
        """Execute the command, once its line is complete."""
        line, newline, _ = bytes(here.unread[_WORD_BYTES:]).partition(b"\n")
        if len(line) > COMMAND_BYTES_MAX:
            raise MalformedRecord(f"a command of {len(line)} bytes")
        if newline:
            try:
                response = self._execute(read_command(line), now)
            except BadCommand as error:
                response = {"error": str(error)}
            self._answer(here, json.dumps(response) + "\n")

    def _execute(self, command: Command, now: Instant) -> dict[str, Any]:
        session = command.session
        wanted = [s for s in self._server.sessions() if session is None or s.id == session]
        if session is not None and not wanted:
            raise BadCommand(f"there is no session {session:#x}")
        if command.verb == "sessions":
            return {"sessions": [{"id": s.id, "timeout_ms": s.timeout_ms} for s in wanted]}
        if command.verb == "delay":
            self._faults.set_delay(session, command.value)
        elif command.verb == "lose":
            self._faults.set_losses(session, command.value)
        for one in wanted:
            if command.verb == "expire":
                self._deliver(self._server.expire_session(one.id, now), None, now)
            elif command.verb == "disconnect" and one.connection is not None:
                self._drop(self._connections[one.connection])
        return {}

    def _client(self, here: _Connection) -> Client:
        session = self._server.find_session(here.session_id)
        timeout_ms = 0 if session is None else session.timeout_ms
        return Client(here.peer, here.session_id, timeout_ms, here.received, here.sent)

    def _view(self) -> View:
        clients = [self._client(here) for here in self._connections.values()]
        return View(self._server, self._settings, clients, self._received, self._sent)
