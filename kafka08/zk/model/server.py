"""One logical ZooKeeper: messages of connections in, messages to connections out.

Its driver numbers the connections, delivers the server's messages (those of a connection in order,
as TCP does) and calls `expire` at `next_deadline_ms`. All outputs of one call happen at once; the
watch events of a write precede its reply.

Sessions may move: a connection names the `member` of the ensemble that it leads to. When another
connection takes a session over, the old one is closed: at once if it leads to the same member, else
at its next request, which is not applied (SessionMoved).

Source: ZooKeeperServer, FinalRequestProcessor, PrepRequestProcessor 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, assert_never

from kafka08.zk.model.messages import (
    MAX_BUFFER_BYTES,
    PING_XID,
    CloseSessionRequest,
    Code,
    ConnectReply,
    ConnectRequest,
    CreateRequest,
    DeleteRequest,
    EventType,
    ExistsRequest,
    FromServer,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    PingRequest,
    Reply,
    Request,
    Result,
    SetDataRequest,
    SetWatchesRequest,
    WatchEvent,
    WriteRequest,
    wire_size,
)
from kafka08.zk.model.sessions import Session, Sessions, password_of
from kafka08.zk.model.tree import Change, Refused, Transaction, Tree, Znode
from kafka08.zk.model.watches import Watches

NO_ZXID: Final = -1


class Instant(NamedTuple):
    """elapsed_ms never goes back and determines when sessions expire; wall_ms is the time in
    Stats."""

    elapsed_ms: int
    wall_ms: int


@dataclass(frozen=True, slots=True)
class Send:
    connection: int
    message: FromServer


@dataclass(frozen=True, slots=True)
class Close:
    """The server closes the connection, after the messages that it has sent on it."""

    connection: int


Output: TypeAlias = Send | Close


@dataclass(slots=True)
class _Connection:
    session_id: int
    member: int


class Server:
    """tick_ms, min_session_ms, max_session_ms: as in zoo.cfg (None: 2 and 20 ticks)."""

    def __init__(
        self,
        *,
        tick_ms: int = 2000,
        min_session_ms: int | None = None,
        max_session_ms: int | None = None,
        first_session_id: int = 1 << 56,
        zxid: int = 0,
    ) -> None:
        self.zxid = zxid
        self._tree = Tree()
        self._watches = Watches()
        self._sessions = Sessions(
            tick_ms=tick_ms,
            min_ms=2 * tick_ms if min_session_ms is None else min_session_ms,
            max_ms=20 * tick_ms if max_session_ms is None else max_session_ms,
            first_id=first_session_id,
        )
        self._connections: dict[int, _Connection] = {}
        self._outputs: list[Output] = []

    def connect(
        self, connection: int, request: ConnectRequest, now: Instant, member: int = 0
    ) -> list[Output]:
        """The first message of a connection, whose number is `connection` from now on."""
        if request.last_zxid_seen > self.zxid:
            self._outputs.append(Close(connection))  # the client has seen a newer server
        elif request.session_id == 0:
            self._begin_session(connection, request, now, member)
        else:
            self._take_over_session(connection, request, now, member)
        return self._taken_outputs()

    def receive(self, connection: int, xid: int, request: Request, now: Instant) -> list[Output]:
        """A request. The server may have closed the connection meanwhile."""
        here = self._connections.get(connection)
        if here is None:
            return []
        session = self._sessions.find(here.session_id)
        if session is None or session.connection != connection:
            self._close(connection)  # the session has moved to another member, or ended there
        elif wire_size(request) > MAX_BUFFER_BYTES:
            self._close(connection)
        else:
            self._sessions.touch(session, now.elapsed_ms)
            self._respond(connection, session, xid, request, now)
        return self._taken_outputs()

    def disconnect(self, connection: int) -> None:
        """The connection is gone; its session continues without the watches."""
        here = self._connections.pop(connection, None)
        self._watches.drop(connection)
        session = self._sessions.find(here.session_id) if here else None
        if session is not None and session.connection == connection:
            session.connection = None

    def expire(self, now: Instant) -> list[Output]:
        """Expire the sessions whose timeout has passed, and close their connections."""
        for session in self._sessions.overdue(now.elapsed_ms):
            self._end_session(session, now)
            if session.connection is not None:
                self._close(session.connection)
        return self._taken_outputs()

    def end_session(self, connection: int, now: Instant) -> list[Output]:
        """Expire the session of a connection before its timeout, and close the connection."""
        here = self._connections.get(connection)
        session = self._sessions.find(here.session_id) if here else None
        if session is not None:
            self._end_session(session, now)
            self._close(connection)
        return self._taken_outputs()

    def restart(self, now: Instant) -> None:
        """Every connection is gone; znodes and sessions remain, and the timeout of each session
        begins again."""
        for connection in list(self._connections):
            self.disconnect(connection)
        self._sessions.hear_all(now.elapsed_ms)

    def find(self, path: str) -> Znode | None:
        """A znode as it is now, for observers, which must not change it."""
        return self._tree.find(path)

    def next_deadline_ms(self) -> int | None:
        """The time at which the next session expires, in elapsed milliseconds; None without
        sessions."""
        return self._sessions.next_deadline_ms()

    def _begin_session(
        self, connection: int, request: ConnectRequest, now: Instant, member: int
    ) -> None:
        self.zxid += 1
        session = self._sessions.open(request.timeout_ms, connection, now.elapsed_ms)
        self._connections[connection] = _Connection(session.id, member)
        self._accept(connection, session)

    def _take_over_session(
        self, connection: int, request: ConnectRequest, now: Instant, member: int
    ) -> None:
        session = self._sessions.find(request.session_id)
        if session is not None and self._member_of(session) == member:
            assert session.connection is not None, "a member holds it"
            self._close(session.connection)  # before the password is checked
        if session is None or request.password != password_of(session.id):
            self._outputs += [
                Send(connection, ConnectReply(0, 0, bytes(16))),
                Close(connection),
            ]
            return
        session.connection = connection
        session.timeout_ms = self._sessions.granted(request.timeout_ms)
        self._sessions.touch(session, now.elapsed_ms)
        self._connections[connection] = _Connection(session.id, member)
        self._accept(connection, session)

    def _member_of(self, session: Session) -> int | None:
        """The member that the session is connected to."""
        here = None if session.connection is None else self._connections.get(session.connection)
        return here.member if here else None

    def _accept(self, connection: int, session: Session) -> None:
        reply = ConnectReply(session.timeout_ms, session.id, password_of(session.id))
        self._outputs.append(Send(connection, reply))

    def _respond(
        self, connection: int, session: Session, xid: int, request: Request, now: Instant
    ) -> None:
        code, result = Code.OK, None
        try:
            result = self._carry_out(connection, session, request, now)
        except Refused as refused:
            code = refused.code
        if isinstance(request, PingRequest):
            xid = PING_XID
        self._outputs.append(Send(connection, Reply(xid, self.zxid, code, result)))
        if isinstance(request, CloseSessionRequest):
            self._close(connection)

    def _carry_out(
        self, connection: int, session: Session, request: Request, now: Instant
    ) -> Result:
        if isinstance(request, CreateRequest | SetDataRequest | DeleteRequest | MultiRequest):
            return self._write(session, request, now)
        if isinstance(request, GetDataRequest):
            znode = self._existing(request.path)
            if request.watch:
                self._watches.add_data_watch(request.path, connection)
            return znode.data, znode.stat()
        if isinstance(request, ExistsRequest):
            if "\0" in request.path:
                raise Refused(Code.BAD_ARGUMENTS)
            if request.watch:
                self._watches.add_data_watch(request.path, connection)
            return self._existing(request.path).stat()
        if isinstance(request, GetChildrenRequest):
            znode = self._existing(request.path)
            if request.watch:
                self._watches.add_child_watch(request.path, connection)
            return sorted(znode.children)
        if isinstance(request, SetWatchesRequest):
            self._set_watches(connection, request)
            return None
        if isinstance(request, CloseSessionRequest):
            self._end_session(session, now)
            return None
        if isinstance(request, PingRequest):
            return None
        assert_never(request)

    def _write(self, session: Session, request: WriteRequest, now: Instant) -> Result:
        self.zxid += 1  # a refused write has a zxid too
        transaction = Transaction(self.zxid, now.wall_ms, session.id)
        if isinstance(request, MultiRequest):
            results, changes = self._tree.write_all(request.steps, transaction)
            self._notify_watchers(changes)
            return results
        result, changes = self._tree.write(request, transaction)
        self._notify_watchers(changes)
        assert not isinstance(result, Code), "Refused was raised instead"
        return result

    def _existing(self, path: str) -> Znode:
        znode = self._tree.find(path)
        if znode is None:
            raise Refused(Code.NO_NODE)
        return znode

    def _end_session(self, session: Session, now: Instant) -> None:
        self.zxid += 1
        self._sessions.end(session)
        self._notify_watchers(
            self._tree.end_session(Transaction(self.zxid, now.wall_ms, session.id))
        )

    def _notify_watchers(self, changes: Iterable[Change]) -> None:
        for change in changes:
            event = WatchEvent(change.type, change.path, self.zxid)
            self._outputs += [Send(hearer, event) for hearer in self._watches.take(change)]

    def _set_watches(self, connection: int, request: SetWatchesRequest) -> None:
        seen = request.relative_zxid

        def notify(kind: EventType, path: str) -> None:
            self._outputs.append(Send(connection, WatchEvent(kind, path, NO_ZXID)))

        for path in request.data_watches:
            znode = self._tree.find(path)
            if znode is None:
                notify(EventType.DELETED, path)
            elif znode.mzxid > seen:
                notify(EventType.DATA_CHANGED, path)
            else:
                self._watches.add_data_watch(path, connection)
        for path in request.exist_watches:
            if self._tree.find(path) is not None:
                notify(EventType.CREATED, path)
            else:
                self._watches.add_data_watch(path, connection)
        for path in request.child_watches:
            znode = self._tree.find(path)
            if znode is None:
                notify(EventType.DELETED, path)
            elif znode.pzxid > seen:
                notify(EventType.CHILDREN_CHANGED, path)
            else:
                self._watches.add_child_watch(path, connection)

    def _close(self, connection: int) -> None:
        self._outputs.append(Close(connection))
        self.disconnect(connection)

    def _taken_outputs(self) -> list[Output]:
        taken, self._outputs = self._outputs, []
        return taken
