"""Frames: `size:i32`, then that many bytes. Splits bytes into payloads; no socket here.

A size that is not positive, or above the limit, is a ProtocolError before anything is allocated.
After it the connection is unusable, since the start of the next frame is unknown. Source:
kafka.network.BoundedByteBufferReceive 0.8.2.2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from kafka08.errors import ProtocolError
from kafka08.protocol import growing_buffer
from kafka08.protocol.growing_buffer import GrowingBuffer
from kafka08.protocol.types import Buffer

SIZE: Final = struct.Struct(">i")

TLS_RECORDS: Final = (b"\x16\x03", b"\x15\x03")
"""How a TLS handshake and a TLS alert begin."""
HTTP_WORDS: Final = (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"CONN", b"HTTP")

BUFFER_BYTES: Final = 64 * 1024
"""Room that a reader starts with."""


class TlsRecord(ProtocolError):
    """The peer speaks TLS."""


class FrameTooLarge(ProtocolError):
    """The peer announces more than this side takes."""


def frame_size(
    prefix: Buffer | GrowingBuffer, max_size: int, position: int = 0, *, least: int = 1
) -> int:
    """The payload size that the four bytes at `position` announce; ProtocolError if it is below
    `least` or above `max_size`."""
    size: int = SIZE.unpack_from(prefix, position)[0]
    if size < least:
        raise ProtocolError(f"{size} is not a valid frame size")
    if size > max_size:
        first = SIZE.pack(size)
        kind = TlsRecord if first[:2] in TLS_RECORDS else FrameTooLarge
        raise kind(
            f"a frame of {size} bytes is larger than the maximum of {max_size}{foreign(first)}"
        )
    return size


def foreign(first: bytes) -> str:
    """The protocol of a frame that begins with these four bytes, for the end of an error."""
    if first[:2] in TLS_RECORDS:
        return ". It looks like TLS: here is PLAINTEXT (security.protocol)"
    if first in HTTP_WORDS:
        return ". It looks like HTTP: here is Kafka's protocol"
    return ""


class BufferPool:
    """Buffers that readers share: a reader takes one when its socket is readable, and returns it
    when its bytes are processed, so idle connections hold none.

    Keeps at most `kept_bytes_max` bytes for reuse, and frees other returned buffers.
    """

    def __init__(self, buffer_bytes: int = BUFFER_BYTES, kept_bytes_max: int = 16 << 20) -> None:
        self._buffer_bytes = buffer_bytes
        self._kept_bytes_max = kept_bytes_max
        self._kept: list[bytearray] = []
        self.kept_bytes = 0

    def take(self, size: int = 0) -> bytearray:
        """A buffer of at least `size` bytes, with the bytes of its last user."""
        kept = self._kept
        for index in range(-1, -1 - len(kept), -1):  # the last one may be in the cache
            if len(kept[index]) >= size:
                buffer = kept.pop(index)
                self.kept_bytes -= len(buffer)
                return buffer
        return bytearray(max(size, self._buffer_bytes))

    def give(self, buffer: bytearray) -> None:
        """Return a buffer; no view of it may be used any more."""
        if self.kept_bytes + len(buffer) <= self._kept_bytes_max:
            self._kept.append(buffer)
            self.kept_bytes += len(buffer)


class FrameReader:
    """Splits a stream of bytes into the payloads of its frames.

    A server receives straight into the reader's buffer:

        reader.advance(sock.recv_into(reader.buffer()))
        for payload in reader.payloads():
            ...                                 # may stop, and continue with reader.payloads()
        reader.release()                        # no references to the payloads remain

    A payload is a writable memoryview into the buffer (offsets are assigned in place). It is valid
    until the next `buffer()`, `release()` or `feed()`, so do not call them while a request still
    refers to its payload. The buffer comes from `pool` before the first byte arrives, and returns
    there at `release()` unless it holds part of a frame. A frame above growing_buffer.FIRST_BYTES
    gets a GrowingBuffer: no byte of it moves more than once, and its size alone takes little
    memory.
    """

    def __init__(self, max_size: int, pool: BufferPool | None = None) -> None:
        """`max_size` is the largest payload accepted, in bytes (socket.request.max.bytes)."""
        self._max_size = max_size
        self.least = 1
        """The smallest payload accepted."""
        self._pool = BufferPool() if pool is None else pool
        self._buffer: bytearray | GrowingBuffer | None = None
        self._room: memoryview | None = None
        """The view of a GrowingBuffer from `buffer()`; it cannot grow before its release."""
        self._start = 0
        self._end = 0
        """Received bytes that are not yet returned as payloads: buffer[start:end]."""

    @property
    def pending_bytes(self) -> int:
        """Number of received bytes that are not yet returned as payloads."""
        return self._end - self._start

    def buffer(self) -> memoryview:
        """The buffer to receive into; never empty. Invalidates all payloads; take the complete ones
        first. ProtocolError if the started frame has an illegal size."""
        buffer = self._buffer
        if buffer is None or self._start == self._end:
            if not isinstance(buffer, bytearray):
                buffer = self._buffer = self._pool.take()
                self._room = None
            self._start = self._end = 0
        else:
            buffer = self._make_room(buffer)
        room = memoryview(buffer)[self._end :]
        if not isinstance(buffer, bytearray):
            self._room = room
        return room

    def advance(self, count: int) -> None:
        """Record that `count` bytes were received into `buffer()`."""
        self._end += count

    def payloads(self) -> Iterator[memoryview]:
        """Yields the remaining complete payloads, in order. ProtocolError at a frame of illegal
        size: after all valid ones before it, and again at each later call."""
        return iter(self.next_payload, None)

    def next_payload(self) -> memoryview | None:
        """One complete payload, or None if more bytes are needed."""
        buffer = self._buffer
        start = self._start + SIZE.size
        if buffer is None or start > self._end:
            return None
        (size,) = SIZE.unpack_from(buffer, self._start)
        if not 0 < size <= self._max_size:
            size = frame_size(buffer, self._max_size, self._start, least=self.least)
        end = start + size
        if end > self._end:
            return None
        self._start = end
        return memoryview(buffer)[start:end]

    def release(self) -> bool:
        """Return the buffer to the pool if all its bytes were returned as payloads; whether they
        were."""
        if self._start != self._end:
            return False
        buffer = self._buffer
        if buffer is not None:
            if isinstance(buffer, bytearray):
                self._pool.give(buffer)
            self._buffer = self._room = None
        return True

    def release_if_unused(self) -> None:
        """`release` while a request is in progress, unless that refers to its payload: a long poll,
        say, needs no more of it, and there may be thousands."""
        buffer = self._buffer
        if isinstance(buffer, bytearray):
            try:
                buffer.append(buffer.pop())  # no bytearray changes its size while there are views
            except BufferError:
                return
            self.release()

    def close(self) -> None:
        """Drop the received bytes. The buffer does not return to the pool, since a request in
        progress may refer to it."""
        self._buffer = self._room = None
        self._start = self._end = 0

    def feed(self, data: Buffer) -> list[bytearray]:
        """Yields the payloads that `data` completes, as separate buffers; for callers that receive
        into their own memory. An illegal size after valid frames is raised by the next call."""
        rest = memoryview(data)
        complete: list[bytearray] = []
        try:
            while rest:
                room = self.buffer()
                count = min(len(room), len(rest))
                room[:count] = rest[:count]
                rest = rest[count:]
                self.advance(count)
                for payload in self.payloads():
                    complete.append(bytearray(payload))
        except ProtocolError:
            if not complete:
                raise
        self.release()
        return complete

    def _make_room(self, buffer: bytearray | GrowingBuffer) -> bytearray | GrowingBuffer:
        """A buffer with room for more of the started frame."""
        pending = self._end - self._start
        wanted = SIZE.size
        if pending >= SIZE.size:
            wanted += frame_size(buffer, self._max_size, self._start, least=self.least)
            assert wanted > pending, "a complete payload has not been taken"
        if isinstance(buffer, bytearray):
            buffer = self._moved(buffer, wanted)
        elif self._end == len(buffer):
            if self._room is not None:
                self._room.release()
            buffer = growing_buffer.grow(buffer, wanted)
        self._buffer = buffer
        return buffer

    def _moved(self, buffer: bytearray, wanted: int) -> bytearray | GrowingBuffer:
        """A buffer with room for more of a frame of `wanted` bytes: `buffer` unchanged, or with the
        frame's start moved to its front, or a larger one."""
        if self._start + wanted <= len(buffer) and self._end < len(buffer):
            return buffer
        target: bytearray | GrowingBuffer = buffer
        if wanted > growing_buffer.FIRST_BYTES:
            target = growing_buffer.begin(wanted)
        elif wanted > len(buffer):
            target = self._pool.take(wanted)
        pending = self._end - self._start
        with memoryview(buffer) as source:
            memoryview(target)[:pending] = source[self._start : self._end]
        if target is not buffer:
            self._pool.give(buffer)
        self._start, self._end = 0, pending
        return target
