"""Streams, listeners and pollers: the network, as a Runtime offers it.

The names and errors of a Stream are those of `socket.socket`: OSError when a connection fails,
TimeoutError after the timeout of a call, BlockingIOError when a stream that never waits has no
bytes to read or no room to write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from kafka08.runtime.disk import File

Address = tuple[str, int]
"""Host and port."""


class Buffers(NamedTuple):
    """Sizes of a socket's buffers in bytes; 0 and less: the system's own."""

    receive: int = 0
    send: int = 0


class Stream(Protocol):
    """A connection for bytes in both directions."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Limit the wait of each call; 0: no wait, None: no limit."""

    def peek(self) -> bool:
        """Wait for bytes, and leave them. False once the peer has closed the stream."""

    def recv_into(self, buffer: bytearray | memoryview, /) -> int:
        """Receive into the start of the buffer. Returns the number of bytes, 0 once the peer has
        closed the stream."""

    def send(self, data: bytes | bytearray | memoryview, /) -> int:
        """Returns the number of bytes that were taken."""

    def sendall(self, data: bytes | bytearray | memoryview, /) -> None:
        """Send all of it, or raise."""

    def drop_undelivered(self, drops: bool, /) -> None:
        """True: when the stream is closed, or its process dies, the system drops the bytes that the
        peer's host has not acknowledged, and resets the connection. False, the default: the system
        goes on sending them for minutes."""

    def abort(self) -> None:
        """End the wait of another task's call, and all later ones; `close` is still due."""

    def close(self) -> None: ...


class AcceptedStream(Stream, Protocol):
    """A stream of a Listener. It never waits."""

    def send_more(self, data: bytes | bytearray | memoryview, /) -> int:
        """`send`; more bytes follow at once, so both may share a segment."""

    def send_file(self, file: File, position: int, size: int, /) -> int:
        """Send bytes of a file without reading them. Returns the number of bytes sent, 0 if the
        file ends at `position`."""

    def has_finished(self) -> bool:
        """Whether the peer has closed its side, although bytes of it wait to be read, which hide
        that from a read. False where the system does not say it."""


class Connecting(Protocol):
    """A connection that is being made, without waiting. The addresses of a host are tried one after
    the other."""

    @property
    def stream(self) -> Stream:
        """Wait for it with a Poller until it is writable; `finish` may replace it."""

    def finish(self) -> bool:
        """Call it when `stream` is writable. True: it is connected. False: this address
        failed and the next one is being tried. OSError: the last one failed."""

    def close(self) -> None:
        """Give up. Does nothing after `finish` returned True: then the caller owns the stream."""


class Readiness(NamedTuple):
    """A stream that is ready, by the `key` of its `watch`."""

    key: Any
    readable: bool
    writable: bool


class Poller(Protocol):
    """Waits for many streams at once. One task uses it; any may call `wake_up`."""

    def watch(self, stream: Stream, key: object, *, read: bool, write: bool) -> None:
        """Wait until the stream is readable or writable; replaces an earlier `watch` of it."""

    def forget(self, stream: Stream) -> None:
        """End the watch, before the stream is closed. Does nothing for an unwatched stream."""

    def poll(self, timeout: float | None) -> list[Readiness]:
        """Streams that are ready, after up to `timeout` seconds; none after `wake_up`."""

    def wake_up(self) -> None:
        """End the `poll` that waits, or the next one, at once."""

    def close(self) -> None: ...


class IoWatch(Protocol):
    """A call that the event loop makes each time that a stream is ready."""

    @property
    def active(self) -> bool: ...

    def start(self, call: Callable[[], object], /) -> None: ...

    def stop(self) -> None:
        """Make no more calls until the next `start`."""

    def close(self) -> None: ...


class Listener(Protocol):
    """A listening address. Streams that it accepts never wait."""

    @property
    def port(self) -> int: ...

    def accept(self) -> tuple[AcceptedStream, Address]:
        """The next connection and its peer's address; BlockingIOError if there is none. OSError: it
        was not accepted, or closed at once because this process has too few descriptors left."""

    def close(self) -> None: ...
