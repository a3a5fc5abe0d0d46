"""What a Runtime gives to those who talk over a network: streams, listeners, pollers.

A Stream is the part of `socket.socket` that this package uses, so that a real one is a plain
socket and costs nothing more. Every other implementation keeps the names and the errors: OSError
when a connection fails, TimeoutError when a call waited too long, BlockingIOError when a stream
that never waits has nothing to give or no room.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

Address = tuple[str, int]
"""Host and port."""

MORE: Final = socket.MSG_MORE
"""Flag of `Stream.send`: more bytes follow at once, so let both share a segment."""
PEEK: Final = socket.MSG_PEEK
"""Flag of `Stream.recv`: leave the bytes where they are."""

BOTH_WAYS: Final = socket.SHUT_RDWR
"""For `Stream.shutdown`."""


class Stream(Protocol):
    """A connection over which bytes go both ways. `recv` gives b"" once the peer has ended it."""

    def settimeout(self, seconds: float | None, /) -> None:
        """How long each call may wait; 0: not at all, None: without end."""

    def recv(self, size: int, flags: int = ..., /) -> bytes: ...

    def recv_into(self, buffer: bytearray | memoryview, /) -> int:
        """Bytes received into the buffer's start; 0 once the peer has ended the stream."""

    def send(self, data: bytes | bytearray | memoryview, flags: int = ..., /) -> int:
        """How many of the bytes were taken."""

    def sendall(self, data: bytes | bytearray | memoryview, /) -> None:
        """Send all of it, or raise."""

    def shutdown(self, how: int, /) -> None:
        """BOTH_WAYS makes a call that another task waits in return at once."""

    def close(self) -> None: ...


class Connecting(Protocol):
    """A connection on its way, made without waiting. A host may have several addresses, which are
    tried one after the other."""

    @property
    def stream(self) -> Stream:
        """Wait for it with a Poller until it is writable; `finish` may replace it."""

    def finish(self) -> bool:
        """To be called when `stream` is writable. True: it is connected. False: this address
        failed and the next one is being tried. OSError: the last one failed."""

    def close(self) -> None:
        """Give up. Harmless after `finish` was True: the stream is its owner's then."""


class Readiness(NamedTuple):
    """One answer of a Poller. `key` is what the stream was watched with."""

    key: Any
    readable: bool
    writable: bool


class Poller(Protocol):
    """Waits for many streams at once. One task uses it; any may call `wake_up`."""

    def watch(self, stream: Stream, key: object, *, read: bool, write: bool) -> None:
        """Wait for this of the stream, instead of what was said of it before."""

    def forget(self, stream: Stream) -> None:
        """Before it is closed. Nothing if it is not watched."""

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

    def accept(self) -> tuple[Stream, Address]:
        """The next connection and who made it; BlockingIOError if there is none."""

    def close(self) -> None: ...
