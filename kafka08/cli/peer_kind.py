"""Finds out which kind of server has an address where another one was expected: a mistyped port is
often that of one."""

from __future__ import annotations

import enum
import socket
from typing import Final

from kafka08.errors import NoBrokersAvailable, ZooKeeperUnreachable
from kafka08.protocol.api_versions import ApiVersionsRequest
from kafka08.protocol.codec import encode_request
from kafka08.protocol.frame import TLS_RECORDS
from kafka08.protocol.metadata import MetadataRequest
from kafka08.structs import host_port
from kafka08.zk.reachability import NOT_SERVING, OF_ZOOKEEPER

TIMEOUT_S: Final = 0.5
"""For the connection, and for the reply to a probe."""
REPLY_BYTES: Final = 256
ENOUGH_BYTES: Final = 8
"""A size and a correlation id."""
CORRELATION_ID: Final = 0x6B303821
REQUESTS: Final = (ApiVersionsRequest(), MetadataRequest([""]))
"""The second is of a topic without a name, which no broker creates, for those of 0.8 and 0.9."""


class PeerKind(enum.Enum):
    KAFKA = "a Kafka broker"
    ZOOKEEPER = "a ZooKeeper server"
    ZOOKEEPER_WITHOUT_QUORUM = "a ZooKeeper server that has no quorum"
    TLS = "a server that speaks TLS"
    HTTP = "an HTTP server"


_AT_ZOOKEEPERS: Final = {
    PeerKind.ZOOKEEPER_WITHOUT_QUORUM: "start the other servers of the ensemble of {at}: a "
    "majority of them must run, and reach each other",
    PeerKind.KAFKA: "{at} is a Kafka broker: give it with {bootstrap}; ZooKeeper's default port is "
    "2181",
    PeerKind.TLS: "{at} speaks TLS: give a port of ZooKeeper without it (clientPort)",
    PeerKind.HTTP: "{at} is an HTTP server, such as ZooKeeper's own for administrators: give its "
    "clientPort, which is 2181 by default",
}
_NO_BROKER: Final = (
    "{at} is a ZooKeeper server: give a broker with {bootstrap}, whose default port is 9092; a "
    "command that has {zookeeper} takes this address there"
)
_AT_BROKERS: Final = {
    PeerKind.ZOOKEEPER: _NO_BROKER,
    PeerKind.ZOOKEEPER_WITHOUT_QUORUM: _NO_BROKER,
    PeerKind.KAFKA: "{at} is a listener without TLS: set security.protocol to PLAINTEXT or "
    "SASL_PLAINTEXT, or give the port of one with it",
    PeerKind.TLS: "{at} speaks TLS: set security.protocol to SSL or SASL_SSL, in the file of "
    "--command-config or --config, or give a listener without TLS",
    PeerKind.HTTP: "{at} is an HTTP server: give the port of a broker, which is 9092 by default",
}
"""What was found at an address that ZooKeeper, or a broker, was expected to have → advice."""
PEERS_MAX: Final = 3
"""So many addresses are looked at."""


def advice_for_peer(error: ZooKeeperUnreachable | NoBrokersAvailable) -> str | None:
    """The advice for an address that is another server's; None if none is."""
    if isinstance(error, ZooKeeperUnreachable):
        known, right = _AT_ZOOKEEPERS, PeerKind.ZOOKEEPER
    else:
        known, right = _AT_BROKERS, PeerKind.TLS if "TLS" in str(error) else PeerKind.KAFKA
    for host, port in error.addresses[:PEERS_MAX]:
        kind = kind_of_peer(host, port)
        if kind in known and kind is not right:
            return known[kind].replace("{at}", host_port(host, port))
    return None


def kind_of_peer(host: str, port: int) -> PeerKind | None:
    """Sends each kind's smallest question on a connection of its own, and changes nothing there.
    None: no server, one that does not reply to what it cannot read, or another kind."""
    reply = _reply(host, port, b"srvr\r\n")
    if reply is None:
        return None
    if reply.startswith(NOT_SERVING):
        return PeerKind.ZOOKEEPER_WITHOUT_QUORUM
    if reply.startswith(OF_ZOOKEEPER):
        return PeerKind.ZOOKEEPER
    for request in REQUESTS:
        reply = _reply(host, port, encode_request(request, CORRELATION_ID, "")) or b""
        if reply[4:8] == CORRELATION_ID.to_bytes(4, "big"):
            return PeerKind.KAFKA
    reply = _reply(host, port, _client_hello()) or b""
    if reply[:2] in TLS_RECORDS:
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
