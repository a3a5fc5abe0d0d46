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
from kafka08.producer.message import KeyedMessage

WIDTH: Final = len(KeyedMessage._fields)
NULLS: Final = frozenset({type(None)})
NULLS_AND_BYTES: Final = NULLS | {bytes}


class Encoded(NamedTuple):
    """Columns of the same length, in the order of the messages.

    has_key  whether a message has something to choose its partition by
    keys     as they are stored
    values   likewise
    """

    messages: Sequence[KeyedMessage]
    topics: Sequence[str]
    has_key: Sequence[bool]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]

    @classmethod
    def of(cls, messages: Sequence[KeyedMessage], encoder: Encoder, key_encoder: Encoder) -> Self:
        """ValueError for a message without a topic; what an encoder raises."""
        flat = list(chain.from_iterable(messages))
        assert len(flat) == WIDTH * len(messages), "all of them must be KeyedMessages"
        topics, values, keys, partition_keys = (flat[n::WIDTH] for n in range(WIDTH))
        if not all(topics):
            raise ValueError("a message needs a topic")
        if are_of(NULLS, keys) and are_of(NULLS, partition_keys):
            has_key = [False] * len(messages)
        else:
            has_key = [message.chosen_by is not None for message in messages]
        return cls(messages, topics, has_key, encoded(keys, key_encoder), encoded(values, encoder))

    @classmethod
    def joined(cls, parts: Iterable[Encoded]) -> Self:
        """The messages of all parts behind each other."""
        columns: Iterable[Any] = zip(*parts, strict=True)
        return cls(*(list(chain.from_iterable(column)) for column in columns))

    def at(self, places: Collection[int]) -> Self:
        """Those at `places`, which rise."""
        if len(places) == len(self.messages):
            return self
        columns: Iterable[Any] = ([column[place] for place in places] for column in self)
        return type(self)(*columns)

    def pairs(self) -> Iterator[KeyAndValue]:
        """Keys and values, as the kernel takes them."""
        return zip(self.keys, self.values, strict=True)


def encoded(column: Sequence[Any], encoder: Encoder) -> Sequence[bytes | None]:
    """`column` as bytes; None stays None, and bytes need no call of the DefaultEncoder."""
    if are_of(NULLS_AND_BYTES if type(encoder) is DefaultEncoder else NULLS, column):
        return column
    return [None if field is None else encoder(field) for field in column]


def are_of(types: frozenset[type], column: Sequence[object]) -> bool:
    return types.issuperset(map(type, column))
