"""How long kazoo waits for one server while it connects.

kazoo waits the whole session timeout for a TCP connection, and (with one server) for the response
to its session, as ZooKeeper's Java client does. A host that is off, or a server that has accepted a
connection while it starts and then forgets it, would cost the session. So there is time for more
than one try within it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kazoo.client import KazooClient

TRIES: Final = 3
"""At least so many servers, or times the same one, can be tried within a session timeout."""


def limit_patience(kazoo: KazooClient) -> None:
    """Make this client, which has not been started, try the next server after a share of the
    session timeout. The response to a new session has kazoo's own time: there is nothing to lose,
    and each try would make the servers store another session."""
    connection, handler = kazoo._connection, kazoo.handler
    connect, invoke = handler.create_connection, connection._invoke

    def limited(seconds: float) -> float:
        share: float = kazoo._session_timeout / 1000 / max(TRIES, len(kazoo.hosts))
        return min(seconds, share)

    def create_connection(*args: Any, timeout: float, **kwargs: Any) -> Any:
        return connect(*args, timeout=limited(timeout), **kwargs)

    def invoke_in_time(timeout: float, request: Any, xid: int | None = None) -> Any:
        is_of_a_session = not xid and request.session_id
        return invoke(limited(timeout) if is_of_a_session else timeout, request, xid)

    handler.create_connection = create_connection
    connection._invoke = invoke_in_time
