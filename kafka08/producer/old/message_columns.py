"""MessageColumns: many messages as one list for each of their fields.

Tens of thousands of KeyedMessages in a queue are objects that the garbage collector traverses again
and again, which takes longer than all other work on them. It does not track the fields themselves:
bytes, text and numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, overload

from kafka08.producer.record import KeyedMessage

FIELDS: Final = KeyedMessage._fields


class MessageColumns(Sequence[KeyedMessage]):
    """`columns`: a list of values for each field of KeyedMessage, in its order. Access by index or
    iteration creates KeyedMessages."""

    __slots__ = ("columns",)

    def __init__(self, columns: list[list[Any]]) -> None:
        self.columns = columns

    @classmethod
    def of(cls, messages: Sequence[KeyedMessage]) -> MessageColumns:
        """The same object if `messages` are columns already. TypeError for an object that is no
        KeyedMessage."""
        if isinstance(messages, MessageColumns):
            return messages
        for kind in set(map(type, messages)):
            if not issubclass(kind, KeyedMessage):
                raise refused(kind)
        return cls([list(map(itemgetter(place), messages)) for place in range(len(FIELDS))])

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[KeyedMessage]:
        return map(KeyedMessage, *self.columns)

    @overload
    def __getitem__(self, place: int) -> KeyedMessage: ...

    @overload
    def __getitem__(self, place: slice) -> list[KeyedMessage]: ...

    def __getitem__(self, place: int | slice) -> KeyedMessage | list[KeyedMessage]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        return KeyedMessage(*(column[place] for column in self.columns))

    def column(self, name: str) -> list[Any]:
        """The field `name` of each message; the list itself."""
        return self.columns[FIELDS.index(name)]

    def extend(self, further: MessageColumns) -> None:
        """Add the messages of `further` at the end."""
        for column, more in zip(self.columns, further.columns, strict=True):
            column += more


def refused(kind: type) -> TypeError:
    """The error for an object that is no message, whose fields would shift those of the others."""
    return TypeError(f"send takes a KeyedMessage, not a {kind.__name__}")
