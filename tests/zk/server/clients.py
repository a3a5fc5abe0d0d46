"""Clients of a `WireServer` without sockets: bytes in and out, with a clock that the test sets."""

from __future__ import annotations

import json
import struct
from typing import Any

from kafka08.zk.model.messages import (
    ConnectReply,
    ConnectRequest,
    FromServer,
    Request,
)
from kafka08.zk.model.server import Instant, Server
from kafka08.zk.server.wire_server import WireServer
from kafka08.zk.server.words import Settings
from tests.zk.model.wire import decode, decode_connect, encode, encode_connect

TICK_MS = 500


def framed(record: bytes) -> bytes:
    return struct.pack(">i", len(record)) + record


class World:
    """A server, its clients and the time."""

    def __init__(self, server: Server | None = None) -> None:
        self.server = server or Server(tick_ms=TICK_MS)
        self.wire = WireServer(self.server, Settings("127.0.0.1", 2181, "/data", TICK_MS, 60_000))
        self.elapsed_ms = 0
        self.clients: dict[int, Client] = {}

    def now(self) -> Instant:
        return Instant(self.elapsed_ms, 1_400_000_000_000 + self.elapsed_ms)

    def client(self) -> Client:
        number = len(self.clients) + 1
        self.wire.open(number, f"127.0.0.1:{number}", self.now())
        client = self.clients[number] = Client(self, number)
        return client

    def advance(self, elapsed_ms: int) -> None:
        """Time passes, deadline by deadline."""
        end = self.elapsed_ms + elapsed_ms
        while (due := self.wire.next_deadline_ms()) <= end:
            self.elapsed_ms = max(self.elapsed_ms, due)
            self.wire.tick(self.now())
            self.deliver()
        self.elapsed_ms = end

    def deliver(self) -> None:
        for number, data, is_last in self.wire.take_outgoing():
            self.clients[number].got += data
            self.clients[number].is_closed |= is_last

    def order(self, **command: Any) -> dict[str, Any]:
        client = self.client()
        client.write(b"ctrl" + json.dumps(command).encode() + b"\n")
        assert client.is_closed
        response: dict[str, Any] = json.loads(client.got)
        return response


class Client:
    def __init__(self, world: World, number: int) -> None:
        self.number = number
        self.got = bytearray()
        self.is_closed = False
        self.session = ConnectReply(0, 0, b"")
        self._world = world
        self._outstanding: list[tuple[int, Request]] = []
        self._xid = 0

    def write(self, data: bytes) -> None:
        self._world.wire.receive(self.number, data, self._world.now())
        self._world.deliver()

    def connect(self, request: ConnectRequest | None = None) -> ConnectReply:
        self.write(framed(encode_connect(request or ConnectRequest())))
        self.session = decode_connect(self._take())
        return self.session

    def send(self, *requests: Request) -> None:
        records = []
        for request in requests:
            self._xid += 1
            self._outstanding.append((self._xid, request))
            records.append(framed(encode(self._xid, request)))
        self.write(b"".join(records))

    def ask(self, *requests: Request) -> list[FromServer]:
        """All that arrives after these."""
        self.send(*requests)
        return self.received()

    def received(self) -> list[FromServer]:
        found: list[FromServer] = []
        while self.got:
            found.append(decode(self._take(), self._outstanding))
        return found

    def _take(self) -> bytes:
        [length] = struct.unpack_from(">i", self.got)
        record = bytes(self.got[4 : 4 + length])
        del self.got[: 4 + length]
        return record
