"""The messages of a connection to ZooKeeper, as values: requests, replies, watch events.

One class for each record of ZooKeeper's protocol that clients of Kafka's age use.

Source: zookeeper.jute and org.apache.zookeeper.KeeperException.Code 3.9.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

MAX_BUFFER_BYTES: Final = 0xFFFFF
"""jute.maxbuffer: the server closes the connection of a longer request."""
PING_XID: Final = -2
_OPEN_ACL_BYTES: Final = 4 + 4 + (4 + len("world")) + (4 + len("anyone"))
_HEADER_BYTES: Final = 8
_MULTI_HEADER_BYTES: Final = 9


class Code(enum.IntEnum):
    OK = 0
    RUNTIME_INCONSISTENCY = -2
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    INVALID_ACL = -114
    AUTH_FAILED = -115


class Refused(Exception):
    """The request was not applied; `code` is the reason."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


class EventType(enum.IntEnum):
    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4


class ZnodeStat(NamedTuple):
    """The record Stat, with its order of fields. Times are wall-clock milliseconds of the
    server."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class Identity(NamedTuple):
    """Whom a connection speaks for: ("world", "anyone"), ("digest", "user:hash"), ("ip", …)."""

    scheme: str
    id: str


class Acl(NamedTuple):
    """One entry of an access list: permissions (access.py) of an identity."""

    perms: int
    scheme: str
    id: str


OPEN_ACL: Final = (Acl(31, "world", "anyone"),)
"""All permissions for anyone: the access list of every znode that names no other."""


@dataclass(frozen=True, slots=True)
class GetDataRequest:
    """Reply: (data, ZnodeStat)."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class ExistsRequest:
    """Reply: ZnodeStat. With NO_NODE the watch is set too."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetChildrenRequest:
    """Reply: the names, sorted (a real server: in no order); with_stat: (names, ZnodeStat)."""

    path: str
    watch: bool = False
    with_stat: bool = False


@dataclass(frozen=True, slots=True)
class GetAclRequest:
    """Reply: (access list, ZnodeStat)."""

    path: str


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """Reply: the path. Every read here sees the newest write anyway."""

    path: str


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """Reply: the created path; with_stat: (path, ZnodeStat)."""

    path: str
    data: bytes | None
    ephemeral: bool = False
    sequence: bool = False
    acl: tuple[Acl, ...] = OPEN_ACL
    with_stat: bool = False


@dataclass(frozen=True, slots=True)
class SetDataRequest:
    """Reply: ZnodeStat."""

    path: str
    data: bytes | None
    version: int = -1


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """Reply: None."""

    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class SetAclRequest:
    """version: of the access list. Not in a multi. Reply: ZnodeStat."""

    path: str
    acl: tuple[Acl, ...]
    version: int = -1


@dataclass(frozen=True, slots=True)
class CheckVersionRequest:
    """A version check, in a multi only. Reply: None."""

    path: str
    version: int = -1


StepRequest: TypeAlias = CreateRequest | SetDataRequest | DeleteRequest | CheckVersionRequest


@dataclass(frozen=True, slots=True)
class MultiRequest:
    """Reply: one result for each step; if a step failed, a Code for each: OK before it, its own
    error, RUNTIME_INCONSISTENCY after it. The reply's own code is OK either way."""

    steps: tuple[StepRequest, ...]


@dataclass(frozen=True, slots=True)
class SetWatchesRequest:
    """Sets the watches of an earlier connection again; changes after `relative_zxid` are sent as
    events before the reply. Reply: None."""

    relative_zxid: int
    data_watches: tuple[str, ...] = ()
    exist_watches: tuple[str, ...] = ()
    child_watches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AddIdentityRequest:
    """The connection speaks for `identity` too; None: it cannot, since its scheme is unknown.
    Reply: None; AUTH_FAILED closes the connection."""

    identity: Identity | None


@dataclass(frozen=True, slots=True)
class WhoAmIRequest:
    """Reply: the connection's identities."""


@dataclass(frozen=True, slots=True)
class UnknownRequest:
    """One that the server does not implement. Reply: UNIMPLEMENTED."""


@dataclass(frozen=True, slots=True)
class PingRequest:
    """A heartbeat. Reply: None, always with PING_XID."""


@dataclass(frozen=True, slots=True)
class CloseSessionRequest:
    """Reply: None; then the server closes the connection."""


SingleWrite: TypeAlias = CreateRequest | SetDataRequest | DeleteRequest | SetAclRequest
WriteRequest: TypeAlias = SingleWrite | MultiRequest
ReadRequest: TypeAlias = GetDataRequest | ExistsRequest | GetChildrenRequest | GetAclRequest
Request: TypeAlias = (
    ReadRequest
    | WriteRequest
    | SyncRequest
    | SetWatchesRequest
    | AddIdentityRequest
    | WhoAmIRequest
    | UnknownRequest
    | PingRequest
    | CloseSessionRequest
)

StepResult: TypeAlias = ZnodeStat | str | tuple[str, ZnodeStat] | Code | None
Result: TypeAlias = (
    tuple[bytes | None, ZnodeStat]
    | tuple[str, ZnodeStat]
    | tuple[list[str], ZnodeStat]
    | tuple[tuple[Acl, ...], ZnodeStat]
    | tuple[Identity, ...]
    | ZnodeStat
    | list[str]
    | list[StepResult]
    | str
    | None
)


@dataclass(frozen=True, slots=True)
class ConnectRequest:
    """The first message of a connection. session_id 0: a new session."""

    last_zxid_seen: int = 0
    timeout_ms: int = 6000
    session_id: int = 0
    password: bytes = bytes(16)


@dataclass(frozen=True, slots=True)
class ConnectReply:
    """timeout_ms 0: the session has expired (or the password is wrong)."""

    timeout_ms: int
    session_id: int
    password: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """xid: that of the request. zxid: that of the server's newest write."""

    xid: int
    zxid: int
    code: Code
    result: Result = None


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """zxid: that of the write; -1 for an event of SetWatches."""

    type: EventType
    path: str
    zxid: int


FromServer: TypeAlias = ConnectReply | Reply | WatchEvent


def wire_size(request: Request) -> int:
    """Bytes of the request on the wire, without its length prefix."""
    if isinstance(request, MultiRequest):
        steps = sum(_MULTI_HEADER_BYTES + _body_size(step) for step in request.steps)
        return _HEADER_BYTES + steps + _MULTI_HEADER_BYTES
    if isinstance(request, CreateRequest | SetDataRequest):
        return _HEADER_BYTES + _body_size(request)
    return _HEADER_BYTES  # cannot reach the limit in any use of Kafka's


def _body_size(step: StepRequest) -> int:
    size = 4 + len(step.path.encode()) + 4
    if isinstance(step, CreateRequest | SetDataRequest):
        size += 4 + len(step.data or b"")
    return size + (_OPEN_ACL_BYTES if isinstance(step, CreateRequest) else 0)
