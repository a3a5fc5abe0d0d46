"""A client's session on the model: messages in and out, without a thread, clock or randomness.

It implements `ZooKeeper` (zookeeper.py) as kazoo does:

    closed ── start ──▶ connecting ── accepted ──▶ connected ── connection lost ──▶ connecting
                          ▲    │                                (outstanding: ConnectionLost;
                          │    │ session expired                 watchers called and dropped)
                          └────┘ (queued: SessionExpired)

Operations are queued while it connects. It sends a heartbeat after a third of the session timeout
without a request; if no message has arrived by the next one, it drops the connection. A `World`
runs it: that of a simulation, or of a test.

Source: kazoo.protocol.connection and kazoo.client 2.11.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeAlias

from kafka08.errors import SessionLost, ZooKeeperError
from kafka08.zk.errors import ConnectionLost, SessionExpired, failure
from kafka08.zk.model.messages import (
    CloseSessionRequest,
    Code,
    ConnectReply,
    ConnectRequest,
    EventType,
    FromServer,
    PingRequest,
    Reply,
    Request,
    WatchEvent,
)
from kafka08.zk.model.translation import ERRORS, Chroot, read_result, to_request
from kafka08.zk.operations import Children, Exists, Get, Operation, Watcher
from kafka08.zk.path_check import refusal_of
from kafka08.zk.zookeeper import ConnectionState, Event, SessionSettings, StateListener

ToServer: TypeAlias = ConnectRequest | tuple[int, Request]
"""A connection's first message; a later one with its xid."""

RETRY_S: Final = 0.05
RETRY_BACKOFF: Final = 1.5
RETRY_S_MAX: Final = 1.0
HEARTBEATS_PER_TIMEOUT: Final = 3
CLOSE_S: Final = 10.0


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Link(Protocol):
    """The client's end of one connection."""

    def send(self, message: ToServer) -> None: ...

    def close(self) -> None:
        """Afterwards it delivers nothing, not even `on_closed`."""


class LinkOwner(Protocol):
    """The receiver of a link's messages. Each call names the link, since a late one may concern an
    old link."""

    def on_open(self, link: Link) -> None: ...

    def on_message(self, link: Link, message: FromServer) -> None: ...

    def on_closed(self, link: Link) -> None:
        """The connection failed, was lost, or was closed by the server."""


class World(Protocol):
    """Runs sessions: time, connections and waits. No method calls back before it returns."""

    def monotonic(self) -> float: ...

    def call_later(self, seconds: float, call: Callable[[], object]) -> Cancellable: ...

    def event(self) -> Event: ...

    def open(self, hosts: str, owner: LinkOwner) -> Link:
        """Start to connect to one of the hosts."""

    def why_unreachable(self, hosts: str) -> str: ...


