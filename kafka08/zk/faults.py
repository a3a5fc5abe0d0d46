"""Failures of a session on demand, for tests of those who must survive them."""

from __future__ import annotations

from typing import Final

from kazoo.client import KazooClient

from kafka08.zk.client import ZkClient
from kafka08.zk.handlers import thread_handler

_SUPER_SECRET: Final = 0xB3415C00
"""ZooKeeperServer.superSecret: a session's password is a function of its id."""


def expire_session(client: ZkClient) -> None:
    """End the client's session on the server, as if its timeout had passed.

    The client finds out when it reconnects, gets a new session, and tells its listeners EXPIRED.
    Returns before that.
    """
    assert client.session_id, "the client has no session"
    end_session(client.hosts, client.session_id, client.session_timeout_ms)


def end_session(hosts: str, session_id: int, timeout_ms: int = 6000) -> None:
    """End any session by its id (the owner of an ephemeral znode, say): a second connection takes
    it over and closes it, and its ephemeral znodes go at once."""
    thief = KazooClient(
        hosts,
        timeout=timeout_ms / 1000,
        client_id=(session_id, session_password(session_id)),
        handler=thread_handler(),
    )
    thief.start(timeout=10)
    thief.stop()
    thief.close()


def session_password(session_id: int) -> bytes:
    """The 16 bytes that ZooKeeper gave the client with its session.

    Source: ZooKeeperServer.generatePasswd: `new java.util.Random(id ^ superSecret).nextBytes`.
    """
    mask = (1 << 48) - 1
    state = ((session_id ^ _SUPER_SECRET) ^ 0x5DEECE66D) & mask
    password = bytearray()
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & mask
        password += (state >> 16).to_bytes(4, "little")
    return bytes(password)
