"""Streams, listeners and pollers on the system's sockets."""

from __future__ import annotations

import errno
import logging
import os
import selectors
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any, Final

from kafka08.runtime.transport import Address, Buffers, Readiness

logger = logging.getLogger(__name__)

UNDER_WAY: Final = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK})
BACKLOG: Final = 1024
RESERVED_MAX: Final = 256
RESERVED_PART: Final = 16
"""Of the process's descriptors this part, and at most RESERVED_MAX, is never an accepted
connection's."""
RESERVED_TEXT: Final = "Too many open files for another connection"
_WAKE_BYTES: Final = 4096
_CLOSE_WAIT: Final = 8
"""The state of a TCP connection whose peer has closed its side."""

Connect = Callable[..., socket.socket]
"""`socket.create_connection`, or gevent's."""


def connect_socket(
    connect: Connect, address: Address, timeout: float | None, buffers: Buffers
) -> socket.socket:
    """A connected socket. OSError; UnicodeError for an impossible host name.

    A name below .localhost that cannot be resolved means this machine (RFC 6761, section 6.3):
    docker-compose.yml gives brokers such names, which its network resolves and few hosts do.
    """
    try:
        connected = connect(address, timeout)
    except socket.gaierror:
        if not address[0].endswith(".localhost"):
            raise
        connected = connect(("127.0.0.1", address[1]), timeout)
    try:
        set_options(connected, buffers)
    except OSError:
        connected.close()
        raise
    return connected


def set_options(sock: socket.socket, buffers: Buffers) -> None:
    """Set the options of every Kafka connection: no delay, keep-alive, and these buffer sizes."""
    if sock.family in {socket.AF_INET, socket.AF_INET6}:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if buffers.receive > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers.receive)
    if buffers.send > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers.send)


