"""TlsStream: TLS on any Stream, by OpenSSL in memory.

The stream below moves the encrypted bytes, so threads, greenlets and pollers use the same class.
Whole responses are decrypted into the memory of the reader; whole requests are encrypted at once,
in half of the time of one record after the other.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any, Final

from kafka08.errors import AuthenticationFailed
from kafka08.runtime import Stream

RECEIVE_BYTES: Final = 256 << 10
"""Encrypted bytes that are received by one call."""
SEND_BYTES: Final = 128 << 10
"""The most that a stream without waits encrypts before it has sent it."""
EXPIRED: Final = 10
UNTRUSTED: Final = frozenset({18, 19, 20, 21})
OTHER_NAME: Final = frozenset({62, 64})
"""Verification codes of OpenSSL (X509_V_ERR_…)."""


class TlsStream:
    """A Stream in a Stream; `host` is the name that the peer's certificate must have.

    A `recv_into` that fills its buffer may leave decrypted bytes, of which no poller knows: call it
    again before waiting. After BlockingIOError `send` must get the same bytes again.
    """

    def __init__(self, stream: Stream, context: ssl.SSLContext, host: str) -> None:
        self._stream = stream
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: Any = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._unsent = memoryview(b"")
        self._encrypted = 0
        """Bytes of the next `send` that were encrypted, but not all sent."""
        self._peeked = b""
        self._is_confirmed = False
        """The peer has accepted this client: under TLS 1.3 a refusal comes behind the handshake."""
        below: Any = stream
        self.fileno = below.fileno
        self.settimeout = stream.settimeout
        self.drop_undelivered = stream.drop_undelivered
        self.abort = stream.abort
        self.close = stream.close

    @property
    def wants_write(self) -> bool:
        """Whether encrypted bytes wait for room."""
        return bool(self._unsent)

    def handshake(self) -> None:
        """Agree on keys and check the peer. BlockingIOError: call it again once the stream below is
        ready. AuthenticationFailed; OSError, which may pass."""
        try:
            while True:
                try:
                    self._tls.do_handshake()
                    return self._flush()
                except ssl.SSLWantReadError:
                    self._flush()
                    self._receive()
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError) as error:
            raise ConnectionResetError(NO_TLS) from error  # or the broker has just stopped
        except ssl.SSLError as error:
            raise AuthenticationFailed(meaning(error)) from error

    def peek(self) -> bool:
        if not self._peeked:
            byte = bytearray(1)
            self._peeked = bytes(byte[: self.recv_into(byte)])
        return bool(self._peeked)

    def recv_into(self, buffer: bytearray | memoryview, /) -> int:
        room = memoryview(buffer)
        count = len(self._peeked)
        room[:count], self._peeked = self._peeked, b""
        while count < len(room):
            try:
                taken = self._tls.read(len(room) - count, room[count:])
            except ssl.SSLWantReadError:
                if count:
                    break
                with suppress(BlockingIOError):  # else a peer that sends first is not heard
                    self._flush()
                self._receive()
                continue
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                break
            except ssl.SSLError as error:
                if self._is_confirmed:
                    raise  # by a broker that stops, or of damaged bytes: to be tried again
                raise AuthenticationFailed(
                    "it refuses this client's certificate, or that there is none "
                    f"(ssl.keystore.location): {error.reason}"
                ) from error
            if taken == 0:
                break
            count += taken
            self._is_confirmed = True
        return count

    def send(self, data: bytes | bytearray | memoryview, /) -> int:
        if not self._encrypted and len(data):
            self._encrypted = self._tls.write(memoryview(data)[:SEND_BYTES])
        self._flush()
        sent, self._encrypted = self._encrypted, 0
        return sent

    def sendall(self, data: bytes | bytearray | memoryview, /) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self.send(rest) :]

    def _flush(self) -> None:
        while self._unsent or self._outgoing.pending:
            if not self._unsent:
                self._unsent = memoryview(self._outgoing.read())
            self._unsent = self._unsent[self._stream.send(self._unsent) :]

    def _receive(self) -> None:
        count = self._stream.recv_into(self._buffer)
        if count:
            self._incoming.write(self._buffer[:count])
        else:
            self._incoming.write_eof()


NO_TLS: Final = (
    "it closed the connection at the beginning of TLS: is this the port of a PLAINTEXT or "
    "SASL_PLAINTEXT listener (security.protocol)?"
)


def meaning(error: ssl.SSLError) -> str:
    """Which of name, certificate and protocol it was, and what to do."""
    reason = error.reason or str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message
        if error.verify_code in OTHER_NAME:
            return (
                f"its certificate is for another name ({why}): address it by a name of the "
                "certificate, in bootstrap.servers and in its advertised.listeners. An empty "
                "ssl.endpoint.identification.algorithm turns this check off"
            )
        if error.verify_code in UNTRUSTED:
            return (
                f"its certificate is not signed by an authority of ssl.truststore.location ({why})"
            )
        what = "has expired" if error.verify_code == EXPIRED else "is not accepted"
        return f"its certificate {what} ({why})"
    if "WRONG_VERSION_NUMBER" in reason or "HTTP" in reason:
        return f"it does not speak TLS ({reason}): is its listener PLAINTEXT (security.protocol)?"
    return (
        f"no TLS with it ({reason}): compare ssl.enabled.protocols and ssl.cipher.suites with its "
        "own, and see whether it wants a certificate (ssl.keystore.location)"
    )
