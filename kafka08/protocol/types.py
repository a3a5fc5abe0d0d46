"""The primitive types of the wire, as annotations of message fields.

A message is a dataclass whose annotations, in order, are its layout:

    Int8 Int16 Int32 Int64   big-endian two's complement
    Flag                     one byte, 0 or 1 and nothing else
    String                   i16 length + UTF-8, at most 32767 bytes; never null
    NullableString           the same; null (any negative length, written as -1) is None
    Name                     the same; null is NULL_NAME, which names nothing
    Bytes                    i32 length + raw; null (-1) is None; decoding gives a memoryview
    MessageSet               as NotNullBytes: concatenated log entries of the given size
    FetchedMessages          the same; null, as a later broker has it beside an error, is read as
                             empty
    Boolean                  one byte; 0 is False, any other value True
    NotNullBytes             as Bytes, never null
    list[X]                  i32 count + items, never null; X is a primitive or another such class
    list[X] | None           the same; null (any negative count, written as -1) is None

A field that has a default is not part of that layout: it holds what a later version brought. The
layouts of later versions are wire forms of the same class (`WireForm`).

Bytes that are not UTF-8 are read with U+FFFD in their place, as the JVM does, so that every string
that was read can be printed, stored in ZooKeeper and sent back. The JVM lets null through in every
string. What a client names may be null here too (`Name`); elsewhere null is a ProtocolError, where
the JVM ends in a NullPointerException. Source: kafka.api.ApiUtils 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, TypeAlias

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
Name = Annotated[str, Primitive("name")]
Bytes = Annotated[Buffer | None, Primitive("nullable_bytes")]
Boolean = Annotated[bool, Primitive("boolean")]
NotNullBytes = Annotated[Buffer, Primitive("bytes")]
MessageSet = NotNullBytes
FetchedMessages = Annotated[Buffer, Primitive("fetched_messages")]


class NullName(str):
    """A name that is null on the wire. It equals nothing but itself, so no topic or group has it;
    as text it is "null", as the JVM prints it and makes ZooKeeper paths of it."""

    __slots__ = ()
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


NULL_NAME: Final = NullName("null")


@dataclass(slots=True)
class Request:
    """Base of every request body.

    `version` is the version that a request is sent with, or was read with. It is not part of the
    body: it stands in the header, and it decides the layout of the body and of its response.
    """

    version: int = field(default=0, kw_only=True)


class Response:
    """Base of every response body."""

    __slots__ = ()


class WireForm:
    """The layout of a message in one version, where it is not that of the message class itself.

        class FetchResponseV1(WireForm, of=FetchResponse):
            throttle_ms: Int32
            topics: list[FetchTopicResponse]

    A wire form is never instantiated: bytes are decoded straight into the class `of`, and encoded
    straight from it, field by field in the order of the annotations. A field of `of` that is not
    annotated here takes its default. Where names alone do not say how the two belong together, a
    wire form has one or both of these static methods:

        make(*fields) -> of     the message made of the decoded fields, in their order
        show(message) -> Any    an object that has these fields, to be encoded
    """

    OF: ClassVar[type]

    def __init_subclass__(cls, *, of: type) -> None:
        cls.OF = of
