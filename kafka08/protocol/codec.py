"""Requests and responses to bytes and back, as kafka 0.8.2.2 reads and writes them.

    request    size:i32  key:i16 version:i16 correlation_id:i32 client_id:string  body
    response   size:i32  correlation_id:i32  body

Encoders return whole frames, size in front; decoders take the payload without the size. Byte
fields of a decoded message are slices of the payload, valid (and writable) as long as it is.
Anything that is not the layout is a ProtocolError that names message and field; nothing is
allocated from a length or count before it was compared with the bytes left. Bytes behind the body
are ignored, as 0.8.2.2 ignores them.

Two departures from 0.8.2.2, both on input that no client sends: a negative count closes the
connection (the JVM takes it for 0 in most requests), and so does null where a name must stand
(see kafka08.protocol.types). Source: kafka.network.RequestChannel, kafka.api.RequestKeys 0.8.2.2.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple, TypeVar

from kafka08.errors import ProtocolError
from kafka08.protocol.compiler import Decoders, Encoders, field_at, wrong_length
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest
from kafka08.protocol.controlled_shutdown import ControlledShutdownRequest
from kafka08.protocol.fetch import FetchRequest
from kafka08.protocol.heartbeat import HeartbeatRequest
from kafka08.protocol.join_group import JoinGroupRequest
from kafka08.protocol.leader_and_isr import LeaderAndIsrRequest
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.offset_commit import OffsetCommitRequest, OffsetCommitRequestV0
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchRequestV0
from kafka08.protocol.offsets import OffsetsRequest
from kafka08.protocol.produce import ProduceRequest
from kafka08.protocol.stop_replica import StopReplicaRequest
from kafka08.protocol.types import Buffer, Request, Response
from kafka08.protocol.update_metadata import UpdateMetadataRequest

REQUESTS: Final[dict[tuple[int, int], type[Request]]] = {
    (cls.KEY, cls.VERSION): cls
    for cls in (
        ProduceRequest,
        FetchRequest,
        OffsetsRequest,
        MetadataRequest,
        LeaderAndIsrRequest,
        StopReplicaRequest,
        UpdateMetadataRequest,
        ControlledShutdownRequest,
        OffsetCommitRequestV0,
        OffsetCommitRequest,
        OffsetFetchRequestV0,
        OffsetFetchRequest,
        ConsumerMetadataRequest,
        JoinGroupRequest,
        HeartbeatRequest,
    )
}
"""(key, version) → request class: what 0.8.2.2 can parse."""

KEYS: Final = frozenset(key for key, _ in REQUESTS)

REQUEST_HEADER: Final = struct.Struct(">hhih")
"""Key, version, correlation id, and the length of the client id (or the start of the body: every
body behind a header without client id has the two bytes)."""
REQUEST_HEADER_SIZE: Final = 8
FRAME_AND_CORRELATION_ID: Final = struct.Struct(">ii")
CORRELATION_ID: Final = struct.Struct(">i")

M = TypeVar("M")

_decoders: Final = Decoders()
_encoders: Final = Encoders()


class UnknownApi(ProtocolError):
    """A request whose key 0.8.2.2 does not have; it closes the connection."""


class RequestHeader(NamedTuple):
    """What precedes a request body. `client_id` may be null; ControlledShutdown has none."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None


def request_class(key: int, version: int) -> type[Request]:
    """The class that 0.8.2.2 parses such a request with.

    It looks at the version of OffsetCommit alone, where only 0 and 1 pass, and of OffsetFetch,
    where 0 asks ZooKeeper and anything else the offsets topic; every other key has one layout,
    whatever version the client claims. UnknownApi, or ProtocolError for OffsetCommit.
    """
    if key not in KEYS:
        raise UnknownApi(f"request key {key} is not an API of 0.8.2.2")
    if key == OffsetCommitRequest.KEY and (key, version) not in REQUESTS:
        raise ProtocolError(f"OffsetCommit version {version}: only 0 and 1 are valid")
    if key == OffsetFetchRequest.KEY and version != 0:
        return OffsetFetchRequest
    return REQUESTS.get((key, version)) or REQUESTS[key, 0]


