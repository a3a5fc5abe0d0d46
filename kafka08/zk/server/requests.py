"""Bytes of a client → the model's requests.

Clients of ZooKeeper 3.3 to 3.9. Of the types that a Kafka of any age sends, those after 3.5 that
nothing of it needs (containers, TTLs, persistent watches, reconfiguration, SASL) get UNIMPLEMENTED.

Source: zookeeper.jute, ZooDefs.OpCode, DigestAuthenticationProvider 3.9.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from kafka08.zk.model.messages import (
    OPEN_ACL,
    Acl,
    AddIdentityRequest,
    CheckVersionRequest,
    CloseSessionRequest,
    ConnectRequest,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetAclRequest,
    GetChildrenRequest,
    GetDataRequest,
    Identity,
    MultiRequest,
    PingRequest,
    Request,
    SetAclRequest,
    SetDataRequest,
    SetWatchesRequest,
    StepRequest,
    SyncRequest,
    UnknownRequest,
    WhoAmIRequest,
)
from kafka08.zk.server.jute import MalformedRecord, Reader

CREATE: Final = 1
DELETE: Final = 2
SET_DATA: Final = 5
CHECK: Final = 13
CREATE2: Final = 15
ERROR: Final = -1
_EPHEMERAL: Final = 1
_SEQUENCE: Final = 2
_PASSWORD_BYTES: Final = 16


class Handshake(NamedTuple):
    """The first record of a connection. has_read_only: the client is not older than 3.4, and its
    reply has that field too."""

    request: ConnectRequest
    has_read_only: bool


def read_connect(record: bytes) -> Handshake:
    """Raises MalformedRecord."""
    reader = Reader(record)
    reader.int32()  # the protocol version, always 0
    last_zxid, timeout_ms, session_id = reader.int64(), reader.int32(), reader.int64()
    password = reader.buffer() or b""
    if len(password) > _PASSWORD_BYTES:
        raise MalformedRecord(f"a password of {len(password)} bytes")
    return Handshake(
        ConnectRequest(last_zxid, timeout_ms, session_id, password), reader.remaining() > 0
    )


def read_request(record: bytes) -> tuple[int, Request]:
    """(xid, request). Raises MalformedRecord."""
    reader = Reader(record)
    xid, kind = reader.int32(), reader.int32()
    read = _READERS.get(kind)
    return xid, UnknownRequest() if read is None else read(reader)


def _read_create(reader: Reader, *, with_stat: bool) -> CreateRequest | UnknownRequest:
    path, data, acl, flags = reader.text(), reader.buffer(), _read_acl(reader), reader.int32()
    if flags & ~(_EPHEMERAL | _SEQUENCE):
        return UnknownRequest()  # a container or a TTL
    return CreateRequest(
        path, data, bool(flags & _EPHEMERAL), bool(flags & _SEQUENCE), acl, with_stat
    )


def _read_acl(reader: Reader) -> tuple[Acl, ...]:
    acl = reader.vector(lambda reader: Acl(reader.int32(), reader.text(), reader.text()))
    return OPEN_ACL if acl == OPEN_ACL else acl


def _read_multi(reader: Reader) -> MultiRequest | UnknownRequest:
    steps: list[StepRequest] = []
    while True:
        kind, is_done, _ = reader.int32(), reader.flag(), reader.int32()
        if is_done:
            return MultiRequest(tuple(steps))
        read = _STEPS.get(kind)
        step = UnknownRequest() if read is None else read(reader)
        if isinstance(step, UnknownRequest):
            return step
        steps.append(step)


def _read_set_watches(reader: Reader) -> SetWatchesRequest:
    zxid = reader.int64()
    data, exist, children = (reader.vector(Reader.text) for _ in range(3))
    return SetWatchesRequest(zxid, data, exist, children)


def _read_set_watches2(reader: Reader) -> SetWatchesRequest | UnknownRequest:
    request = _read_set_watches(reader)
    persistent = [path for _ in range(2) for path in reader.vector(Reader.text)]
    return UnknownRequest() if persistent else request


def _read_auth(reader: Reader) -> AddIdentityRequest:
    reader.int32()  # always 0
    scheme, credentials = reader.text(), reader.buffer() or b""
    if scheme != "digest":
        return AddIdentityRequest(None)
    user = credentials.partition(b":")[0].decode("utf-8", "replace")
    password_hash = base64.b64encode(hashlib.sha1(credentials).digest()).decode()
    return AddIdentityRequest(Identity("digest", f"{user}:{password_hash}"))


_Write: TypeAlias = CreateRequest | SetDataRequest | DeleteRequest | UnknownRequest

_WRITES: Final[dict[int, Callable[[Reader], _Write]]] = {
    CREATE: partial(_read_create, with_stat=False),
    CREATE2: partial(_read_create, with_stat=True),
    DELETE: lambda reader: DeleteRequest(reader.text(), reader.int32()),
    SET_DATA: lambda reader: SetDataRequest(reader.text(), reader.buffer(), reader.int32()),
}

_STEPS: Final[dict[int, Callable[[Reader], StepRequest | UnknownRequest]]] = {
    **_WRITES,
    CHECK: lambda reader: CheckVersionRequest(reader.text(), reader.int32()),
}

_READERS: Final[dict[int, Callable[[Reader], Request]]] = {
    **_WRITES,
    3: lambda reader: ExistsRequest(reader.text(), reader.flag()),
    4: lambda reader: GetDataRequest(reader.text(), reader.flag()),
    6: lambda reader: GetAclRequest(reader.text()),
    7: lambda reader: SetAclRequest(reader.text(), _read_acl(reader), reader.int32()),
    8: lambda reader: GetChildrenRequest(reader.text(), reader.flag()),
    9: lambda reader: SyncRequest(reader.text()),
    11: lambda reader: PingRequest(),
    12: lambda reader: GetChildrenRequest(reader.text(), reader.flag(), with_stat=True),
    14: _read_multi,
    100: _read_auth,
    101: _read_set_watches,
    105: _read_set_watches2,
    107: lambda reader: WhoAmIRequest(),
    -11: lambda reader: CloseSessionRequest(),
}
