"""Runs a `WireServer`: sockets, time and its journal, in one thread.

All that arrived at once is applied, its changes are written to the journal by one call, and then
the replies are sent. A client that does not read is read no more, and closed at last.
"""

from __future__ import annotations

import selectors
import socket
import time
from dataclasses import dataclass, field
from typing import Final, NoReturn

from kafka08.zk.model.server import Instant
from kafka08.zk.server.journal import Journal
from kafka08.zk.server.wire_server import WireServer

RECEIVE_BYTES: Final = 64 * 1024
UNSENT_BYTES_MAX: Final = 1 << 20
"""A client with more than that unsent is not read."""
UNSENT_BYTES_LIMIT: Final = 64 << 20
"""One with more than that (of events) is closed."""
BACKLOG: Final = 512
ACCEPT_PAUSE_MS: Final = 100
"""Without a free descriptor the listener would be ready again and again."""


@dataclass(slots=True)
class _Connected:
    number: int
    socket: socket.socket
    unsent: bytearray = field(default_factory=bytearray)
    is_last: bool = False
    events: int = selectors.EVENT_READ


class Driver:
    """Serves the clients of `listener` until `run` is interrupted by an exception."""

    def __init__(self, listener: socket.socket, wire: WireServer, journal: Journal | None) -> None:
        self._listener = listener
        self._wire = wire
        self._journal = journal
        self._selector = selectors.DefaultSelector()
        self._connected: dict[int, _Connected] = {}
        self._next_number = 1
        self._is_accepting = False
        self._accept_again_ms = 0
        listener.setblocking(False)
        self._accept_again()

    def run(self) -> NoReturn:
        """Serve until a signal's handler raises, say."""
        while True:
            self.run_once()

    def run_once(self) -> None:
        """Wait until something happens or is due, and do it."""
        seconds = (self._wire.next_deadline_ms() - instant().elapsed_ms) / 1000
        ready = self._selector.select(max(seconds, 0))
        now = instant()
        for key, events in ready:
            if key.data is None:
                self._accept(now)
            elif key.data.number in self._connected:
                # An earlier event of this round may have closed it.
                if events & selectors.EVENT_WRITE:
                    self._send(key.data, b"")
                if events & selectors.EVENT_READ:
                    self._receive(key.data, now)
        self._wire.tick(now)
        if now.elapsed_ms >= self._accept_again_ms:
            self._accept_again()
        if self._journal is not None:
            self._journal.flush()
        for number, data, is_last in self._wire.take_outgoing():
            here = self._connected[number]
            here.is_last = is_last
            self._send(here, data)

    def close(self) -> None:
        """Close all connections, as the end of the process would."""
        for here in list(self._connected.values()):
            here.socket.close()
        self._listener.close()
        self._selector.close()

    def _accept(self, now: Instant) -> None:
        try:
            accepted, address = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:
            self._selector.unregister(self._listener)
            self._is_accepting = False
            self._accept_again_ms = now.elapsed_ms + ACCEPT_PAUSE_MS
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        here = _Connected(self._next_number, accepted)
        self._next_number += 1
        self._connected[here.number] = here
        self._selector.register(accepted, selectors.EVENT_READ, here)
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        self._wire.open(here.number, f"{host}:{address[1]}", now)

    def _accept_again(self) -> None:
        if not self._is_accepting:
            self._is_accepting = True
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _receive(self, here: _Connected, now: Instant) -> None:
        try:
            data = here.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._wire.receive(here.number, data, now)
        else:
            self._wire.disconnect(here.number)
            self._forget(here)

    def _send(self, here: _Connected, data: bytes) -> None:
        """Send what is unsent and `data`, as far as the socket takes it."""
        here.unsent += data
        try:
            while here.unsent:
                del here.unsent[: here.socket.send(here.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            here.unsent.clear()  # the client is gone; `recv` says so too
        is_flooded = len(here.unsent) > UNSENT_BYTES_LIMIT
        if is_flooded or (here.is_last and not here.unsent):
            self._wire.disconnect(here.number)
            self._forget(here)
        else:
            self._watch(here)

    def _watch(self, here: _Connected) -> None:
        events = selectors.EVENT_WRITE if here.unsent else 0
        if len(here.unsent) <= UNSENT_BYTES_MAX and not here.is_last:
            events |= selectors.EVENT_READ
        if events != here.events:
            here.events = events
            self._selector.modify(here.socket, events, here)

    def _forget(self, here: _Connected) -> None:
        del self._connected[here.number]
        self._selector.unregister(here.socket)
        here.socket.close()


def instant() -> Instant:
    """The time now."""
    return Instant(int(time.monotonic() * 1000), int(time.time() * 1000))


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0: any. OSError if there can be none."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
