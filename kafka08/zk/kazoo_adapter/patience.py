"""How long kazoo waits for one server while it connects.

kazoo waits the whole session timeout for a TCP connection, and for the response to its session that
time divided by the number of servers. So a host that is off, or a lone server that accepts a
connection while it starts and then forgets it, would cost the session. Here there is time for
another try, if the loss of the connection was noticed at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kazoo.client import KazooClient

TRIES: Final = 3
"""At least so many servers, or times the same one, can be tried within a session timeout. Each
address of a name is a server."""


def limit_patience(kazoo: KazooClient, session_ms: Callable[[], int]) -> None:
    """Make this client, which has not been started, try the next server after a share of the
    session timeout. `session_ms` returns that, as the server granted it if one did.

    The response to a new session has kazoo's own time: there is nothing to lose, and each try would
    make the servers store another session.
    """
    connection, handler = kazoo._connection, kazoo.handler
    connect, invoke = handler.create_connection, connection._invoke
    resolve, servers = connection._expand_client_hosts, len(kazoo.hosts)

    def resolve_and_count() -> Any:
        nonlocal servers
        addresses = resolve()
        servers = len(addresses)
        return addresses

    def limited(seconds: float) -> float:
        return min(seconds, session_ms() / 1000 / max(TRIES, servers))

    def create_connection(*args: Any, timeout: float | None = None, **kwargs: Any) -> Any:
        limit = timeout if timeout is None else limited(timeout)
        return connect(*args, timeout=limit, **kwargs)

    def invoke_in_time(timeout: float, request: Any, xid: int | None = None) -> Any:
        is_of_a_session = not xid and request.session_id
        return invoke(limited(timeout) if is_of_a_session else timeout, request, xid)

    connection._expand_client_hosts = resolve_and_count
    handler.create_connection = create_connection
    connection._invoke = invoke_in_time
