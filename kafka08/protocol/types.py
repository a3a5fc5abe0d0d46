"""The primitive types of the wire, as annotations of message fields.

A message is a dataclass whose annotations, in order, are its layout:

    Int8 Int16 Int32 Int64   big-endian two's complement
    Flag                     one byte, 0 or 1 and nothing else
    String                   i16 length + UTF-8, at most 32767 bytes; never null
    NullableString           the same; null (any negative length, written as -1) is None
    Bytes                    i32 length + raw; null (-1) is None; decoding gives a memoryview
    MessageSet               as Bytes, never null: concatenated log entries of the given size
    list[X]                  i32 count + items, never null; X is a primitive or another such class

Bytes that are not UTF-8 are read with U+FFFD in their place, as the JVM does, so that every string
that was read can be printed, stored in ZooKeeper and sent back. The JVM lets null through where
`String` stands and then fails somewhere in its handlers with a NullPointerException; here it is a
ProtocolError, and no handler ever meets it. Source: kafka.api.ApiUtils 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Primitive:
    """Marks an annotation as a wire type; `kind` is its name in kafka08.protocol.layout."""

    kind: str


Int8 = Annotated[int, Primitive("int8")]
Int16 = Annotated[int, Primitive("int16")]
Int32 = Annotated[int, Primitive("int32")]
Int64 = Annotated[int, Primitive("int64")]
Flag = Annotated[int, Primitive("flag")]
String = Annotated[str, Primitive("string")]
NullableString = Annotated[str | None, Primitive("nullable_string")]
Bytes = Annotated[Buffer | None, Primitive("nullable_bytes")]
MessageSet = Annotated[Buffer, Primitive("bytes")]


class Request:
    """Base of every request body. `RESPONSE` is the body that answers it."""

    __slots__ = ()

    KEY: ClassVar[int]
    VERSION: ClassVar[int]
    RESPONSE: ClassVar[type[Response]]
    HAS_CLIENT_ID: ClassVar[bool] = True
    """Whether the request header carries a client id; only ControlledShutdown's does not."""


class Response:
    """Base of every response body."""

    __slots__ = ()
