"""Streams and listeners of the simulated network, with the errors of real sockets."""

from __future__ import annotations

import errno
import zlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from greenlet import GreenletExit

from kafka08.runtime.disk import File
from kafka08.runtime.transport import Address
from kafka08.simulation.frames import name_of_request, name_of_response
from kafka08.simulation.process import Process
from kafka08.simulation.task import Ticket

if TYPE_CHECKING:
    from kafka08.simulation.network import Network, Pipe
    from kafka08.simulation.polling import Watcher

END: Final = object()
"""An item of a pipe: the sender has closed its direction."""
RESET: Final = object()
"""An item of a pipe: the connection is reset."""


class SimStream:
    """One end of a connection: a `kafka08.runtime.Stream`.

    Each end owns the pipe into which it sends. `_inbox` has the bytes that have arrived. A
    direction is full when pipe and inbox together contain the network's buffer_bytes.
    """

    def __init__(
        self, network: Network, process: Process, address: Address, peer_address: Address
    ) -> None:
        self.address = address
        self.peer_address = peer_address
        self.process = process
        self.is_closed = False
        self.is_connected = False
        self.error: OSError | None = None
        self.watchers: dict[Watcher, bool] = {}
        """Watcher → whether it waits for room too."""
        self._network = network
        self._peer: SimStream | None = None
        self._pipe: Pipe | None = None
        self._inbox = bytearray()
        self._on_its_way = 0
        self.has_ended = False
        """The peer has closed its direction."""
        self._is_shut = False
        self._drops_undelivered = False
        self._timeout: float | None = None
        self._readers: list[Ticket] = []
        self._writers: list[Ticket] = []
        """Those that wait for the connection or for room."""
        network.streams[self] = None

    # For the network

    def join(self, peer: SimStream) -> None:
        """Connect to the other end; this end notices it after a delay."""
        self._peer, peer._peer = peer, self
        self._pipe = self._pipe_to(peer, name_of_request)
        peer._pipe = peer._pipe_to(self, name_of_response)
        peer.is_connected = True
        peer._pipe.put(b"")

    def _pipe_to(self, peer: SimStream, name: Callable[[Any], str]) -> Pipe:
        from kafka08.simulation.network import Pipe

        return Pipe(self._network, self.address[0], peer.address[0], peer.receive, name)

    def fail(self, error: OSError) -> None:
        """The connection broke, or could not be made."""
        if self.is_closed or self.error is not None:
            return
        self.error = error
        self.is_connected = True
        self._notify()

    def receive(self, item: Any) -> None:
        """An item arrives."""
        peer = self._peer
        assert peer is not None
        if isinstance(item, bytes):
            scheduler = self._network.scheduler
            scheduler.trace.message(
                scheduler.now, peer.process.name, self.process.name, zlib.crc32(item)
            )
            peer._on_its_way -= len(item)
            if self.is_closed:
                self._respond_for_a_closed_one(item)
                return
            self._inbox += item
            if self.is_connected:
                self._notify_readers()
                return
            self.is_connected = True
        elif item is RESET:
            self.fail(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))
        else:
            self.has_ended = True
        self._notify()

    def _respond_for_a_closed_one(self, item: bytes) -> None:
        """Bytes arrived for a closed end: its host sends a reset, once it is on."""
        if not item:
            return
        if self._network.is_off(self.address[0]):
            self._network.unheard[self] = None
        else:
            self.respond_with_reset()

    def respond_with_reset(self) -> None:
        """Send what a host sends for bytes of a connection that it does not know."""
        assert self._pipe is not None
        self._pipe.put(RESET)

    def reset(self) -> None:
        """Break the connection, as a firewall does that sends resets to both ends."""
        for end in (self, self._peer):
            if end is not None:
                if end._pipe is not None:
                    end._pipe.is_broken = True
                end.fail(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))

    def go_dark(self) -> None:
        """Lose all bytes in both directions; neither end notices."""
        for end in (self, self._peer):
            if end is not None and end._pipe is not None:
                end._pipe.is_broken = True

    def vanish(self, *, silently: bool) -> None:
        """Its process died. Silently: its host lost power, so the peer does not notice before it
        sends something and the host is on again."""
        if self.is_closed:
            return
        if not silently and self._pipe is not None:
            if self._drops_undelivered:
                self._pipe.drop_undelivered()
            self._pipe.put(RESET if self._inbox or self._drops_undelivered else END)
        elif self._pipe is not None:
            assert self._peer is not None, "it has a pipe"
            self._pipe.is_broken = True
            self._pipe = self._pipe_to(self._peer, lambda _: "")
            if not self._peer.is_connected:
                self._network.dial_again(self._peer)
        self._forget()

    # Stream

    def settimeout(self, seconds: float | None, /) -> None:
        self._timeout = seconds

    def peek(self) -> bool:
        if self.is_closed or not self._inbox or self.process.is_dead:
            self._await_bytes()
        return bool(self._inbox)

    def recv_into(self, buffer: bytearray | memoryview, /) -> int:
        if self.is_closed or not self._inbox or self.process.is_dead:
            self._await_bytes()
        count = min(len(buffer), len(self._inbox))
        buffer[:count] = self._inbox[:count]
        self._take(count)
        return count

    def send(self, data: bytes | bytearray | memoryview, /) -> int:
        room = self._await_room()
        return self._put(data, room) if len(data) else 0

    send_more = send

    def send_file(self, file: File, position: int, size: int, /) -> int:
        self._await_room()
        data = file.pread(size, position)
        return self.send(data) if data else 0

    def has_finished(self) -> bool:
        return self.has_ended

    def sendall(self, data: bytes | bytearray | memoryview, /) -> None:
        rest = data
        while len(rest):
            count = self._put(rest, self._await_room())
            rest = memoryview(rest).cast("B")[count:]

    def drop_undelivered(self, drops: bool, /) -> None:
        self._drops_undelivered = drops

    def abort(self) -> None:
        self._check_open()
        if self._peer is None or self.error is not None:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        if not self._is_shut:
            self._is_shut = self.has_ended = True
            assert self._pipe is not None
            self._pipe.put(END)
            self._notify()

    def close(self) -> None:
        if self.is_closed:
            return
        if self._pipe is not None and self.error is None:
            if self._drops_undelivered:
                self._pipe.drop_undelivered()
            if self._inbox or self._drops_undelivered:
                self._pipe.put(RESET)
            elif not self._is_shut:
                self._pipe.put(END)
        self._forget()

    # Waiting

    @property
    def is_readable(self) -> bool:
        return bool(self._inbox) or self.has_ended or self.error is not None

    @property
    def is_writable(self) -> bool:
        return self.is_connected and (
            self.error is not None or self._is_shut or self._peer is None or self._room() > 0
        )

    def await_connection(self, timeout: float | None) -> None:
        """Wait until it is connected. Raises the OSError of the failure, or TimeoutError."""
        if not self.is_connected:
            self._wait_for("is_connected", self._writers, timeout)
        if self.error is not None:
            raise self.error

    def _room(self) -> int:
        assert self._peer is not None
        peer = self._peer
        return self._network.settings.buffer_bytes - self._on_its_way - len(peer._inbox)

    def _await_bytes(self) -> None:
        """Wait until there are bytes, or the peer has closed its direction."""
        self._check_open()
        if not self.is_readable:
            self._wait_for("is_readable", self._readers, self._timeout)
            self._check_open()
        if self.error is not None and not self._inbox:
            raise self.error

    def _await_room(self) -> int:
        """Wait until bytes can be sent. Returns how many, at least 1."""
        self._check_open()
        if not self.is_writable:
            self._wait_for("is_writable", self._writers, self._timeout)
            self._check_open()
        if self.error is not None:
            raise self.error
        if self._is_shut or self._peer is None:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        return self._room()

    def _wait_for(self, wanted: str, waiters: list[Ticket], timeout: float | None) -> None:
        if timeout == 0:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        end = None if timeout is None else self.process.monotonic() + timeout
        while not getattr(self, wanted) and not self.is_closed:
            left = None if end is None else end - self.process.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError("timed out")
            self.process.wait(waiters, left)

    def _put(self, data: bytes | bytearray | memoryview, room: int) -> int:
        """Send as much as there is room for, at least a byte. Returns how much."""
        assert self._pipe is not None
        if isinstance(data, memoryview):
            data = data.cast("B")
        count = first = min(len(data), room)
        network = self._network
        if network.settings.piece_share:
            count = network.piece(count)
            first = network.piece(count)
        self._on_its_way += count
        self._pipe.put(bytes(data[:first]))
        if first < count:
            self._pipe.put(bytes(data[first:count]))
        return count

    def _take(self, count: int) -> None:
        if count:
            del self._inbox[:count]
            if self._peer is not None:
                self._peer._notify_writers()

    def _notify(self) -> None:
        """Notify all waiters and watchers that the stream may be ready."""
        wake_all(self._writers)
        self._notify_readers()

    def _notify_readers(self) -> None:
        if self._readers:
            wake_all(self._readers)
        if self.watchers:
            for watcher in list(self.watchers):
                watcher.notify(self)

    def _notify_writers(self) -> None:
        if self._writers:
            wake_all(self._writers)
        watchers = self.watchers
        if True in watchers.values():
            for watcher in [one for one, for_writing in watchers.items() if for_writing]:
                watcher.notify(self)

    def _check_open(self) -> None:
        if self.process.is_dead:
            raise GreenletExit
        if self.is_closed:
            raise OSError(errno.EBADF, "Bad file descriptor")

    def _forget(self) -> None:
        self.is_closed = True
        self._inbox.clear()
        self.watchers.clear()
        self._network.streams.pop(self, None)
        wake_all(self._readers)
        wake_all(self._writers)