class OnSocket:
    """The calls that every Stream on a connected socket shares."""

    __slots__ = ("_socket",)

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def fileno(self) -> int:
        return self._socket.fileno()

    def peek(self) -> bool:
        return bool(self._socket.recv(1, socket.MSG_PEEK))

    def drop_undelivered(self, drops: bool, /) -> None:
        linger = struct.pack("ii", drops, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    def abort(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)


class WaitingStream(OnSocket):
    """A Stream on a socket that never blocks: where that has no bytes, or no room, one task lets
    others run. `_readable` and `_writable` are what `_wait` waits for."""

    _readable: Any
    _writable: Any

    def __init__(self, connected: socket.socket) -> None:
        super().__init__(connected)
        connected.setblocking(False)
        self._seconds: float | None = None
        self._has_sent = False
        """Bytes were sent since something was last received."""

    def settimeout(self, seconds: float | None, /) -> None:
        self._seconds = seconds

    def peek(self) -> bool:
        while True:
            try:
                return super().peek()
            except BlockingIOError:
                self._wait(self._readable)

    def recv_into(self, buffer: bytearray | memoryview, /) -> int:
        if self._has_sent and self._seconds != 0:
            # The response is not there yet: a first recv would only cost a system call.
            self._has_sent = False
            self._wait(self._readable)
        while True:
            try:
                return self._socket.recv_into(buffer)
            except BlockingIOError:
                self._wait(self._readable)

    def send(self, data: bytes | bytearray | memoryview, /) -> int:
        while True:
            try:
                return self._socket.send(data)
            except BlockingIOError:
                self._wait(self._writable)

    def sendall(self, data: bytes | bytearray | memoryview, /) -> None:
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        self._has_sent = True
        if sent < len(data):
            rest = memoryview(data)[sent:]
            while rest:
                rest = rest[self.send(rest) :]

    def _wait(self, watcher: Any) -> None:
        """Wait until the socket is ready. TimeoutError after the timeout; with a timeout of 0 the
        BlockingIOError that is being handled."""
        raise NotImplementedError


class SocketStream(OnSocket):
    """An AcceptedStream on a connected socket. The calls of each message are the socket's own."""

    __slots__ = ("close", "recv_into", "send", "sendall", "settimeout")

    def __init__(self, connected: socket.socket) -> None:
        super().__init__(connected)
        self.settimeout = connected.settimeout
        self.recv_into = connected.recv_into
        self.send = connected.send
        self.sendall = connected.sendall
        self.close = connected.close

    def send_more(self, data: bytes | bytearray | memoryview, /) -> int:
        return self._socket.send(data, socket.MSG_MORE)

    def send_file(self, file: Any, position: int, size: int, /) -> int:
        return os.sendfile(self._socket.fileno(), file.fd, position, size)

    def has_finished(self) -> bool:
        if sys.platform != "linux":
            return False
        try:
            [state] = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
        except OSError:
            return False
        return state == _CLOSE_WAIT


class SocketConnecting:
    """A `Connecting` on non-blocking sockets."""

    stream: SocketStream

    def __init__(
        self,
        address: Address,
        buffers: Buffers,
        targets: Iterable[tuple[int, Any]] | None = None,
    ) -> None:
        """`targets`: the addresses of the host, if they are known; else they are looked up."""
        self._buffers = buffers
        self._targets = deque(resolve(address) if targets is None else targets)
        self._connected = False
        self._try_next(None)

    def _try_next(self, failed: OSError | None) -> None:
        while self._targets:
            family, target = self._targets.popleft()
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.setblocking(False)
                set_options(sock, self._buffers)
                code = sock.connect_ex(target)
            except OSError as error:
                sock.close()
                failed = error
                continue
            if code in UNDER_WAY:
                self._socket, self.stream = sock, SocketStream(sock)
                return
            sock.close()
            failed = OSError(code, os.strerror(code))
        raise failed or OSError("the host has no address")

    def finish(self) -> bool:
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self.stream.close()
            self._try_next(OSError(code, os.strerror(code)))
            return False
        self._connected = True
        return True

    def detach(self) -> socket.socket:
        """The socket, once it is connected, for another stream."""
        return self._socket

    def close(self) -> None:
        if not self._connected:
            self.stream.close()


def is_loopback(host: str) -> bool:
    """Whether it is an address of this machine for itself, or the name of one."""
    try:
        return ip_address(host).is_loopback
    except ValueError:  # another name may be that of any machine, also `127.0.0.1.example.org`
        return host == "localhost"


def is_address(host: str) -> bool:
    """Whether it is an address, not a name that must be looked up."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def resolve(address: Address) -> list[tuple[int, Any]]:
    """(family, socket address) of each address of a host; `.localhost` as in `connect_socket`."""
    host, port = address
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror:
        if not host.endswith(".localhost"):
            raise
        found = socket.getaddrinfo("127.0.0.1", port, type=socket.SOCK_STREAM)
    return [(family, target) for family, _, _, _, target in found]


def first_address(host: str) -> str:
    """The first IPv4 address of a host; if it has none, its first IPv6 address. OSError."""
    found = resolve((host, 0))
    first = next((target for family, target in found if family == socket.AF_INET), found[0][1])
    return host_of(first)


def host_of(address: Any) -> str:
    """The host of a socket address: "10.0.0.1" also if it is mapped to IPv6, "::ffff:10.0.0.1"."""
    host: str = address[0]
    mapped = host.removeprefix("::ffff:")
    return mapped if "." in mapped else host


class SocketPoller:
    """A `Poller` on the system's best selector; a socket pair ends its wait."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, self._woken)

    def watch(self, stream: Any, key: object, *, read: bool, write: bool) -> None:
        mask = selectors.EVENT_READ * read | selectors.EVENT_WRITE * write
        known = self._selector.get_map().get(stream)
        if not mask:
            self.forget(stream)
        elif known is None:
            self._selector.register(stream, mask, key)
        elif known.events != mask:
            self._selector.modify(stream, mask, key)

    def forget(self, stream: Any) -> None:
        if stream.fileno() >= 0 and stream in self._selector.get_map():
            self._selector.unregister(stream)

    def fileno(self) -> int:
        """Readable while a stream is ready."""
        descriptor: int = self._selector.fileno()
        return descriptor

    def poll(self, timeout: float | None) -> list[Readiness]:
        ready = []
        for entry, mask in self._selector.select(timeout):
            if entry.data is self._woken:
                self._swallow_wake_ups()
                continue
            readable, writable = mask & selectors.EVENT_READ, mask & selectors.EVENT_WRITE
            ready.append(Readiness(entry.data, bool(readable), bool(writable)))
        return ready

    def wake_up(self) -> None:
        try:
            self._waker.send(b"\0")
        except BlockingIOError:
            pass  # as good: it has not yet read the earlier ones
        except OSError as error:
            logger.debug("the poller was closed: %s", error)

    def close(self) -> None:
        self._selector.close()
        self._waker.close()
        self._woken.close()

    def _swallow_wake_ups(self) -> None:
        try:
            while len(self._woken.recv(_WAKE_BYTES)) == _WAKE_BYTES:
                pass
        except BlockingIOError:
            pass


def connection_descriptors_end() -> int:
    """The first descriptor that an accepted connection must not have: those from it on are for what
    a broker cannot refuse, its logs and its connection to ZooKeeper."""
    import resource  # not above: clients run where it does not exist

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return limit - min(RESERVED_MAX, limit // RESERVED_PART)


class SocketListener:
    """A `Listener` on a socket of the given class: gevent needs the unpatched one.

    Without a host it takes connections to all addresses of this machine, IPv4 and IPv6.
    """

    def __init__(
        self, socket_class: type[socket.socket], host: str | None, port: int, buffers: Buffers
    ) -> None:
        wildcard = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
        family, _, _, _, address = socket.getaddrinfo(
            host or wildcard, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self.socket = socket_class(family, socket.SOCK_STREAM)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            if buffers.receive > 0:
                # Before `listen`: it fixes the window of accepted sockets.
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers.receive)
            self.socket.bind(address)
            self.socket.listen(BACKLOG)
        except OSError:
            self.socket.close()
            raise
        self.socket.setblocking(False)
        self.port: int = self.socket.getsockname()[1]
        self._socket_class = socket_class
        self._buffers = Buffers(send=buffers.send)
        self._end = connection_descriptors_end()

    def accept(self) -> tuple[SocketStream, Address]:
        # As socket.accept does, but in the class that was given: a patched one costs each call a
        # Python frame.
        descriptor, address = self.socket._accept()  # type: ignore[attr-defined]
        accepted = self._socket_class(fileno=descriptor)
        if descriptor >= self._end:
            # The system gives the lowest free number: all below are in use.
            accepted.close()
            raise OSError(errno.EMFILE, RESERVED_TEXT)
        accepted.setblocking(False)
        set_options(accepted, self._buffers)
        return SocketStream(accepted), (host_of(address), address[1])

    def close(self) -> None:
        self.socket.close()
