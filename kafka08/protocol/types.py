"""The primitive types of the wire, as annotations of message fields.

A message is a dataclass whose annotations, in order, are its layout:

    Int8 Int16 Int32 Int64   big-endian two's complement
    String                   i16 length + UTF-8; null (-1) is None
    Bytes                    i32 length + raw; null (-1) is None; decoding gives a memoryview
    MessageSet               as Bytes, never null: concatenated log entries of the given size
    list[X]                  i32 count + items; X is a primitive or another such dataclass

Source: kafka.api.ApiUtils 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Primitive:
    """Marks an annotation as a wire type. `code` is its name in the codec's tables."""

    code: str


Int8 = Annotated[int, Primitive("i8")]
Int16 = Annotated[int, Primitive("i16")]
Int32 = Annotated[int, Primitive("i32")]
Int64 = Annotated[int, Primitive("i64")]
String = Annotated[str, Primitive("string")]
NullableString = Annotated[str | None, Primitive("string")]
Bytes = Annotated[Buffer | None, Primitive("bytes")]
MessageSet = Annotated[Buffer, Primitive("message_set")]


class Request:
    """Base of every request body. `RESPONSE` is the body that answers it."""

    KEY: ClassVar[int]
    VERSION: ClassVar[int]
    RESPONSE: ClassVar[type[Response]]


class Response:
    """Base of every response body."""
