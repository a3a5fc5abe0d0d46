"""The primitive types of the wire, as annotations of message fields.

A message is a dataclass whose annotations, in order, are its layout:

    Int8 Int16 Int32 Int64   big-endian two's complement
    Flag                     one byte, 0 or 1 and nothing else; from 0.10 on read as a Boolean
    ZeroOrOne                one byte, 0 or 1 and nothing else
    String                   i16 length + UTF-8, at most 32767 bytes; never null
    NullableString           the same; null (any negative length, written as -1) is None
    Name                     the same; null is NULL_NAME, which equals no name
    Bytes                    i32 length + raw; null (-1) is None; decoding gives a memoryview
    MessageSet               as NotNullBytes: concatenated log entries of the given size
    FetchedMessages          the same; null, as a later broker has it beside an error, is read as
                             empty
    Boolean                  one byte; 0 is False, any other value True
    NotNullBytes             as Bytes, never null
    list[X]                  i32 count + items, never null; X is a primitive or another such class
    list[X] | None           the same; null (any negative count, written as -1) is None

A field that not every version has says so with `Since`:

    throttle_ms: Annotated[Int32, Since(1, before="topics")] = 0

It has a default, for the versions without it. Another field with a default is in no layout. Where
that does not say what a version has, its layout is a wire form of the same class (`WireForm`).

Bytes that are not UTF-8 are decoded to U+FFFD, as in the JVM, so that every decoded string can be
printed, stored in ZooKeeper and sent back. The JVM accepts null in every string. Here names from
clients may be null, too (`Name`); elsewhere null is a ProtocolError, where the JVM throws a
NullPointerException. Source: kafka.api.ApiUtils 0.8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Primitive:
    """Marks an annotation as a wire type; `kind` is its name in kafka08.protocol.layout."""

    kind: str


@dataclass(frozen=True, slots=True)
class Since:
    """Marks a field that not every version of its API has.

    version  the first one with it
    before   the field that follows it on the wire; "": it is the last one
    until    the first later version without it
    """

    version: int
    before: str = ""
    until: int | None = None

    def has(self, version: int) -> bool:
        return self.version <= version and (self.until is None or version < self.until)


class Form(NamedTuple):
    """The layout of a message class, or of a wire form, in one version of its API."""

    cls: type
    version: int = 0


Int8 = Annotated[int, Primitive("int8")]
Int16 = Annotated[int, Primitive("int16")]
Int32 = Annotated[int, Primitive("int32")]
Int64 = Annotated[int, Primitive("int64")]
Flag = Annotated[int, Primitive("flag")]
ZeroOrOne = Annotated[int, Primitive("zero_or_one")]
String = Annotated[str, Primitive("string")]
NullableString = Annotated[str | None, Primitive("nullable_string")]
Name = Annotated[str, Primitive("name")]
Bytes = Annotated[Buffer | None, Primitive("nullable_bytes")]
Boolean = Annotated[bool, Primitive("boolean")]
NotNullBytes = Annotated[Buffer, Primitive("bytes")]
MessageSet = NotNullBytes
FetchedMessages = Annotated[Buffer, Primitive("fetched_messages")]


class NullName(str):
    """A name that is null on the wire. It equals only itself, so no topic or group has it. Its text
    is "null": the JVM prints it so, and uses it in ZooKeeper paths."""

    __slots__ = ()
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


NULL_NAME: Final = NullName("null")


CONTROLLER_ITEMS_MAX: Final = 2_000_000
"""`Request.ITEMS_MAX` of a controller's requests: 200,000 partitions, each with its replicas and
its ISR."""


@dataclass(slots=True)
class Request:
    """Base class of request bodies.

    `version` is the version with which a request is encoded, or was decoded. It is in the header,
    not in the body, and decides the layouts of the body and of the response.

    `ITEMS_MAX` is the largest number of items in all arrays of a request together: one of 4 bytes
    costs a broker some hundred, and its response. A request with more is a ProtocolError before
    they are decoded.
    """

    ITEMS_MAX: ClassVar[int] = 100_000

    version: int = field(default=0, kw_only=True)


class Response:
    """Base class of response bodies. `ITEMS_MAX`: like that of a request, but without integers; a
    cluster of 200,000 partitions has fewer."""

    __slots__ = ()
    ITEMS_MAX: ClassVar[int] = 500_000


class WireForm:
    """The layout of a message in one version, where the message class cannot say it.

        class OffsetFetchRequestV0(WireForm, of=OffsetFetchRequest):
            group: Name
            topics: list[OffsetFetchTopic]      # never null, unlike those of later versions

    A wire form is never instantiated: bytes are decoded directly into the class `of`, and encoded
    directly from it, field by field in the order of the annotations. Fields of `of` without an
    annotation here get their defaults. If names alone do not map one to the other, a wire form has
    one or both of these static methods:

        make(*fields) -> of     makes the message from the decoded fields, in their order
        show(message) -> Any    an object with these fields, for encoding
    """

    OF: ClassVar[type]

    def __init_subclass__(cls, *, of: type) -> None:
        cls.OF = of
