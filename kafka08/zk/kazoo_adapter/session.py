"""One kazoo client as a `ZooKeeper`: translates operations to kazoo's calls and back.

Only connecting is retried here; `Resender` decides which operations are sent again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    SessionExpiredError,
    WriterNotClosedException,
)
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from kafka08.errors import ZooKeeperError
from kafka08.zk.kazoo_adapter.failures import is_not_tried, translate
from kafka08.zk.kazoo_adapter.handlers import ThreadHandler, cut_off
from kafka08.zk.kazoo_adapter.last_heard import LastHeard
from kafka08.zk.kazoo_adapter.patience import limit_patience
from kafka08.zk.operations import (
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    Node,
    Operation,
    Refusal,
    Set,
    Stat,
    Step,
    decode,
    encode,
)
from kafka08.zk.path_check import refusal_of
from kafka08.zk.reachability import explain, is_refused
from kafka08.zk.zookeeper import ConnectionState, Event, Pending, SessionSettings, StateListener

logger = logging.getLogger(__name__)
kazoo_log = logging.getLogger("kafka08.zk.kazoo")
kazoo_log.setLevel(logging.ERROR)  # the session tracker logs what matters

_STATES: Final = {
    KazooState.CONNECTED: ConnectionState.CONNECTED,
    KazooState.SUSPENDED: ConnectionState.SUSPENDED,
    KazooState.LOST: ConnectionState.LOST,
}


def on_threads(settings: SessionSettings) -> KazooSession:
    return KazooSession(settings, ThreadHandler())


def on_gevent(settings: SessionSettings) -> KazooSession:
    """Imports gevent; for a process that gevent has patched."""
    from kafka08.zk.kazoo_adapter.green_handler import GreenHandler

    return KazooSession(settings, GreenHandler())


class KazooSession:
    """A `ZooKeeper`. handler: how kazoo waits (threads or greenlets)."""

    def __init__(self, settings: SessionSettings, handler: Any) -> None:
        self._hosts = settings.hosts
        self._handler = handler
        self._kazoo = _new_kazoo(settings, handler)
        self._heard = LastHeard(self._kazoo._connection, settings.clock, settings.timeout_ms)
        limit_patience(self._kazoo, lambda: self._heard.timeout_ms)

    @property
    def session_id(self) -> int | None:
        session: int | None = self._kazoo._session_id
        return session

    @property
    def session_password(self) -> bytes:
        password: bytes = self._kazoo._session_passwd
        return password

    @property
    def granted_timeout_ms(self) -> int:
        return self._heard.timeout_ms

    @property
    def last_heard(self) -> float:
        return self._heard.at

    @property
    def requests_sent(self) -> int:
        return self._heard.requests

    def add_state_listener(self, listener: StateListener) -> None:
        # kazoo drops a listener that returns True.
        self._kazoo.add_listener(lambda state: listener(_STATES[state]))

    def start(self) -> None:
        self._kazoo.start_async()

    def close(self) -> None:
        try:
            self._kazoo.stop()
            self._kazoo.close()
        except WriterNotClosedException:
            logger.warning("the connection to %s did not close in time", self._hosts)

    def send(self, operation: Operation) -> Pending:
        refusal = refusal_of(operation)
        if refusal is not None:
            return Refused(refusal)
        send, read = _CALLS[type(operation)]
        return KazooPending(operation, send(self._kazoo, operation), read)

    def event(self) -> Event:
        event: Event = self._handler.event_object()
        return event

    def why_unreachable(self) -> str:
        return explain(self._hosts, self._kazoo.last_zxid)

    def is_refused(self) -> bool:
        return is_refused(self._hosts)


class KazooPending:
    """A `Pending`: kazoo's AsyncResult with its operation."""

    __slots__ = ("_operation", "_read", "_result", "ready", "wait")

    def __init__(self, operation: Operation, result: Any, read: Callable[[Any, Any], Any]) -> None:
        self._operation = operation
        self._result = result
        self._read = read
        self.ready: Callable[[], bool] = result.ready
        self.wait: Callable[[float], object] = result.wait

    def outcome(self) -> Any:
        if self._result.exception is not None:
            return translate(self._result.exception, self._operation.path)
        return self._read(self._operation, self._result.value)


class Refused:
    """A `Pending`: the outcome of an operation that is not sent."""

    __slots__ = ("_outcome",)

    def __init__(self, outcome: ZooKeeperError | Refusal) -> None:
        self._outcome = outcome

    def ready(self) -> bool:
        return True

    def wait(self, seconds: float, /) -> None:
        pass

    def outcome(self) -> ZooKeeperError | Refusal:
        return self._outcome


CUT_OFF_S: Final = 2.0
CUT_OFF_TRIES: Final = 40
"""How long a connection is cut off that another address follows."""


