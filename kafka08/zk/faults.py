"""Failures of a session on demand, for tests of those who must survive them."""

from __future__ import annotations

from kazoo.client import KazooClient

from kafka08.zk.client import ZkClient
from kafka08.zk.handlers import thread_handler


def expire_session(client: ZkClient) -> None:
    """End the client's session on the server, as if its timeout had passed.

    A second connection takes the session over and closes it; the client finds out when it
    reconnects, gets a new session, and tells its listeners EXPIRED. Returns before that.
    """
    assert client.session_id, "the client has no session"
    thief = KazooClient(
        client.hosts,
        timeout=client.session_timeout_ms / 1000,
        client_id=(client.session_id, client.session_password),
        handler=thread_handler(),
    )
    thief.start(timeout=10)
    thief.stop()
    thief.close()