def encode_request(request: Request, correlation_id: int, client_id: str | None) -> bytes:
    """The whole frame of a request. ProtocolError if a value does not fit its field."""
    try:
        client = b"" if client_id is None else client_id.encode()
        length = -1 if client_id is None else len(client)
        header = REQUEST_HEADER.pack(request.KEY, request.VERSION, correlation_id, length)
    except (struct.error, UnicodeEncodeError) as error:
        raise ProtocolError(f"request header: {error}") from error
    if request.HAS_CLIENT_ID:
        pieces: list[Buffer] = [b"", header, client]
    else:
        pieces = [b"", header[:REQUEST_HEADER_SIZE]]
    _append_body(request, pieces)
    try:
        pieces[0] = CORRELATION_ID.pack(sum(map(len, pieces)))
    except struct.error as error:
        raise ProtocolError(f"{type(request).__name__}: frame too large: {error}") from error
    return b"".join(pieces)


def encode_response(response: Response, correlation_id: int) -> bytes:
    """The whole frame of a response. ProtocolError if a value does not fit its field."""
    pieces: list[Buffer] = [b""]
    _append_body(response, pieces)
    try:
        size = CORRELATION_ID.size + sum(map(len, pieces))
        pieces[0] = FRAME_AND_CORRELATION_ID.pack(size, correlation_id)
    except struct.error as error:
        raise ProtocolError(f"{type(response).__name__}: frame header: {error}") from error
    return b"".join(pieces)


def encode_body(message: object) -> bytes:
    """The bytes of any message declared as kafka08.protocol.types says, without a header."""
    pieces: list[Buffer] = []
    _append_body(message, pieces)
    return b"".join(pieces)


def decode_request(payload: Buffer) -> tuple[RequestHeader, Any]:
    """Header and body of a request; the body's class is `request_class(key, version)`."""
    view = memoryview(payload)
    try:
        key, version, correlation_id, length = REQUEST_HEADER.unpack_from(view)
    except struct.error as error:
        raise ProtocolError(f"request header: {error}") from error
    cls = REQUESTS.get((key, version)) or request_class(key, version)
    client_id: str | None = None
    position = REQUEST_HEADER_SIZE
    if cls.HAS_CLIENT_ID:
        position = REQUEST_HEADER.size
        if length >= 0:
            end = position + length
            if end > len(view):
                raise ProtocolError(
                    f"{cls.__name__} client_id: {wrong_length(length, len(view) - position)}"
                )
            client_id = str(view[position:end], "utf-8", "replace")
            position = end
    try:
        request, _ = _decoders[cls](view, position)
    except struct.error as error:
        raise ProtocolError(f"{field_at(error)}: {error}") from error
    return RequestHeader(key, version, correlation_id, client_id), request


def decode_response(request: type[Request], payload: Buffer) -> tuple[int, Any]:
    """Correlation id and body of the response to a request of class `request`."""
    view = memoryview(payload)
    try:
        (correlation_id,) = CORRELATION_ID.unpack_from(view)
    except struct.error as error:
        raise ProtocolError(f"{request.RESPONSE.__name__} correlation_id: {error}") from error
    response, _ = decode_body(request.RESPONSE, view, CORRELATION_ID.size)
    return correlation_id, response


def decode_body(cls: type[M], buffer: Buffer, position: int = 0) -> tuple[M, int]:
    """The message of class `cls` that starts at `position`, and where it ends."""
    try:
        return _decoders[cls](memoryview(buffer), position)
    except struct.error as error:
        raise ProtocolError(f"{field_at(error)}: {error}") from error


def _append_body(message: object, pieces: list[Buffer]) -> None:
    try:
        _encoders[type(message)](message, pieces.append)
    except (struct.error, UnicodeEncodeError) as error:
        raise ProtocolError(f"{field_at(error)}: {error}") from error
