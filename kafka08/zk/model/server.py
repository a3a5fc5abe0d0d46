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
from typing import Final, NamedTuple, Protocol, TypeAlias, assert_never

from kafka08.zk.model.access import NO_IDENTITIES, READ, check_access, readable_acl
from kafka08.zk.model.messages import (
    MAX_BUFFER_BYTES,
    PING_XID,
    AddIdentityRequest,
    CloseSessionRequest,
    Code,
    ConnectReply,
    ConnectRequest,
    CreateRequest,
    DeleteRequest,
    EventType,
    ExistsRequest,
    FromServer,
    GetAclRequest,
    GetChildrenRequest,
    GetDataRequest,
    Identity,
    MultiRequest,
    PingRequest,
    ReadRequest,
    Refused,
    Reply,
    Request,
    Result,
    SetAclRequest,
    SetDataRequest,
    SetWatchesRequest,
    SyncRequest,
    UnknownRequest,
    WatchEvent,
    WhoAmIRequest,
    WriteRequest,
    wire_size,
)
from kafka08.zk.model.sessions import Session, Sessions, password_of
from kafka08.zk.model.tree import Change, Transaction, Tree, Znode
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

_WRITES: Final = (CreateRequest, SetDataRequest, DeleteRequest, SetAclRequest, MultiRequest)
_READS: Final = (GetDataRequest, ExistsRequest, GetChildrenRequest, GetAclRequest)


class Recorder(Protocol):
    """Told of each change as soon as it is made, before its reply: for a server that stores its
    state."""

    def session_changed(self, session_id: int) -> None:
        """A session has begun, got another timeout, or ended."""

    def znodes_changed(self, paths: Iterable[str]) -> None:
        """One transaction has changed, created or deleted them."""


@dataclass(slots=True)
class _Connection:
    number: int
    session: Session
    member: int
    identities: frozenset[Identity] = NO_IDENTITIES


