"""Encodes and decodes requests and responses, in any version of any API.

    request    size:i32  key:i16 version:i16 correlation_id:i32 client_id:string  body
    response   size:i32  correlation_id:i32  body

Encoders return whole frames that begin with the size; decoders take the payload without the size.
Byte fields of a decoded message are slices of the payload, valid (and writable) as long as it is.
Malformed input is a ProtocolError that names message and field. Lengths and counts are compared
with the remaining bytes before anything is allocated for them. Bytes after the body are ignored, as
in Kafka.

Two departures from 0.8.2.2, both for input that no client sends: a negative count closes the
connection (the JVM treats it as 0 in most requests), and so does a null string other than a
topic, group or metadata from a client (see kafka08.protocol.types). Source:
kafka.network.RequestChannel, kafka.api.RequestKeys 0.8.2.2.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.protocol.api import DECLARED, ApiVersion, row_of
from kafka08.protocol.compiler import (
    DECODERS,
    ENCODERS,
    FLEXIBLE_DECODERS,
    FLEXIBLE_ENCODERS,
    Decode,
    Encode,
    field_at,
    skip_tags,
    wrong_length,
)
from kafka08.protocol.layout import message_class
from kafka08.protocol.types import Buffer, Form, Request, Response

if TYPE_CHECKING:
    from kafka08.protocol.served import Served

REQUEST_HEADER: Final = struct.Struct(">hhih")
VERSION_LOW_BYTE: Final = 3
"""The position of a request's version, which is below 256."""
"""Key, version, correlation id, and the length of the client id. In a header without client id the
last two bytes belong to the body, which always has them."""
REQUEST_HEADER_SIZE: Final = 8
FRAME_AND_CORRELATION_ID: Final = struct.Struct(">ii")
VERSION: Final = struct.Struct(">h")
CORRELATION_ID: Final = struct.Struct(">i")
API_VERSIONS: Final = 18
"""Its responses have the old header in each version: who asks may not know a later one."""

M = TypeVar("M")


def _row(cls: type, version: int) -> ApiVersion:
    """ProtocolError if the API of `cls` has no such version."""
    row = row_of(cls, version)
    if row is None:
        raise ProtocolError(f"{cls.__name__} has no version {version}")
    return row


class _RequestEncoders(dict[tuple[type[Request], int], tuple[int, bool, Encode]]):
    """(request class, version) → key, whether the header has a client id, encoder of the body."""

    def __missing__(self, key: tuple[type[Request], int]) -> tuple[int, bool, Encode]:
        row = _row(*key)
        encode = ENCODERS[row.request_form]
        if row.is_flexible:
            encode = _behind_tags(FLEXIBLE_ENCODERS[row.request_form])
        self[key] = encoding = DECLARED[key[0]].key, row.has_client_id, encode
        return encoding


class _ResponseDecoders(dict[tuple[type[Request], int], tuple[bool, Decode]]):
    """(request class, version) → whether the header of the response has tagged fields, decoder of
    its body."""

    def __missing__(self, key: tuple[type[Request], int]) -> tuple[bool, Decode]:
        row = _row(*key)
        decoders = FLEXIBLE_DECODERS if row.is_flexible else DECODERS
        self[key] = decoding = _has_tags(key[0], row), decoders[row.response_form]
        return decoding


class _ResponseEncoders(dict[tuple[type, int], Encode]):
    """(response class, version) → the encoder of its layout."""

    def __missing__(self, key: tuple[type, int]) -> Encode:
        row = _row(*key)
        encoders = FLEXIBLE_ENCODERS if row.is_flexible else ENCODERS
        encode = encoders[row.response_form]
        if _has_tags(key[0], row):
            encode = _behind_tags(encode)
        self[key] = encode
        return encode


def _has_tags(cls: type, row: ApiVersion) -> bool:
    """Whether the header of a response has tagged fields."""
    return row.is_flexible and DECLARED[cls].key != API_VERSIONS


