"""The model's messages as bytes of ZooKeeper's protocol, and a client that sends them to a server.

This is the client's side only: it writes requests and reads replies and events. It has one socket
and no thread, so it sees messages in the order in which the server sent them.

Source: zookeeper.jute 3.9. Each record is preceded by its length."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from kafka08.zk.model.messages import (
    PING_XID,
    CheckVersionRequest,
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
    StepRequest,
    StepResult,
    WatchEvent,
    ZnodeStat,
)

CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_CHILDREN = 1, 2, 3, 4, 5, 8
PING, CHECK, MULTI, SET_WATCHES, CLOSE, ERROR = 11, 13, 14, 101, -11, -1
OP_CODES: dict[type, int] = {
    CreateRequest: CREATE,
    DeleteRequest: DELETE,
    ExistsRequest: EXISTS,
    GetDataRequest: GET_DATA,
    SetDataRequest: SET_DATA,
    GetChildrenRequest: GET_CHILDREN,
    PingRequest: PING,
    CheckVersionRequest: CHECK,
    MultiRequest: MULTI,
    SetWatchesRequest: SET_WATCHES,
    CloseSessionRequest: CLOSE,
}
STAT = struct.Struct(">qqqqiiiqiiq")
EVENT_XID = -1
OPEN_ACL = struct.pack(">ii", 1, 31)


def text(value: str) -> bytes:
    return buffer(value.encode())


def buffer(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def texts(values: tuple[str, ...]) -> bytes:
    return struct.pack(">i", len(values)) + b"".join(map(text, values))


def encode_connect(request: ConnectRequest) -> bytes:
    head = struct.pack(">iqiq", 0, request.last_zxid_seen, request.timeout_ms, request.session_id)
    return head + buffer(request.password)


def encode(xid: int, request: Request) -> bytes:
    return struct.pack(">ii", xid, OP_CODES[type(request)]) + body(request)


def body(request: Request | StepRequest) -> bytes:
    match request:
        case GetDataRequest() | ExistsRequest() | GetChildrenRequest():
            return text(request.path) + struct.pack(">?", request.watch)
        case CreateRequest():
            acl = OPEN_ACL + text("world") + text("anyone")
            flags = request.ephemeral + 2 * request.sequence
            return text(request.path) + buffer(request.data) + acl + struct.pack(">i", flags)
        case SetDataRequest():
            return text(request.path) + buffer(request.data) + struct.pack(">i", request.version)
        case DeleteRequest() | CheckVersionRequest():
            return text(request.path) + struct.pack(">i", request.version)
        case MultiRequest():
            steps = [
                struct.pack(">i?i", OP_CODES[type(step)], False, -1) + body(step)
                for step in request.steps
            ]
            return b"".join(steps) + struct.pack(">i?i", -1, True, -1)
        case SetWatchesRequest():
            watches = (request.data_watches, request.exist_watches, request.child_watches)
            return struct.pack(">q", request.relative_zxid) + b"".join(map(texts, watches))
        case _:
            return b""


@dataclass
class Reader:
    data: bytes
    position: int = 0

    def take(self, form: str) -> int:
        (value,) = struct.unpack_from(">" + form, self.data, self.position)
        self.position += struct.calcsize(">" + form)
        return int(value)

    def buffer(self) -> bytes | None:
        length = self.take("i")
        if length < 0:
            return None
        self.position += length
        return self.data[self.position - length : self.position]

    def text(self) -> str:
        return (self.buffer() or b"").decode()

    def stat(self) -> ZnodeStat:
        self.position += STAT.size
        return ZnodeStat(*STAT.unpack_from(self.data, self.position - STAT.size))


def decode_connect(data: bytes) -> ConnectReply:
    reader = Reader(data)
    reader.take("i")
    return ConnectReply(reader.take("i"), reader.take("q"), reader.buffer() or b"")


def decode(data: bytes, outstanding: list[tuple[int, Request]]) -> Reply | WatchEvent:
    reader = Reader(data)
    xid, zxid, code = reader.take("i"), reader.take("q"), Code(reader.take("i"))
    if xid == EVENT_XID:
        kind = EventType(reader.take("i"))
        assert reader.take("i") == 3, "SyncConnected"
        return WatchEvent(kind, reader.text(), zxid)
    expected, request = outstanding.pop(0)
    assert xid in {expected, PING_XID}
    return Reply(xid, zxid, code, result(request, reader) if code is Code.OK else None)


def result(request: Request, reader: Reader) -> Result:
    match request:
        case GetDataRequest():
            return reader.buffer(), reader.stat()
        case ExistsRequest() | SetDataRequest():
            return reader.stat()
        case GetChildrenRequest():
            return sorted(reader.text() for _ in range(reader.take("i")))
        case CreateRequest():
            return reader.text()
        case MultiRequest():
            return multi_results(reader)
        case _:
            return None


def multi_results(reader: Reader) -> list[StepResult]:
    results: list[StepResult] = []
    while True:
        kind, done, _ = reader.take("i"), reader.take("?"), reader.take("i")
        if done:
            return results
        match kind:
            case 1:
                results.append(reader.text())
            case 5:
                results.append(reader.stat())
            case -1:
                results.append(Code(reader.take("i")))
            case _:
                results.append(None)


class WireClient:
    """One connection to a real server. `seen` has the messages that arrived, in order; `closed` is
    set when the server has closed the connection."""

    def __init__(self, address: tuple[str, int], request: ConnectRequest) -> None:
        self.seen: list[FromServer] = []
        self.closed = False
        self._outstanding: list[tuple[int, Request]] = []
        self._socket = socket.create_connection(address, timeout=20)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._input = self._socket.makefile("rb")
        self._write(encode_connect(request))
        frame = self._read()
        if frame is not None:
            self.seen.append(decode_connect(frame))

    def send(self, xid: int, request: Request) -> None:
        self._outstanding.append((xid, request))
        self._write(encode(xid, request))

    def receive_all(self) -> None:
        """Reads until every request has a reply, or the connection is closed."""
        while self._outstanding and not self.closed:
            self.receive()

    def receive_until_closed(self) -> None:
        while not self.closed:
            self.receive()

    def receive(self) -> None:
        frame = self._read()
        if frame is not None:
            self.seen.append(decode(frame, self._outstanding))

    def drop(self) -> None:
        """Closes the connection and waits until the server has noticed. The server then forgets
        which connection a session has, and would also forget a newer one."""
        self._socket.shutdown(socket.SHUT_WR)
        while not self.closed:
            self._read()

    def close(self) -> None:
        self._input.close()
        self._socket.close()
        self.closed = True

    def _write(self, data: bytes) -> None:
        try:
            self._socket.sendall(struct.pack(">i", len(data)) + data)
        except ConnectionError:
            pass  # what the server has sent before it closed is still to be read

    def _read(self) -> bytes | None:
        try:
            head = self._input.read(4)
            if len(head) == 4:
                return self._input.read(int(struct.unpack(">i", head)[0]))
        except ConnectionError:
            pass
        self.closed = True
        return None