class ModelSession:
    """A `ZooKeeper` and a `LinkOwner`."""

    def __init__(self, settings: SessionSettings, world: World) -> None:
        self.session_id: int | None = None
        self.granted_timeout_ms = settings.timeout_ms
        self.last_heard = world.monotonic()
        self.requests_sent = 0
        self._settings = settings
        self._world = world
        self._chroot = Chroot(settings.chroot)
        self.session_password = bytes(16)
        if settings.attach_to is not None:
            self.session_id, self.session_password = settings.attach_to
        self._listeners: list[StateListener] = []
        self._link: Link | None = None
        self._is_started = False
        self._is_connected = False
        self._is_closing = False
        self._tries = 0
        self._xid = 0
        self._last_zxid = 0
        self._timer: Cancellable | None = None
        self._heartbeat_in_flight = False
        self._queue: deque[ModelPending] = deque()
        self._in_flight: deque[tuple[float, ModelPending | None]] = deque()
        # path → watchers in the order of their registration
        self._data_watchers: dict[str, dict[Watcher, None]] = {}
        self._child_watchers: dict[str, dict[Watcher, None]] = {}
        self._ended = world.event()

    def add_state_listener(self, listener: StateListener) -> None:
        self._listeners.append(listener)

    def event(self) -> Event:
        return self._world.event()

    def why_unreachable(self) -> str:
        return self._world.why_unreachable(self._settings.hosts)

    def is_refused(self) -> bool:
        return False  # the servers of a world come back

    def start(self) -> None:
        self._is_started = True
        self._connect()

    def close(self) -> None:
        if not self._is_started:
            return
        if self._is_connected:
            self._is_closing = True
            self._write(CloseSessionRequest(), None)
            self._ended.wait(CLOSE_S)
        self._stop()

    def send(self, operation: Operation) -> ModelPending:
        pending = ModelPending(operation, self._world)
        if (refusal := refusal_of(operation)) is not None:
            pending.succeed(refusal)
        elif not self._is_started or self._is_closing:
            pending.fail(SessionLost)
        elif self._is_connected:
            self._write_operation(pending)
        else:
            self._queue.append(pending)
        return pending

    def on_open(self, link: Link) -> None:
        if link is self._link:
            self._in_flight.append((self._world.monotonic(), None))
            link.send(
                ConnectRequest(
                    self._last_zxid,
                    self._settings.timeout_ms,
                    self.session_id or 0,
                    self.session_password,
                )
            )

    def on_message(self, link: Link, message: FromServer) -> None:
        if link is not self._link:
            return
        self._heartbeat_in_flight = False
        if isinstance(message, WatchEvent):
            self._call_watchers(message)
            return
        sent_at, pending = self._in_flight.popleft()
        if isinstance(message, ConnectReply):
            self._accepted(message, sent_at)
            return
        # The reply proves no more than that the server had the request.
        self.last_heard = sent_at
        self._last_zxid = max(self._last_zxid, message.zxid)
        if pending is not None:
            self._complete(pending, message)

    def on_closed(self, link: Link) -> None:
        if link is self._link:
            self._lose_connection()

    def _connect(self) -> None:
        self._in_flight.clear()
        hosts = self._settings.hosts
        seconds = self._settings.timeout_ms / 1000 / len(hosts.split(","))
        self._link = self._world.open(hosts, self)
        self._set_timer(seconds, self._lose_connection)

    def _accepted(self, reply: ConnectReply, sent_at: float) -> None:
        if reply.timeout_ms <= 0:
            self._lose_session()
            return
        self.session_id, self.session_password = reply.session_id, reply.password
        self.granted_timeout_ms, self.last_heard = reply.timeout_ms, sent_at
        self._is_connected = True
        self._tries = 0
        self._xid = 0
        self._notify(ConnectionState.CONNECTED)
        self._set_heartbeat()
        while self._queue:
            self._write_operation(self._queue.popleft())

    def _lose_connection(self) -> None:
        """Connect again after a pause, which grows with each failed attempt."""
        self._drop_link()
        if self._is_closing:
            self._ended.set()
            return
        if self._is_connected:
            self._is_connected = False
            self._fail_all(ConnectionLost)
            self._notify(ConnectionState.SUSPENDED)
            self._drop_watchers()
        delay = min(RETRY_S * RETRY_BACKOFF**self._tries, RETRY_S_MAX)
        self._tries += 1
        self._set_timer(delay, self._connect)

    def _lose_session(self) -> None:
        self._drop_link()
        self.session_id, self.session_password, self._last_zxid = None, bytes(16), 0
        self._notify(ConnectionState.LOST)
        self._fail_all(SessionExpired)
        self._set_timer(0, self._connect)

    def _stop(self) -> None:
        self._is_started = self._is_connected = False
        self._drop_link()
        self._notify(ConnectionState.LOST)
        self._fail_all(SessionLost)
        self._drop_watchers(call=False)
        self.session_id = None

    def _drop_link(self) -> None:
        self._set_timer(None, self._connect)
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _write_operation(self, pending: ModelPending) -> None:
        self.requests_sent += 1
        self._write(to_request(pending.operation, self._chroot), pending)

    def _write(self, request: Request, pending: ModelPending | None) -> None:
        assert self._link is not None, "it is connected"
        self._xid += 1
        self._in_flight.append((self._world.monotonic(), pending))
        self._link.send((self._xid, request))
        # Any request is a sign of life: the next heartbeat is due a whole interval after it.
        self._set_heartbeat()

    def _set_heartbeat(self) -> None:
        seconds = self.granted_timeout_ms / 1000 / HEARTBEATS_PER_TIMEOUT
        self._set_timer(seconds, self._heartbeat)

    def _heartbeat(self) -> None:
        if self._heartbeat_in_flight:
            self._lose_connection()
            return
        self._heartbeat_in_flight = True
        self._write(PingRequest(), None)

    def _set_timer(self, seconds: float | None, call: Callable[[], object]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._world.call_later(seconds, call)

    def _complete(self, pending: ModelPending, reply: Reply) -> None:
        operation = pending.operation
        if reply.code is Code.OK:
            pending.succeed(read_result(operation, reply.result, self._chroot))
        elif reply.code is Code.NO_NODE and isinstance(operation, Exists):
            # Its watch, for the creation, is set all the same.
            pending.succeed(None)
        else:
            pending.fail(ERRORS[reply.code])
            return
        if isinstance(operation, Get | Exists | Children) and operation.watch is not None:
            is_child_watch = isinstance(operation, Children)
            watchers = self._child_watchers if is_child_watch else self._data_watchers
            path = self._chroot.above(operation.path)
            watchers.setdefault(path, {})[operation.watch] = None

    def _call_watchers(self, event: WatchEvent) -> None:
        watchers: list[Watcher] = []
        if event.type is not EventType.CHILDREN_CHANGED:
            watchers += self._data_watchers.pop(event.path, ())
        if event.type in {EventType.CHILDREN_CHANGED, EventType.DELETED}:
            watchers += self._child_watchers.pop(event.path, ())
        self._dispatch(watchers)

    def _drop_watchers(self, *, call: bool = True) -> None:
        tables = (self._data_watchers, self._child_watchers)
        watchers = [w for table in tables for path in sorted(table) for w in table[path]]
        for table in tables:
            table.clear()
        if call:
            self._dispatch(watchers)

    def _dispatch(self, watchers: Iterable[Watcher]) -> None:
        for watcher in watchers:
            self._world.call_later(0, watcher)

    def _fail_all(self, kind: type[ZooKeeperError]) -> None:
        failed = [pending for _, pending in self._in_flight if pending is not None]
        failed += self._queue
        self._in_flight.clear()
        self._queue.clear()
        for pending in failed:
            pending.fail(kind)

    def _notify(self, state: ConnectionState) -> None:
        for listener in self._listeners:
            listener(state)


class ModelPending:
    """A `Pending`."""

    __slots__ = ("_event", "_is_ready", "_outcome", "_world", "operation")

    def __init__(self, operation: Operation, world: World) -> None:
        self.operation = operation
        self._world = world
        self._event: Event | None = None
        self._is_ready = False
        self._outcome: Any = None

    def ready(self) -> bool:
        return self._is_ready

    def wait(self, seconds: float, /) -> None:
        if not self._is_ready:
            self._event = self._event or self._world.event()
            self._event.wait(seconds)

    def outcome(self) -> Any:
        return self._outcome

    def succeed(self, result: Any) -> None:
        self._outcome, self._is_ready = result, True
        if self._event is not None:
            self._event.set()

    def fail(self, kind: type[ZooKeeperError]) -> None:
        self.succeed(failure(kind, self.operation.path))
