"""Encoded: messages with their keys and values as bytes, column by column.

A batch is handled by whole columns, with loops of the interpreter's own, because a few calls for
each message would cost several times what building and sending the message set does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Self

from kafka08.kernel.types import KeyAndValue
from kafka08.producer.encoders import DefaultEncoder, Encoder
from kafka08.producer.flat_messages import FlatMessages
from kafka08.producer.message import KeyedMessage

NULLS: Final = frozenset({type(None)})
NULLS_AND_BYTES: Final = NULLS | {bytes}
NULLS_AND_BUFFERS: Final = NULLS_AND_BYTES | {bytearray, memoryview}
TEXT: Final = frozenset({str})


class Encoded(NamedTuple):
    """Columns of the same length, in the order of the messages.

    places     which messages of the call they are
    topics     where they go
    chosen_by  what the partitioner gets; None leaves the choice to chance
    keys       as they are stored
    values     likewise
    """

    places: Sequence[int]
    topics: Sequence[str]
    chosen_by: Sequence[Any]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]

    @classmethod
    def of(cls, messages: Sequence[KeyedMessage], encoder: Encoder, key_encoder: Encoder) -> Self:
        """ValueError: a message has no topic. TypeError: a topic is not str, or an encoder gave no
        bytes. An encoder's own error passes through."""
        flat = FlatMessages.of(messages)
        topics, keys = flat.column("topic"), flat.column("key")
        if not all(topics):
            raise ValueError("a message needs a topic")
        if not are_of(TEXT, topics):
            raise TypeError("a message's topic is a str")
        return cls(
            range(len(flat)),
            topics,
            chosen_by(keys, flat.column("partition_key")),
            encoded(keys, key_encoder),
            encoded(flat.column("message"), encoder),
        )

    @classmethod
    def joined(cls, parts: Iterable[Encoded]) -> Self:
        """The messages of all parts, of which there must be one, behind each other."""
        columns: Iterable[Any] = zip(*parts, strict=True)
        return cls(*(list(chain.from_iterable(column)) for column in columns))

    def at(self, numbers: Collection[int]) -> Self:
        """The rows of these numbers, which rise."""
        if len(numbers) == len(self.places):
            return self
        columns: Iterable[Any] = ([column[n] for n in numbers] for column in self)
        return type(self)(*columns)

    def pairs(self) -> Iterator[KeyAndValue]:
        """Keys and values, as the kernel takes them."""
        return zip(self.keys, self.values, strict=True)


def encoded(column: Sequence[Any], encoder: Encoder) -> Sequence[bytes | None]:
    """`column` as bytes; None stays None, and bytes need no call of the DefaultEncoder."""
    if are_of(NULLS_AND_BYTES if type(encoder) is DefaultEncoder else NULLS, column):
        return column
    made = [None if field is None else encoder(field) for field in column]
    if not are_of(NULLS_AND_BUFFERS, made):
        raise TypeError(f"the encoder {encoder!r} must give bytes")
    return made


def chosen_by(keys: Sequence[Any], partition_keys: Sequence[Any]) -> Sequence[Any]:
    """The partition key, where there is one, instead of the key."""
    if are_of(NULLS, partition_keys):
        return keys
    return [k if p is None else p for k, p in zip(keys, partition_keys, strict=True)]


def are_of(types: frozenset[type], column: Sequence[object]) -> bool:
    return types.issuperset(map(type, column))
