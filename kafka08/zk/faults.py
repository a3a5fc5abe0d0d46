"""Session failures on demand, for tests of code that must survive them."""

from __future__ import annotations

from typing import Final

from kafka08.errors import ZooKeeperUnreachable
from kafka08.zk.client import ZkClient, kazoo_on_threads
from kafka08.zk.model.sessions import password_of
from kafka08.zk.zookeeper import Adapter, ConnectionState, SessionSettings

_CONNECT_S: Final = 10


def expire_session(client: ZkClient) -> None:
    """End the client's session on the server, as if its timeout had passed.

    The client finds out when it reconnects, gets a new session, and tells its listeners EXPIRED.
    Returns before that.
    """
    assert client.session_id, "the client has no session"
    end_session(client.hosts, client.session_id, client.session_timeout_ms, client.adapter)


def end_session(
    hosts: str, session_id: int, timeout_ms: int = 6000, adapter: Adapter = kazoo_on_threads
) -> None:
    """End any session by its id (the owner of an ephemeral znode, say): a second connection takes
    it over and closes it, and its ephemeral znodes go at once."""
    attach_to = (session_id, password_of(session_id))
    thief = adapter(SessionSettings(hosts, timeout_ms=timeout_ms, attach_to=attach_to))
    settled = thief.event()

    def on_state(state: ConnectionState) -> None:
        if state is ConnectionState.CONNECTED:
            settled.set()

    thief.add_state_listener(on_state)
    thief.start()
    try:
        if not settled.wait(_CONNECT_S):
            raise ZooKeeperUnreachable(f"cannot connect to {hosts} to end session {session_id:#x}")
    finally:
        thief.close()
