"""Encoded: messages with keys and values as bytes, in columns.

Batches are processed column by column, with the interpreter's built-in loops, because a few calls
per message would cost several times as much as building and sending the message set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Self

from kafka08.kernel import are_of, build_from_lists, distinct, pick
from kafka08.kernel.types import KeyAndValue
from kafka08.producer.old.encoders import DefaultEncoder, Encoder
from kafka08.producer.old.message_columns import MessageColumns
from kafka08.producer.record import KeyedMessage

NULLS: Final = frozenset({type(None)})
NULLS_AND_BYTES: Final = NULLS | {bytes}
NULLS_AND_BUFFERS: Final = NULLS_AND_BYTES | {bytearray, memoryview}
TEXT: Final = frozenset({str})


class Encoded(NamedTuple):
    """Columns of the same length, in the order of the messages.

    places     indexes of the messages in the call
    topics     their topics
    chosen_by  the partitioner's argument; None: a random partition
    keys       the encoded keys
    values     the encoded values
    """

    places: Sequence[int]
    topics: Sequence[str]
    chosen_by: Sequence[Any]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]

    @classmethod
    def of(cls, messages: Sequence[KeyedMessage], encoder: Encoder, key_encoder: Encoder) -> Self:
        """ValueError: a message has no topic. TypeError: a topic is not a str, or an encoder did
        not return bytes. An encoder's own error is raised as it is."""
        columns = MessageColumns.of(messages)
        topics, keys = columns.column("topic"), columns.column("key")
        are_text = are_of(TEXT, topics)
        if not all(distinct(topics) if are_text else topics):
            raise ValueError("a message needs a topic")
        if not are_text:
            raise TypeError("a message's topic must be a str")
        return cls(
            range(len(columns)),
            topics,
            chosen_by(keys, columns.column("partition_key")),
            encoded(keys, key_encoder),
            encoded(columns.column("message"), encoder),
        )

    def distinct_topics(self) -> set[str]:
        """Its topics, each once."""
        return distinct(self.topics)

    @classmethod
    def joined(cls, parts: Iterable[Encoded]) -> Self:
        """The messages of all parts (at least one), concatenated."""
        columns: Iterable[Any] = zip(*parts, strict=True)
        return cls(*(list(chain.from_iterable(column)) for column in columns))

    def at(self, numbers: Collection[int]) -> Self:
        """The rows with these ascending indexes."""
        if len(numbers) == len(self.places):
            return self
        columns: Iterable[Any] = (pick(column, numbers) for column in self)
        return type(self)(*columns)

    def message_set(self) -> bytearray:
        """An uncompressed set of the messages, numbered from 0."""
        return build_from_lists([*self.keys], [*self.values], 0, len(self.values))

    def pairs(self) -> Iterator[KeyAndValue]:
        """(key, value) of each message."""
        return zip(self.keys, self.values, strict=True)


def encoded(column: Sequence[Any], encoder: Encoder) -> Sequence[bytes | None]:
    """`column` as bytes; None stays None, and bytes skip the DefaultEncoder."""
    if are_of(NULLS_AND_BYTES if type(encoder) is DefaultEncoder else NULLS, column):
        return column
    made = [None if field is None else encoder(field) for field in column]
    if not are_of(NULLS_AND_BUFFERS, made):
        raise TypeError(f"the encoder {encoder!r} must return bytes")
    return made


def chosen_by(keys: Sequence[Any], partition_keys: Sequence[Any]) -> Sequence[Any]:
    """The partition key if there is one, else the key."""
    if are_of(NULLS, partition_keys):
        return keys
    if are_of(NULLS, keys):
        return partition_keys
    return [k if p is None else p for k, p in zip(keys, partition_keys, strict=True)]
