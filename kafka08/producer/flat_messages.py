"""FlatMessages: many messages as one list of their fields.

Tens of thousands of KeyedMessages in a queue are objects that the garbage collector traverses again
and again, which takes longer than all other work on them. It does not track the fields themselves:
bytes, text and numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, overload

from kafka08.producer.record import KeyedMessage

WIDTH: Final = len(KeyedMessage._fields)


class FlatMessages(Sequence[KeyedMessage]):
    """`fields`: those of the first message, those of the second, and so on. Access by index or
    iteration creates KeyedMessages."""

    __slots__ = ("fields",)

    def __init__(self, fields: list[Any]) -> None:
        assert len(fields) % WIDTH == 0, "all messages must be KeyedMessages"
        self.fields = fields

    @classmethod
    def of(cls, messages: Sequence[KeyedMessage]) -> FlatMessages:
        """The same object if `messages` are flat already."""
        if isinstance(messages, FlatMessages):
            return messages
        return cls([field for message in messages for field in message])

    def __len__(self) -> int:
        return len(self.fields) // WIDTH

    def __iter__(self) -> Iterator[KeyedMessage]:
        fields = iter(self.fields)
        return map(KeyedMessage, *[fields] * WIDTH)

    @overload
    def __getitem__(self, place: int) -> KeyedMessage: ...

    @overload
    def __getitem__(self, place: slice) -> list[KeyedMessage]: ...

    def __getitem__(self, place: int | slice) -> KeyedMessage | list[KeyedMessage]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        start = range(len(self))[place] * WIDTH
        return KeyedMessage(*self.fields[start : start + WIDTH])

    def column(self, name: str) -> list[Any]:
        """The field `name` of each message."""
        return self.fields[KeyedMessage._fields.index(name) :: WIDTH]