def wake_all(waiters: list[Ticket]) -> None:
    """End these waits, and empty the list."""
    tickets = waiters[:]
    waiters.clear()
    for ticket in tickets:
        ticket.wake()


class SimListener:
    """A `kafka08.runtime.Listener`."""

    def __init__(self, network: Network, process: Process, address: Address) -> None:
        self.process = process
        self.port = address[1]
        self.watchers: dict[Watcher, bool] = {}
        self._address = address
        self._network = network
        self._backlog: deque[SimStream] = deque()

    @property
    def is_readable(self) -> bool:
        return bool(self._backlog)

    @property
    def is_writable(self) -> bool:
        return False

    def arrive(self, stream: SimStream) -> None:
        """A peer has connected."""
        self._backlog.append(stream)
        for watcher in list(self.watchers):
            watcher.notify(self)

    def accept(self) -> tuple[SimStream, Address]:
        while self._backlog:
            self._network.take_descriptor(self._address[0])
            stream = self._backlog.popleft()
            if not stream.is_closed:
                return stream, stream.peer_address
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    def close(self) -> None:
        self.vanish(silently=False)

    def vanish(self, *, silently: bool) -> None:
        self._network.listeners.pop(self._address, None)
        self.watchers.clear()
        while self._backlog:
            self._backlog.popleft().vanish(silently=silently)