def _behind_tags(encode: Encode) -> Encode:
    """The body of a message behind the tagged fields of its header, of which there are none."""

    def encode_both(message: Any, pieces: list[Buffer]) -> None:
        pieces.append(b"\0")
        encode(message, pieces)

    return encode_both


_request_encoders: Final = _RequestEncoders()
_response_encoders: Final = _ResponseEncoders()
_response_decoders: Final = _ResponseDecoders()


class RequestHeader(NamedTuple):
    """The header before a request body. `client_id` may be null; version 0 of ControlledShutdown
    has none."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None


def encode_request(request: Request, correlation_id: int, client_id: str | None) -> bytes:
    """The whole frame of a request, in `request.version`, without the fields that this version
    lacks. ProtocolError if a value does not fit its field, or if the API has no such version."""
    version = request.version
    key, has_client_id, encode = _request_encoders[type(request), version]
    try:
        client = b"" if client_id is None else client_id.encode()
        length = -1 if client_id is None else len(client)
        header = REQUEST_HEADER.pack(key, version, correlation_id, length)
    except (struct.error, UnicodeEncodeError) as error:
        raise ProtocolError(f"request header: {error}") from error
    if has_client_id:
        pieces: list[Buffer] = [b"", header, client]
    else:
        pieces = [b"", header[:REQUEST_HEADER_SIZE]]
    _append_body(encode, request, pieces)
    try:
        pieces[0] = CORRELATION_ID.pack(sum(map(len, pieces)))
    except struct.error as error:
        raise ProtocolError(f"{type(request).__name__}: frame too large: {error}") from error
    return b"".join(pieces)


def encode_response(response: Response, correlation_id: int, version: int = 0) -> bytes:
    """The whole frame of the response to a request of `version`. ProtocolError if a value does not
    fit its field."""
    return encode_frame(_response_encoders[type(response), version], response, correlation_id)


def frame_of(response_body: bytes, correlation_id: int) -> bytes:
    """The whole frame of a response whose body is encoded already."""
    size = CORRELATION_ID.size + len(response_body)
    return FRAME_AND_CORRELATION_ID.pack(size, correlation_id) + response_body


def encode_frame(encode: Encode, message: object, correlation_id: int) -> bytes:
    """The whole frame of a response whose body `encode` makes of `message`. ProtocolError if a
    value does not fit its field."""
    pieces: list[Buffer] = [b""]
    try:
        encode(message, pieces)
    except (struct.error, UnicodeEncodeError) as error:
        raise ProtocolError(f"{field_at(error)}: {error}") from error
    try:
        size = CORRELATION_ID.size + sum(map(len, pieces))
        pieces[0] = FRAME_AND_CORRELATION_ID.pack(size, correlation_id)
    except struct.error as error:
        raise ProtocolError(f"{type(message).__name__}: frame header: {error}") from error
    return b"".join(pieces)


def encoded_exchange(request: Request, response: Response) -> tuple[bytes, bytes]:
    """Keys of a cache of responses: a request's version and body, which do not depend on the
    client, and the body of its response."""
    version = request.version
    request_body: list[Buffer] = [VERSION.pack(version)]
    response_body: list[Buffer] = []
    _append_body(_request_encoders[type(request), version][2], request, request_body)
    _append_body(_response_encoders[type(response), version], response, response_body)
    return b"".join(request_body), b"".join(response_body)


def encode_body(message: object, form: Form | None = None) -> bytes:
    """The bytes of any message class (kafka08.protocol.types), without a header; `form` of its
    class, if that is not its first one."""
    pieces: list[Buffer] = []
    _append_body(ENCODERS[form or Form(type(message))], message, pieces)
    return b"".join(pieces)


def decode_header(payload: Buffer) -> RequestHeader:
    """The header of a request that has a client id, and whose layout was checked."""
    key, version, correlation_id, length = REQUEST_HEADER.unpack_from(payload)
    client = payload[REQUEST_HEADER.size : REQUEST_HEADER.size + length] if length >= 0 else None
    client_id = None if client is None else str(client, "utf-8", "replace")
    return RequestHeader(key, version, correlation_id, client_id)


def decode_request(payload: Buffer, served: Served | None = None) -> tuple[RequestHeader, Any]:
    """Header and body of a request, decoded as `served` (None: 0.8.2) says. The header has the
    requested version, the request the version with which it was decoded. Raises like Served.row,
    too."""
    if served is None:
        from kafka08.protocol.served import SERVED  # all APIs; clients decode no requests

        served = SERVED[Level.V0_8_2]
    view = memoryview(payload)
    try:
        key, version, correlation_id, length = REQUEST_HEADER.unpack_from(view)
    except struct.error as error:
        raise ProtocolError(f"request header: {error}") from error
    row = served.rows.get((key, version)) or served.row(key, version)
    client_id: str | None = None
    position = REQUEST_HEADER_SIZE
    if row.has_client_id:
        position = REQUEST_HEADER.size
        if length >= 0:
            end = position + length
            if end > len(view):
                raise ProtocolError(
                    f"{message_class(row.request).__name__} client_id: "
                    f"{wrong_length(length, len(view) - position)}"
                )
            client_id = str(view[position:end], "utf-8", "replace")
            position = end
    try:
        request, _ = served.decoders[row.request_form](view, position)
    except struct.error as error:
        raise ProtocolError(f"{field_at(error)}: {error}{_newer(version, row)}") from error
    request.version = row.version
    return RequestHeader(key, version, correlation_id, client_id), request


def _newer(version: int, row: ApiVersion) -> str:
    """The end of an error about a request whose version was read as a lower one."""
    if version <= row.version:
        return ""
    return (
        f"; it has version {version} and was read as {row.version}, the latest at this broker's "
        "level: its sender is newer"
    )


def correlation_id_of(payload: Buffer) -> int:
    """The correlation id of any response. ProtocolError if it is too short."""
    if len(payload) < CORRELATION_ID.size:
        raise ProtocolError(f"a response of {len(payload)} bytes has no correlation id")
    correlation_id: int = CORRELATION_ID.unpack_from(payload)[0]
    return correlation_id


def decode_response(request: type[Request], payload: Buffer, version: int = 0) -> tuple[int, Any]:
    """Correlation id and body of the response to a request of class `request` and of `version`."""
    has_tags, decode = _response_decoders[request, version]
    view = memoryview(payload)
    try:
        (correlation_id,) = CORRELATION_ID.unpack_from(view)
        position = skip_tags(view, CORRELATION_ID.size) if has_tags else CORRELATION_ID.size
    except struct.error as error:
        name = message_class(_row(request, version).response).__name__
        raise ProtocolError(f"{name} header: {error}") from error
    try:
        return correlation_id, decode(view, position)[0]
    except struct.error as error:
        raise ProtocolError(f"{field_at(error)}: {error}") from error


def decode_body(
    cls: type[M],
    buffer: Buffer,
    position: int = 0,
    *,
    version: int = 0,
    is_flexible: bool = False,
) -> tuple[M, int]:
    """The message of class `cls` that starts at `position`, in a version of its layout, and its
    end. `is_flexible`: lengths are compact and records tagged."""
    decoders = FLEXIBLE_DECODERS if is_flexible else DECODERS
    try:
        return decoders[Form(cls, version)](memoryview(buffer), position)
    except struct.error as error:
        raise ProtocolError(f"{field_at(error)}: {error}") from error


def _append_body(encode: Encode, message: object, pieces: list[Buffer]) -> None:
    try:
        encode(message, pieces)
    except (struct.error, UnicodeEncodeError) as error:
        raise ProtocolError(f"{field_at(error)}: {error}") from error
