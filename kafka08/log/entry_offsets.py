"""OffsetFixes: finds entries of a message file whose offset a disk has changed.

No CRC covers an offset. If one bit of it flips, the entry contradicts a neighbour: offsets fall, or
one is not below the next segment's. Which of two neighbours is wrong shows the entry after them:

    4  7  6  8       without 7 the offsets ascend, and there is room for another one: 7 is wrong
    4  5  1  7       likewise without 1
    7  8  2  3       two in a row: a crash may leave old bytes that are valid messages; no fix

0.8.2.2 and 0.10.2.2 keep such an entry with its wrong offset. A consumer that reads it continues
there, and a follower refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from struct import Struct
from typing import Final, NamedTuple

from kafka08 import kernel
from kafka08.config import INT_MAX, LONG_MAX
from kafka08.format import HEAD_BYTES_MAX, Batch, batch_at
from kafka08.protocol import message_set
from kafka08.runtime.disk import File

OFFSET: Final = Struct(">q")
OFFSET_BYTES: Final = OFFSET.size
OFFSET_BITS: Final = 63


class _Entry(NamedTuple):
    position: int
    offset: int
    size: int
    last_delta: int
    """What is to be added to the offset for the last one inside."""

    @property
    def last_offset(self) -> int:
        return self.offset + self.last_delta


class OffsetFixes:
    """The entries in the first `size` bytes of a file.

    lowest_offset   no offset is below it
    end_offset      every offset is below it; None: INT_MAX and more above the first one is wrong,
                    because a log rolls before that
    """

    def __init__(
        self, file: File, size: int, lowest_offset: int, end_offset: int | None = None
    ) -> None:
        self._file = file
        self._size = size
        self._lowest_offset = lowest_offset
        self._end_offset = end_offset

    def find(self, start: int, chunk_bytes: int) -> dict[int, int]:
        """Position of each entry with a wrong offset → the right one, from the entry at `start` on,
        up to the first contradiction that one wrong offset does not explain. OSError."""
        fixes: dict[int, int] = {}
        entries = self._walk(start, chunk_bytes)
        before = self._lowest_offset - 1
        window = [one for _, one in zip(range(3), entries, strict=False)]
        end = self._end_offset
        if end is None:
            end = min(one.offset for one in window) + INT_MAX + 1 if window else 0
        while window:
            entry = window[0]
            after, later = ([one.offset for one in window[1:]] + [end, LONG_MAX])[:2]
            if not before < entry.offset <= entry.last_offset < after:
                fits = before + 1 + entry.last_delta < after < later
                right = self._right_offset(entry, before, after) if fits else None
                if right is not None:
                    if len(window) == 1 and (right ^ entry.offset).bit_count() > 1:
                        break  # old bytes, rather than a flipped bit
                    fixes[entry.position] = right
                    before = right + entry.last_delta
                elif before < entry.offset <= entry.last_offset < later - 1:
                    before = entry.last_offset  # the next one is wrong
                else:
                    break
            else:
                before = entry.last_offset
            window = [*window[1:], *(one for _, one in zip(range(1), entries, strict=False))]
        return fixes

    def _walk(self, start: int, chunk_bytes: int) -> Iterator[_Entry]:
        """The whole entries, as far as their sizes are possible."""
        position = start
        while position < self._size:
            chunk = memoryview(self._file.pread(max(chunk_bytes, HEAD_BYTES_MAX), position))
            at = 0
            while (batch := _batch_at(chunk, at)) is not None:
                if position + batch.end > self._size:
                    return
                delta = batch.last_offset - batch.base_offset
                yield _Entry(position + at, batch.base_offset, batch.size, delta)
                at = batch.end
            if not at:
                return  # the file is shorter
            position += at

    def _right_offset(self, entry: _Entry, before: int, after: int) -> int | None:
        """An offset between two others: what is inside of a wrapper, or the only one that differs
        from the stored one in one bit, or else the lowest. None if a wrapper does not fit there."""
        lowest, after = before + 1, after - entry.last_delta
        inside = self._inside(entry)
        if inside is not None:
            is_absolute, last = inside
            if is_absolute:
                return last if before < last < after else None
            lowest += last
        if lowest >= after:
            return None
        flipped = [entry.offset ^ (1 << bit) for bit in range(OFFSET_BITS)]
        possible = [offset for offset in flipped if lowest <= offset < after]
        return possible[0] if len(possible) == 1 else lowest

    def _inside(self, entry: _Entry) -> tuple[bool, int] | None:
        """(whether the offsets in a wrapper are absolute, the last one); None for a plain message,
        and for one that cannot be decompressed."""
        if entry.size > message_set.MAX_UNPACKED_BYTES:
            return None
        data = self._file.pread(entry.size, entry.position)
        try:
            message = next(kernel.entries(data))
            if not message.codec:
                return None
            inner = message_set.unpack(message.codec, message.value or b"")
            summary = kernel.validate(inner, INT_MAX, verify_crc=False)
        except (ValueError, StopIteration):
            return None
        return (not message.magic, summary.last_offset) if summary.count else None


def _batch_at(chunk: memoryview, position: int) -> Batch | None:
    """The entry there; None if its head is not whole, or its size is impossible."""
    with suppress(kernel.CorruptMessage):
        return batch_at(chunk, position)
    return None
