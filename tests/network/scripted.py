"""Brokers in memory: a script says what each request is answered with. No socket, no waiting.

    network = ScriptedNetwork()
    network.broker("b1", 9092, lambda request: MetadataResponse([], []))
    Connection("b1", 9092, runtime=network.runtime())

A script returns a Response, None for a request without one (acks 0), bytes to be sent as they
are, or raises: Hangup closes the connection, after the bytes that it carries.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import cast

from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.levels import Level
from kafka08.protocol import codec
from kafka08.protocol.frame import SIZE
from kafka08.protocol.served import SERVED
from kafka08.protocol.types import Request, Response
from kafka08.runtime.threads import ThreadRuntime

Script = Callable[[Request], Response | bytes | None]
Address = tuple[str, int]


class Hangup(Exception):
    """The broker sends these bytes and closes."""

    def __init__(self, data: bytes = b"") -> None:
        super().__init__()
        self.data = data


class ScriptedNetwork:
    """The addresses that answer. `opened` has the connections made, `asked` the requests, read as
    brokers of `level` read them."""

    def __init__(self, chunk: int | None = None, level: Level = Level.V0_8_2) -> None:
        self.served = SERVED[level]
        self._scripts: dict[Address, Script] = {}
        self._chunk = chunk
        self.opened: list[Address] = []
        self.asked: list[tuple[Address, Request]] = []
        self.sockets: list[ScriptedSocket] = []

    def broker(self, host: str, port: int, script: Script) -> None:
        """Answer at that address by `script` from now on."""
        self._scripts[host, port] = script

    def remove(self, host: str, port: int) -> None:
        """The broker dies: its connections break and no new one is made."""
        del self._scripts[host, port]
        for sock in self.sockets:
            if sock.address == (host, port):
                sock.broken = True

    def requests(self, kind: type[Request]) -> list[Request]:
        return [request for _, request in self.asked if isinstance(request, kind)]

    def runtime(self, clock: Clock = SYSTEM_CLOCK) -> ThreadRuntime:
        """For a client of these brokers."""
        return ThreadRuntime(connect=self.connect, clock=clock)

    def connect(self, address: Address, timeout: float) -> socket.socket:
        assert timeout > 0
        if address not in self._scripts:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        self.opened.append(address)
        made = ScriptedSocket(self, address, self._scripts[address], self._chunk)
        self.sockets.append(made)
        return cast(socket.socket, made)


class ScriptedSocket:
    """The part of socket.socket that a Connection uses. At most `chunk` bytes come at a time.

    Reading when there is nothing times out at once, or sees the end if the script has hung up.
    """

    family = socket.AF_UNIX

    def __init__(
        self, network: ScriptedNetwork, address: Address, script: Script, chunk: int | None
    ) -> None:
        self.address = address
        self.broken = False
        self.closed = False
        self._network = network
        self._script = script
        self._chunk = chunk
        self._sent = bytearray()
        self._coming = bytearray()
        self._hung_up = False
        self._timeout: float | None = None

    def hang_up(self) -> None:
        """The broker closes the connection after what it has sent."""
        self._hung_up = True

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds

    def setsockopt(self, *_: int) -> None:
        pass

    def sendall(self, data: bytes) -> None:
        if self.broken or self._hung_up:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        self._sent += data
        while len(self._sent) >= SIZE.size:
            (size,) = SIZE.unpack_from(self._sent)
            end = SIZE.size + size
            if len(self._sent) < end:
                return
            payload = bytes(self._sent[SIZE.size : end])
            del self._sent[:end]
            self._respond(payload)

    def recv_into(self, target: memoryview) -> int:
        if self.broken:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        if not self._coming:
            if self._hung_up:
                return 0
            raise TimeoutError("timed out")
        size = min(len(target), len(self._coming), self._chunk or len(target))
        target[:size] = self._coming[:size]
        del self._coming[:size]
        return size

    send = sendall

    def fileno(self) -> int:
        return -1

    def recv(self, size: int, flags: int) -> bytes:
        """Only as the look ahead without waiting."""
        assert (size, flags, self._timeout) == (1, socket.MSG_PEEK, 0)
        if not (self._coming or self._hung_up or self.broken):
            raise BlockingIOError(errno.EAGAIN, "would block")
        return bytes(self._coming[:1])

    def shutdown(self, _: int) -> None:
        self.broken = True

    def close(self) -> None:
        self.closed = True

    def _respond(self, payload: bytes) -> None:
        header, request = codec.decode_request(payload, self._network.served)
        self._network.asked.append((self.address, request))
        try:
            response = self._script(request)
        except Hangup as hangup:
            self._coming += hangup.data
            self._hung_up = True
            return
        if isinstance(response, bytes):
            self._coming += response
        elif response is not None:
            self._coming += codec.encode_response(response, header.correlation_id, request.version)
