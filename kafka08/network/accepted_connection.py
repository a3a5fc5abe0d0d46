"""AcceptedConnection: a client's connection on the event loop of a BrokerRuntime.

It has no greenlet: one io watch of the loop calls it in the hub. A callback receives at most four
times, each time handles at most 64 requests or 2 ms of them, and sends their responses together.
Message sets above 16 KB go from their files to the socket by sendfile. When the socket's send
buffer is full, reading stops until it has room. Source: kafka.network.Processor 0.8.2.2;
ARCHITECTURE.md, "Threads and greenlets".
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Final

from kafka08.errors import ProtocolError
from kafka08.log_limit import caused_by
from kafka08.network.server_connection import (
    BYTES,
    SECONDS_MAX,
    FileSlice,
    GeneratedBytes,
    Piece,
    ServerConnection,
)
from kafka08.protocol.frame import FrameReader
from kafka08.runtime import IoWatch
from kafka08.runtime.transport import AcceptedStream, Address
from kafka08.runtime.uncaught import uncaught

if TYPE_CHECKING:
    from kafka08.network.server import SocketServer

logger = logging.getLogger("kafka.network.Processor")

RECEIVES_MAX: Final = 4
"""How often a callback receives before it sends the responses."""
COPIED_BYTES_MAX: Final = 16 << 10
"""A slice up to this size is read and sent with its header by one call: cheaper than sendfile."""
JOINED_BYTES: Final = 1 << 20
"""No more slices are read for one call once it has this many bytes."""


class AcceptedConnection(ServerConnection):
    """An accepted stream and its watches. Everything runs in the hub and nothing switches."""

    __slots__ = ("_making", "_reading", "_server", "_stream", "_writing", "host",
                 "is_looked_after", "last_read", "scheduled")  # fmt: skip

    def __init__(self, server: SocketServer, accepted: AcceptedStream, address: Address) -> None:
        self.host = address[0]
        super().__init__(
            f"{self.host}:{address[1]}",
            FrameReader(server.request_bytes_max, server.buffers),
            chain(server.handshake(), server.handlers) if server.handshake else server.handlers,
        )
        self.last_read = server.runtime.monotonic()
        self.scheduled = False
        self.is_looked_after = False
        """See SocketServer.look_after."""
        self._server = server
        self._stream = accepted
        self._writing: IoWatch | None = None
        self._making = False
        """The front of the outbox is being made, and nothing is sent until it is."""
        self._reading = server.runtime.when_readable(accepted)
        self._reading.start(self._on_readable)

    def _on_readable(self) -> None:
        if self.parked or self.outbox or self.scheduled:
            self._hold_reading()
            return
        try:
            self.last_read = self._server.runtime.monotonic()
            self._receive()
        except Exception as error:  # noqa: BLE001 - root of a callback: ends this connection alone
            self.fail(error)

    def _receive(self) -> None:
        """Receive and handle frames, and repeat while each receive fills the buffer. Then send all
        responses together, because each send is a system call."""
        more = False
        for _ in range(RECEIVES_MAX):
            room = self.reader.buffer()
            try:
                count = self._stream.recv_into(room)
            except BlockingIOError:
                break
            if count == 0:
                if self.outbox:
                    break  # the client has closed its side, but may still wait for these
                self.close()
                return
            self.reader.advance(count)
            more = self.handle_frames(self._server.runtime.monotonic)
            if more or self.parked or self.ending or count < len(room):
                break
        del room  # a view of the buffer that may be released
        if self.parked and not self.outbox:
            self.reader.release_if_unused()
        else:
            self._send_or_wait(more)

    def _hold_reading(self) -> None:
        """Bytes, or the end of the stream, arrived while a request waits for its response: leave
        them in the socket until then. A client that has closed its side may still wait for the
        response, but not for long; one that has reset the connection does not."""
        try:
            if self.parked:
                if self._stream.peek():
                    self._server.look_after(self)
                else:
                    self._server.close_later(self)
        except BlockingIOError:
            return
        except OSError as error:
            self.fail(error)
            return
        self._reading.stop()

    def has_finished(self) -> bool:
        """Whether the client has closed its side, maybe behind bytes that it has sent."""
        return self._stream.has_finished()

    def is_abandoned(self) -> bool:
        if self.ending:
            return True
        try:
            return not self._stream.peek() or self.has_finished()
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _send_or_wait(self, more: bool) -> None:
        """Send the queued responses. Schedule another turn if there are `more` frames."""
        if self.outbox:
            self._flush()
        if more and not self.ending:
            self._schedule()
        elif self.parked:
            self.reader.release_if_unused()
        else:
            self.reader.release()

    def _schedule(self) -> None:
        if not self.scheduled:
            self.scheduled = True
            self._server.runtime.call_soon(self._resume)

    def _resume(self) -> None:
        """Continue with received frames, and with reading where it was stopped. The watch starts
        again only if nothing is left to do: a client that has its next request on the way, and
        waits for replicas each time, then costs no event and no change of the watch."""
        self.scheduled = False
        if self.parked or self.outbox or self.ending:
            return
        try:
            if self.reader.pending_bytes:
                self._send_or_wait(self.handle_frames(self._server.runtime.monotonic))
            elif self._reading.active:
                self.reader.release()
            if not self._reading.active and self._is_idle:
                self.last_read = self._server.runtime.monotonic()
                self._receive()
                if not self.parked and self._is_idle:
                    self._reading.start(self._on_readable)
        except Exception as error:  # noqa: BLE001 - root of a callback: ends this connection alone
            self.fail(error)

    @property
    def _is_idle(self) -> bool:
        """Whether it has nothing to do but to receive."""
        return not (self.ending or self.parked or self.outbox or self.scheduled)

    def response_queued(self) -> None:
        """A parked request has its response: send it now, and continue reading in a callback."""
        try:
            self._flush()
        except OSError as error:
            self.fail(error)
            return
        if not self.ending and not (self._reading.active and self.reader.release()):
            self._schedule()

    def _flush(self) -> None:
        """Send the outbox until the socket's buffer is full, or, where pieces are made while they
        are sent, for SECONDS_MAX; then watch for room. After the last response, a connection that
        is ending closes."""
        outbox = self.outbox
        deadline = 0.0
        while outbox and not self._making:
            first = outbox[0]
            if isinstance(first, BYTES):
                if not self._send_bytes():
                    break
            elif isinstance(first, GeneratedBytes):
                now = self._server.runtime.monotonic()
                deadline = deadline or now + SECONDS_MAX
                if now > deadline:
                    break
                self._make(first)
            elif first.size <= COPIED_BYTES_MAX:
                if not self._send_bytes():
                    break
            elif not self._send_file(first):
                break
        if self.on_sent is not None and not outbox:
            self.sent()
        if self._making:
            if self._writing is not None:
                self._writing.stop()
        elif outbox:
            if self._writing is None:
                self._writing = self._server.runtime.when_writable(self._stream)
            if not self._writing.active:
                self._writing.start(self._on_writable)
        elif self.ending:
            self.close()
        elif self._writing is not None and self._writing.active:
            self._writing.stop()

    def _send_bytes(self) -> bool:
        """Send the bytes and the small slices at the front in one call. False if the socket is
        full."""
        outbox = self.outbox
        joined = outbox[0]
        count = 1
        if len(outbox) > 1 or not isinstance(joined, BYTES):
            parts = front_bytes(outbox)
            count = len(parts)
            joined = parts[0] if count == 1 else b"".join(parts)
        stream = self._stream
        try:
            sent = stream.send_more(joined) if count < len(outbox) else stream.send(joined)
        except BlockingIOError:
            sent = 0
        if sent == len(joined):
            del outbox[:count]
            return True
        # A view: to copy the rest at each turn would be quadratic in a large response.
        outbox[:count] = [memoryview(joined)[sent:]]
        return False

    def _send_file(self, piece: FileSlice) -> bool:
        """Send the slice at the front. False if the socket is full."""
        try:
            sent = self._stream.send_file(piece.file, piece.position, piece.size)
        except BlockingIOError:
            return False
        if sent == 0:
            raise cut_off(piece)
        if sent == piece.size:
            del self.outbox[0]
        else:
            self.outbox[0] = RemainingSlice(piece, sent)
        return True

    def _make(self, piece: GeneratedBytes) -> None:
        """Have the next bytes of the piece at the front made."""
        data = piece.make(self._on_made)
        if data is None:
            self._making = True
        else:
            self._put_made(piece, data)

    def _on_made(self, data: bytes | None, error: BaseException | None) -> None:
        """A thread has made the next bytes of a piece."""
        self._making = False
        if self.closed:
            return
        piece = self.outbox[0]
        if data is None or not isinstance(piece, GeneratedBytes):
            text = "Error while making a response to /%s"
            failure = error or AssertionError("neither bytes nor an error")
            uncaught(self._server.runtime, failure, logger, text, self.host)
            self.close("its response could not be completed")
            return
        self._put_made(piece, data)
        self._on_writable()

    def _put_made(self, piece: GeneratedBytes, data: bytes) -> None:
        self.outbox[:1] = [data, piece] if piece.size else [data]

    def _on_writable(self) -> None:
        try:
            self._flush()
        except Exception as error:  # noqa: BLE001 - root of a callback: ends this connection alone
            self.fail(error)
            return
        if not self.outbox:
            self._schedule()

    def fail(self, error: Exception) -> None:
        """With the log line of 0.8.2.2, and nothing more is sent if the socket itself failed. A
        storage error halts the broker."""
        if isinstance(error, ProtocolError):
            logger.info(
                "Closing socket connection to /%s due to invalid request: %s",
                self.host,
                error,
                extra=caused_by(self.host),
            )
        elif isinstance(error, OSError):
            self.close(str(error))
        else:
            text = "Closing socket for /%s because of error"
            extra = caused_by(self.host)
            uncaught(self._server.runtime, error, logger, text, self.host, extra=extra)
        self.finish()

    def finish(self, reason: str = "") -> None:
        """Stop reading, send the queued responses, and close. If the client does not receive them,
        the idle timeout closes the connection."""
        if self.ending:
            return
        if reason:
            self._log_closing(reason)
        self._reading.stop()
        super().finish()

    def close(self, reason: str = "") -> None:
        """Close the socket. A parked request is abandoned."""
        if self.closed:
            return
        if reason:
            self._log_closing(reason)
        super().close()
        self._reading.close()
        if self._writing is not None:
            self._writing.close()
        self._stream.close()
        self._server.forget(self)

    def _log_closing(self, reason: str) -> None:
        logger.info(
            "Closing socket connection to /%s: %s",
            self.host,
            reason,
            extra=caused_by(self.host),
        )


class RemainingSlice:
    """The rest of a slice after a part of it was sent."""

    __slots__ = ("file", "position", "size")

    def __init__(self, piece: FileSlice, sent: int) -> None:
        self.file = piece.file
        self.position = piece.position + sent
        self.size = piece.size - sent


def front_bytes(outbox: Iterable[Piece]) -> list[bytes | bytearray | memoryview]:
    """The bytes and the small slices at the front, up to about JOINED_BYTES."""
    parts: list[bytes | bytearray | memoryview] = []
    joined_bytes = 0
    for piece in outbox:
        if joined_bytes >= JOINED_BYTES:
            break
        if isinstance(piece, BYTES):
            parts.append(piece)
        elif not isinstance(piece, GeneratedBytes) and piece.size <= COPIED_BYTES_MAX:
            parts.append(read_slice(piece))
        else:
            break
        joined_bytes += len(parts[-1])
    return parts


def read_slice(piece: FileSlice) -> bytes:
    """The bytes of a slice, in memory."""
    data = piece.file.pread(piece.size, piece.position)
    if len(data) != piece.size:
        raise cut_off(piece)
    return data


def cut_off(piece: FileSlice) -> ConnectionAbortedError:
    """The error for a slice that ends early: its log was truncated, and the announced size of the
    response is wrong."""
    return ConnectionAbortedError(f"a segment ended before the {piece.size} bytes promised")
