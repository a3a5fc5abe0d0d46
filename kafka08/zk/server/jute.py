"""Jute, ZooKeeper's serialization: big-endian numbers, and strings, buffers and vectors with their
lengths before them. Length -1 stands for null.

Each length and count is compared with the bytes that are there before anything is made of it.

Source: BinaryInputArchive and BinaryOutputArchive 3.9.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_SMALLEST_ELEMENT_BYTES: Final = 4
"""Every element of a vector begins with a number."""


class MalformedRecord(Exception):
    """The bytes are no record; the message says why."""


class Reader:
    """Takes values from the front of one record."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def remaining(self) -> int:
        """The number of bytes not yet taken."""
        return len(self._data) - self._position

    def int32(self) -> int:
        return int(_INT.unpack(self._take(4))[0])

    def int64(self) -> int:
        return int(_LONG.unpack(self._take(8))[0])

    def flag(self) -> bool:
        return self._take(1) != b"\0"

    def buffer(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self._take(length)

    def text(self) -> str:
        """A string; "" for null. Bytes that are not UTF-8 become U+FFFD, as Java has it, which no
        znode may have in its path."""
        return (self.buffer() or b"").decode("utf-8", "replace")

    def vector(self, read: Callable[[Reader], T]) -> tuple[T, ...]:
        """Its elements; none for null."""
        count = self.int32()
        if count * _SMALLEST_ELEMENT_BYTES > self.remaining():
            raise MalformedRecord(f"{count} elements in {self.remaining()} bytes")
        return tuple(read(self) for _ in range(count))

    def _take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._data):
            raise MalformedRecord(f"{count} bytes are to follow, {self.remaining()} do")
        taken = self._data[self._position : end]
        self._position = end
        return taken


def write_int(value: int) -> bytes:
    return _INT.pack(value)


def write_long(value: int) -> bytes:
    return _LONG.pack(value)


def write_buffer(value: bytes | None) -> bytes:
    return _INT.pack(-1) if value is None else _INT.pack(len(value)) + value


def write_text(value: str) -> bytes:
    return write_buffer(value.encode())


def write_vector(elements: Iterable[bytes]) -> bytes:
    written = list(elements)
    return _INT.pack(len(written)) + b"".join(written)