class _InterruptibleClient(KazooClient):  # type: ignore[misc]  # kazoo is untyped
    """Lets an interrupt, and the end, pass at once."""

    def _call(self, request: Any, result: Any) -> bool | None:
        """kazoo 2.10 and 2.11 have a bare `except` here, which takes any error for a closed
        connection: a KeyboardInterrupt or a greenlet's Timeout that comes while the request is
        queued would be lost, and the request reported as refused."""
        refusal = _REFUSALS.get(self._state)
        if refusal is not None:
            result.set_exception(refusal())
            return False
        self._queue.append((request, result))
        waker = self._connection._write_sock  # of kazoo's thread; None once it is closed
        try:
            closed = waker is None or not waker.send(b"\0")
        except OSError:
            closed = True
        if closed:
            result.set_exception(ConnectionClosedError("Connection has been closed"))
        return None

    def _safe_close(self) -> None:
        """kazoo would wait for the response to a connection that has no session yet, for seconds if
        the server is slow or silent: it is cut off."""
        connection = self._connection
        for _ in range(CUT_OFF_TRIES):
            if self._state != KeeperState.CONNECTING or connection.connection_stopped.is_set():
                break
            cut_off(connection._socket)
            connection.connection_stopped.wait(CUT_OFF_S / CUT_OFF_TRIES)
        super()._safe_close()


_REFUSALS: Final = {
    KeeperState.AUTH_FAILED: AuthFailedError,
    KeeperState.CLOSED: ConnectionClosedError,
    KeeperState.EXPIRED_SESSION: SessionExpiredError,
}


def _new_kazoo(settings: SessionSettings, handler: Any) -> KazooClient:
    retry = KazooRetry(
        max_tries=-1, delay=0.05, backoff=1.5, max_delay=1.0, sleep_func=handler.sleep_func
    )
    return _InterruptibleClient(
        settings.hosts + settings.chroot,
        timeout=settings.timeout_ms / 1000,
        client_id=settings.attach_to,
        handler=handler,
        connection_retry=retry,
        command_retry=KazooRetry(max_tries=0, sleep_func=handler.sleep_func),
        logger=kazoo_log,
    )


def _send_multi(kazoo: KazooClient, multi: Multi) -> Any:
    request = kazoo.transaction()
    for step in multi.steps:
        _add(request, step)
    return request.commit_async()


def _add(request: TransactionRequest, step: Step) -> None:
    if isinstance(step, Create):
        data = encode(step.data)
        request.create(step.path, data or b"", ephemeral=step.ephemeral, sequence=step.sequence)
        _set_null(request, data)
    elif isinstance(step, Set):
        data = encode(step.data)
        request.set_data(step.path, data or b"", step.version)
        _set_null(request, data)
    elif isinstance(step, Delete):
        request.delete(step.path, step.version)
    else:
        request.check(step.path, step.version)


def _set_null(request: TransactionRequest, data: bytes | None) -> None:
    """Put null data into the last step: ZooKeeper accepts it, kazoo's builder does not."""
    if data is None:
        request.operations[-1] = request.operations[-1]._replace(data=None)


def _node(operation: Get, reply: Any) -> Node:
    data, stat = reply
    return Node(decode(data), stat.version, stat.ephemeralOwner, stat.czxid)


def _stat(operation: Exists, reply: Any) -> Stat | None:
    if reply is None:
        return None
    return Stat(
        version=reply.version,
        ephemeral_owner=reply.ephemeralOwner,
        children=reply.numChildren,
        created_ms=reply.ctime,
        modified_ms=reply.mtime,
        created_zxid=reply.czxid,
    )


def _multi(multi: Multi, reply: Any) -> list[Any] | Refusal:
    for index, (step, one) in enumerate(zip(multi.steps, reply, strict=True)):
        if isinstance(one, Exception) and not is_not_tried(one):
            return Refusal(index, translate(one, step.path))
    return [_STEPS[type(step)](step, one) for step, one in zip(multi.steps, reply, strict=True)]


def _nothing(operation: Delete | Check, reply: Any) -> None:
    return None


def _path(operation: Create, reply: Any) -> str:
    return str(reply)


def _version(operation: Set, reply: Any) -> int:
    version: int = reply.version
    return version


_STEPS: Final[dict[type, Callable[[Any, Any], Any]]] = {
    Create: _path,
    Set: _version,
    Delete: _nothing,
    Check: _nothing,
}

_CALLS: Final[dict[type, tuple[Callable[[KazooClient, Any], Any], Callable[[Any, Any], Any]]]] = {
    Get: (lambda kazoo, get: kazoo.get_async(get.path, get.watch), _node),
    Exists: (lambda kazoo, exists: kazoo.exists_async(exists.path, exists.watch), _stat),
    Children: (
        lambda kazoo, children: kazoo.get_children_async(children.path, children.watch),
        lambda children, reply: sorted(reply),
    ),
    Create: (
        lambda kazoo, create: kazoo.create_async(
            create.path, encode(create.data), ephemeral=create.ephemeral, sequence=create.sequence
        ),
        _path,
    ),
    Set: (
        lambda kazoo, write: kazoo.set_async(write.path, encode(write.data), write.version),
        _version,
    ),
    Delete: (lambda kazoo, delete: kazoo.delete_async(delete.path, delete.version), _nothing),
    Multi: (_send_multi, _multi),
}
"""Operation → (call to kazoo, conversion of its reply)."""
