"""The model's replies and events → bytes for a client, each with its length before it.

The forms of results depend on the request, which the caller keeps until its reply.

Source: zookeeper.jute, MultiResponse, FinalRequestProcessor 3.9.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

from kafka08.zk.model.messages import (
    CheckVersionRequest,
    Code,
    ConnectReply,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetAclRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    Reply,
    Request,
    SetAclRequest,
    SetDataRequest,
    StepRequest,
    StepResult,
    SyncRequest,
    WatchEvent,
    WhoAmIRequest,
    ZnodeStat,
)
from kafka08.zk.server.jute import write_buffer, write_int, write_text, write_vector
from kafka08.zk.server.requests import CHECK, CREATE, CREATE2, DELETE, ERROR, SET_DATA

_HEADER: Final = struct.Struct(">iqi")
_STAT: Final = struct.Struct(">qqqqiiiqiiq")
_MULTI_HEADER: Final = struct.Struct(">i?i")
_EVENT: Final = struct.Struct(">ii")
_EVENT_XID: Final = -1
_CONNECTED: Final = 3
"""The state in an event: SyncConnected."""


def write_connect(reply: ConnectReply, *, has_read_only: bool) -> bytes:
    body = struct.pack(">iiq", 0, reply.timeout_ms, reply.session_id)
    body += write_buffer(reply.password)
    return write_buffer(body + b"\0" if has_read_only else body)


def write_event(event: WatchEvent) -> bytes:
    head = _HEADER.pack(_EVENT_XID, event.zxid, Code.OK)
    return write_buffer(head + _EVENT.pack(event.type, _CONNECTED) + write_text(event.path))


def write_reply(request: Request, reply: Reply) -> bytes:
    head = _HEADER.pack(reply.xid, reply.zxid, reply.code)
    return write_buffer(head if reply.code else head + _result(request, reply.result))


def _result(request: Request, result: Any) -> bytes:
    if isinstance(request, GetDataRequest):
        data, stat = result
        return write_buffer(data) + _STAT.pack(*stat)
    if isinstance(request, ExistsRequest | SetDataRequest | SetAclRequest):
        return _STAT.pack(*result)
    if isinstance(request, GetChildrenRequest):
        names, stats = result if request.with_stat else (result, None)
        return write_vector(map(write_text, names)) + _optional(stats)
    if isinstance(request, CreateRequest):
        return _created(result)
    if isinstance(request, MultiRequest):
        return _multi(request.steps, result)
    if isinstance(request, SyncRequest):
        return write_text(result)
    if isinstance(request, GetAclRequest):
        acl, stat = result
        entries = (write_int(e.perms) + write_text(e.scheme) + write_text(e.id) for e in acl)
        return write_vector(entries) + _STAT.pack(*stat)
    if isinstance(request, WhoAmIRequest):
        return write_vector(write_text(who.scheme) + write_text(who.id) for who in result)
    return b""


def _created(result: str | tuple[str, ZnodeStat]) -> bytes:
    path, stat = (result, None) if isinstance(result, str) else result
    return write_text(path) + _optional(stat)


def _optional(stat: ZnodeStat | None) -> bytes:
    return b"" if stat is None else _STAT.pack(*stat)


def _multi(steps: Sequence[StepRequest], results: Sequence[StepResult]) -> bytes:
    body = b"".join(map(_step, steps, results))
    return body + _MULTI_HEADER.pack(ERROR, True, -1)


def _step(step: StepRequest, result: Any) -> bytes:
    if isinstance(result, Code):
        return _MULTI_HEADER.pack(ERROR, False, result) + write_int(result)
    if isinstance(step, CreateRequest):
        kind = CREATE2 if step.with_stat else CREATE
        return _MULTI_HEADER.pack(kind, False, 0) + _created(result)
    if isinstance(step, SetDataRequest):
        return _MULTI_HEADER.pack(SET_DATA, False, 0) + _STAT.pack(*result)
    return _MULTI_HEADER.pack(_KINDS_WITHOUT_RESULT[type(step)], False, 0)


_KINDS_WITHOUT_RESULT: Final[dict[type, int]] = {DeleteRequest: DELETE, CheckVersionRequest: CHECK}
