"""Lines of a binary stream, passed on as they arrive and never cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from kafka08.errors import KafkaError

READ_BYTES: Final = 64 * 1024
LINE_BYTES_MAX: Final = 100 * 1024 * 1024
"""Above the largest request that a broker accepts by default (socket.request.max.bytes)."""


class LineTooLong(KafkaError):
    """A line that no broker would accept, so it is not read to its end."""


class Source(Protocol):
    """A buffered binary stream."""

    def read1(self, size: int, /) -> bytes:
        """Up to `size` bytes, as soon as some are available; empty at the end."""


def line_batches(source: Source, line_bytes_max: int = LINE_BYTES_MAX) -> Iterator[list[bytes]]:
    """The lines of `source` without their ends (LF, CR or CR LF, as in java.io.BufferedReader).
    Lines that arrive together are in one list of at least one; a last line without an end counts.

    No line waits for a later one. A line longer than READ_BYTES has a list of its own, so that its
    errors do not affect others. LineTooLong names its number.
    """
    number = 1
    begun = bytearray()
    after_cr = False
    while chunk := source.read1(READ_BYTES):
        was_after_cr, after_cr = after_cr, chunk.endswith(b"\r")
        if was_after_cr:
            chunk = chunk.removeprefix(b"\n")
        lines = chunk.splitlines()
        tail = lines.pop() if lines and not chunk.endswith((b"\n", b"\r")) else b""
        if not lines:
            begun += tail
            if len(begun) > line_bytes_max:
                raise LineTooLong(f"line {number} is longer than {line_bytes_max} bytes")
            continue
        lines[0] = bytes(begun) + lines[0]
        begun = bytearray(tail)
        number += len(lines)
        if len(lines[0]) > READ_BYTES:
            yield [lines.pop(0)]
        if lines:
            yield lines
    if begun:
        yield [bytes(begun)]