class Server:
    """tick_ms, max_session_ms: as in zoo.cfg (None: 20 ticks). Set `recorder` to store the
    state."""

    def __init__(
        self,
        *,
        tick_ms: int = 2000,
        max_session_ms: int | None = None,
        first_session_id: int = 1 << 56,
        zxid: int = 0,
    ) -> None:
        self.zxid = zxid
        self.recorder: Recorder | None = None
        self._tree = Tree()
        self._watches = Watches()
        self._sessions = Sessions(
            tick_ms=tick_ms,
            min_ms=2 * tick_ms,
            max_ms=20 * tick_ms if max_session_ms is None else max_session_ms,
            first_id=first_session_id,
        )
        self._connections: dict[int, _Connection] = {}
        self._outputs: list[Output] = []

    def connect(
        self,
        connection: int,
        request: ConnectRequest,
        now: Instant,
        member: int = 0,
        identities: frozenset[Identity] = NO_IDENTITIES,
    ) -> list[Output]:
        """The first message of a connection, whose number is `connection` from now on; it speaks
        for `identities`."""
        if request.last_zxid_seen > self.zxid:
            self._outputs.append(Close(connection))  # the client has seen a newer server
        elif request.session_id == 0:
            self._begin_session(connection, request, now, member)
        else:
            self._take_over_session(connection, request, now, member)
        if connection in self._connections:
            self._connections[connection].identities = identities
        return self._taken_outputs()

    def receive(self, connection: int, xid: int, request: Request, now: Instant) -> list[Output]:
        """A request. The server may have closed the connection meanwhile."""
        here = self._connections.get(connection)
        if here is None:
            return []
        session = here.session
        if self._sessions.find(session.id) is None or session.connection != connection:
            self._close(connection)  # the session has moved to another member, or ended there
        elif wire_size(request) > MAX_BUFFER_BYTES:
            self._close(connection)
        else:
            self._sessions.touch(session, now.elapsed_ms)
            self._respond(here, xid, request, now)
        return self._taken_outputs()

    def disconnect(self, connection: int) -> None:
        """The connection is gone; its session continues without the watches."""
        here = self._connections.pop(connection, None)
        self._watches.drop(connection)
        if here is not None and here.session.connection == connection:
            here.session.connection = None

    def expire(self, now: Instant) -> list[Output]:
        """Expire the sessions whose timeout has passed, and close their connections."""
        for session in self._sessions.overdue(now.elapsed_ms):
            self._expire(session, now)
        return self._taken_outputs()

    def end_session(self, connection: int, now: Instant) -> list[Output]:
        """Expire the session of a connection before its timeout, and close the connection."""
        here = self._connections.get(connection)
        return self.expire_session(here.session.id, now) if here else []

    def expire_session(self, session_id: int, now: Instant) -> list[Output]:
        """Expire a session before its timeout, if there is such a one, and close its
        connection."""
        session = self._sessions.find(session_id)
        if session is not None:
            self._expire(session, now)
        return self._taken_outputs()

    def _expire(self, session: Session, now: Instant) -> None:
        self._end_session(session, now)
        if session.connection is not None:
            self._close(session.connection)

    def restart(self, now: Instant) -> None:
        """Every connection is gone; znodes and sessions remain, and the timeout of each session
        begins again."""
        for connection in list(self._connections):
            self.disconnect(connection)
        self._sessions.hear_all(now.elapsed_ms)

    def find(self, path: str) -> Znode | None:
        """A znode as it is now, for observers, which must not change it."""
        return self._tree.find(path)

    def paths(self) -> list[str]:
        """Those of all znodes; a parent before its children."""
        return self._tree.paths()

    def find_session(self, session_id: int) -> Session | None:
        """A session as it is now, for observers."""
        return self._sessions.find(session_id)

    def sessions(self) -> list[Session]:
        """All of them, ascending by id."""
        return self._sessions.all()

    def watch_count(self) -> int:
        return self._watches.count()

    def load(self, path: str, znode: Znode) -> None:
        """Put a stored znode in its place, before the first connection; its parent is there."""
        self._tree.load(path, znode)

    def load_session(self, session_id: int, timeout_ms: int, now: Instant) -> None:
        """Continue a stored session, before the first connection: its timeout begins again."""
        self._sessions.load(session_id, timeout_ms, now.elapsed_ms)

    def next_deadline_ms(self) -> int | None:
        """The time at which the next session expires, in elapsed milliseconds; None without
        sessions."""
        return self._sessions.next_deadline_ms()

    def _begin_session(
        self, connection: int, request: ConnectRequest, now: Instant, member: int
    ) -> None:
        self.zxid += 1
        session = self._sessions.open(request.timeout_ms, connection, now.elapsed_ms)
        self._connections[connection] = _Connection(connection, session, member)
        self._record_session(session)
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
        granted_ms = self._sessions.granted(request.timeout_ms)
        if session.timeout_ms != granted_ms:
            session.timeout_ms = granted_ms
            self._record_session(session)
        self._sessions.touch(session, now.elapsed_ms)
        self._connections[connection] = _Connection(connection, session, member)
        self._accept(connection, session)

    def _member_of(self, session: Session) -> int | None:
        """The member that the session is connected to."""
        here = None if session.connection is None else self._connections.get(session.connection)
        return here.member if here else None

    def _accept(self, connection: int, session: Session) -> None:
        reply = ConnectReply(session.timeout_ms, session.id, password_of(session.id))
        self._outputs.append(Send(connection, reply))

    def _respond(self, here: _Connection, xid: int, request: Request, now: Instant) -> None:
        code, result = Code.OK, None
        try:
            result = self._carry_out(here, request, now)
        except Refused as refused:
            code = refused.code
        if isinstance(request, PingRequest):
            xid = PING_XID
        self._outputs.append(Send(here.number, Reply(xid, self.zxid, code, result)))
        if isinstance(request, CloseSessionRequest) or code is Code.AUTH_FAILED:
            self._close(here.number)

    def _carry_out(self, here: _Connection, request: Request, now: Instant) -> Result:
        if isinstance(request, _WRITES):
            return self._write(here, request, now)
        if isinstance(request, _READS):
            return self._read(here, request)
        if isinstance(request, SyncRequest):
            return request.path
        if isinstance(request, AddIdentityRequest):
            if request.identity is None:
                raise Refused(Code.AUTH_FAILED)
            here.identities |= {request.identity}
            return None
        if isinstance(request, WhoAmIRequest):
            return tuple(sorted(here.identities))
        if isinstance(request, UnknownRequest):
            raise Refused(Code.UNIMPLEMENTED)
        if isinstance(request, SetWatchesRequest):
            self._set_watches(here.number, request)
            return None
        if isinstance(request, CloseSessionRequest):
            self._end_session(here.session, now)
            return None
        if isinstance(request, PingRequest):
            return None
        assert_never(request)

    def _read(self, here: _Connection, request: ReadRequest) -> Result:
        path, connection, identities = request.path, here.number, here.identities
        if isinstance(request, ExistsRequest):
            if "\0" in path:
                raise Refused(Code.BAD_ARGUMENTS)
            found = self._tree.find(path)
            if found is not None:
                check_access(found.acl, READ, identities)
            if request.watch:
                self._watches.add_data_watch(path, connection)
            return self._existing(path).stat()
        znode = self._existing(path)
        if isinstance(request, GetAclRequest):
            return readable_acl(znode.acl, identities), znode.stat()
        check_access(znode.acl, READ, identities)
        if isinstance(request, GetDataRequest):
            if request.watch:
                self._watches.add_data_watch(path, connection)
            return znode.data, znode.stat()
        if request.watch:
            self._watches.add_child_watch(path, connection)
        children = sorted(znode.children)
        return (children, znode.stat()) if request.with_stat else children

    def _write(self, here: _Connection, request: WriteRequest, now: Instant) -> Result:
        self.zxid += 1  # a refused write has a zxid too
        transaction = Transaction(self.zxid, now.wall_ms, here.session.id, here.identities)
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
        self._record_session(session)
        self._notify_watchers(
            self._tree.end_session(Transaction(self.zxid, now.wall_ms, session.id))
        )

    def _record_session(self, session: Session) -> None:
        if self.recorder is not None:
            self.recorder.session_changed(session.id)

    def _notify_watchers(self, changes: list[Change]) -> None:
        if self.recorder is not None and changes:
            self.recorder.znodes_changed(dict.fromkeys(change.path for change in changes))
        for change in changes:
            if change.type is not None:
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
