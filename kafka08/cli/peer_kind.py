"""Finds out which kind of server has an address where another one was expected: a mistyped port is
often that of one."""

from __future__ import annotations

import enum
import socket
import struct
from typing import Final

from kafka08.zk.reachability import NOT_SERVING

TIMEOUT_S: Final = 0.5
"""For the connection, and for the reply to a probe."""
REPLY_BYTES: Final = 256
ENOUGH_BYTES: Final = 8
"""A size and a correlation id."""
CORRELATION_ID: Final = 0x6B303821
_REQUEST: Final = struct.Struct(">ihhih")
"""size, API key, version, correlation id, length of the client id."""
API_VERSIONS: Final = _REQUEST.pack(_REQUEST.size - 4, 18, 0, CORRELATION_ID, 0)
NO_TOPIC: Final = _REQUEST.pack(_REQUEST.size + 2, 3, 0, CORRELATION_ID, 0) + struct.pack(
    ">ih", 1, 0
)
"""Metadata of a topic without a name, which no broker creates, for those of 0.8 and 0.9."""
TLS_RECORDS: Final = (b"\x15", b"\x16")
"""The first byte of what a TLS server replies: an alert, or the handshake."""


class PeerKind(enum.Enum):
    KAFKA = "a Kafka broker"
    ZOOKEEPER = "a ZooKeeper server"
    ZOOKEEPER_WITHOUT_QUORUM = "a ZooKeeper server that has no quorum"
    TLS = "a server that speaks TLS"
    HTTP = "an HTTP server"


def kind_of_peer(host: str, port: int) -> PeerKind | None:
    """Sends each kind's smallest question on a connection of its own, and changes nothing there.
    None: no server, one that does not reply to what it cannot read, or another kind."""
    reply = _reply(host, port, b"srvr\r\n")
    if reply is None:
        return None
    if reply.startswith(NOT_SERVING):
        return PeerKind.ZOOKEEPER_WITHOUT_QUORUM
    if reply.startswith((b"Zookeeper version", b"srvr is not executed")):
        return PeerKind.ZOOKEEPER
    for request in (API_VERSIONS, NO_TOPIC):
        reply = _reply(host, port, request) or b""
        if reply[4:8] == CORRELATION_ID.to_bytes(4, "big"):
            return PeerKind.KAFKA
    reply = _reply(host, port, _client_hello()) or b""
    if reply[:1] in TLS_RECORDS:
        return PeerKind.TLS
    reply = _reply(host, port, b"GET / HTTP/1.0\r\n\r\n") or b""
    return PeerKind.HTTP if reply.startswith(b"HTTP/") else None


def _reply(host: str, port: int, question: bytes) -> bytes | None:
    """The first bytes of the reply, none if the peer closes the connection; None if there is no
    server, or it does not reply in time."""
    try:
        with socket.create_connection((host, port), TIMEOUT_S) as connection:
            reply = b""
            try:
                connection.sendall(question)
                while len(reply) < ENOUGH_BYTES and (part := connection.recv(REPLY_BYTES)):
                    reply += part
            except ConnectionError:
                pass
            return reply
    except (OSError, UnicodeError):
        return None


def _client_hello() -> bytes:
    import ssl  # most commands need none

    sent = ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()
