"""Why no session began: probes every server of a connect string."""

from __future__ import annotations

import re
import socket

from kafka08.errors import ZooKeeperUnreachable
from kafka08.listing import reason_of
from kafka08.structs import split_host_port
from kafka08.zk import paths

PROBE_S = 1.0
NOT_SERVING = b"This ZooKeeper instance is not currently serving requests"
"""The reply of a server of an ensemble that has no leader."""
OF_ZOOKEEPER = (b"Zookeeper version", b"srvr is not executed", NOT_SERVING)
"""The beginnings of its replies to srvr."""
QUESTIONS = (b"srvr", b"\r\n\r\n")
"""The second completes what a server of another kind may have waited for. ZooKeeper has replied to
the first."""
SHOWN_BYTES = 40
ZXID = re.compile(rb"Zxid: 0x([0-9a-f]{1,16})")
REPLY_BYTES = 1024
"""Enough for the reply to srvr, which has some ten short lines."""


def explain(hosts: str, seen_zxid: int = 0) -> str:
    """One clause for each of `h1:1,h2:2`: the outcome of a connection to it. Waits at most three
    times PROBE_S for each address.

    seen_zxid   the newest that a session has seen: servers whose own is below refuse it
    """
    return "; ".join(f"{address}: {_probe(address, seen_zxid)}" for address in hosts.split(","))


def unreachable(hosts: str, why: str, within: str = "") -> ZooKeeperUnreachable:
    error = ZooKeeperUnreachable(f"cannot connect to ZooKeeper at {hosts}{within} ({why})")
    error.addresses = tuple(map(_address, hosts.split(",")))
    return error


def check_not_refused(connect: str) -> None:
    """ZooKeeperUnreachable if `is_refused`: a client waits for a ZooKeeper that is being started, a
    command does not."""
    hosts, _ = paths.split_connect(connect)
    if is_refused(hosts):
        raise unreachable(hosts, explain(hosts))


def is_refused(hosts: str) -> bool:
    """Whether no server of `h1:1,h2:2` can start a session: each refuses a connection, has a name
    that nobody knows, closes the connection without a reply, as a broker does, or replies as no
    ZooKeeper does. One that does not reply in time may yet start it."""
    return all(map(_refuses, hosts.split(",")))


def _refuses(address: str) -> bool:
    try:
        with socket.create_connection(_address(address), PROBE_S) as server:
            reply = _reply(server)
            return reply is not None and not reply.startswith(OF_ZOOKEEPER)
    except TimeoutError:
        return False
    except OSError:
        return True


def _address(text: str) -> tuple[str, int]:
    host, port = split_host_port(text)
    return host, int(port or 0)


def _probe(address: str, seen_zxid: int) -> str:
    try:
        with socket.create_connection(_address(address), PROBE_S) as server:
            reply = _reply(server)
    except TimeoutError:
        return "does not respond"
    except OSError as error:
        return reason_of(error)
    if reply == b"":
        return (
            "closes the connection without a reply (is it a Kafka broker, or has it more than "
            "maxClientCnxns connections of this host?)"
        )
    if reply is not None and not reply.startswith(OF_ZOOKEEPER):
        line = reply[:SHOWN_BYTES].decode("ascii", "replace").splitlines()[0]
        return f"is no ZooKeeper server: it replies {line!r}"
    if reply is not None and reply.startswith(NOT_SERVING):
        return "is a ZooKeeper server that has no quorum: start the other servers of its ensemble"
    zxid = ZXID.search(reply or b"")
    if zxid is not None and int(zxid[1], 16) < seen_zxid:
        return (
            f"refuses this session, which has seen zxid {seen_zxid:#x}: its own is 0x"
            f"{zxid[1].decode()}. If its data were lost or restored, restart this process"
        )
    return (
        "accepts connections but starts no session (is it ZooKeeper, has it a quorum, and is it "
        "not too slow?)"
    )


def _reply(server: socket.socket) -> bytes | None:
    """The reply to a four-letter word; empty if the server closes the connection, None if it says
    nothing within PROBE_S of each of QUESTIONS."""
    reply = b""
    try:
        for question in QUESTIONS:
            server.sendall(question)
            try:
                while len(reply) < REPLY_BYTES and (part := server.recv(REPLY_BYTES)):
                    reply += part
            except TimeoutError:
                if not reply:
                    continue
            return reply
    except OSError:
        return reply
    return None
