"""Entries by offset, in sets and in the files of segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from struct import pack
from types import ModuleType
from typing import Any

import pytest

from kafka08.kernel._python_search import SEARCH_BYTES
from kafka08.kernel.types import CorruptMessage
from tests.kernel.sets import entry
from tests.kernel.tails import File, a_tail

GAPS = entry(10, None, b"a") + entry(12, None, b"b") + entry(20, None, b"c")
"""As after compaction; 27 bytes each."""
SegmentOf = Callable[[bytes], Any]


@pytest.fixture(params=["descriptor", "read"])
def segment_of(
    request: pytest.FixtureRequest, kernel: ModuleType, tmp_path: Path
) -> Iterator[SegmentOf]:
    """Makes a segment with these bytes, in a file or in memory as in the simulation."""

    def segment(data: bytes) -> Any:
        path = tmp_path / "5.log"
        path.write_bytes(data)
        file = opened.enter_context(path.open("rb", buffering=0))

        def read(size: int, position: int) -> bytes:
            return data[position : position + size]

        descriptor = file.fileno() if request.param == "descriptor" else -1
        size = len(data)
        return a_tail(kernel, File(), size=size, descriptor=descriptor, read=read)

    with ExitStack() as opened:
        yield segment


def test_first_offset_at_or_above(kernel: ModuleType) -> None:
    """Offsets may have gaps."""
    assert kernel.find_offset(GAPS, 0) == (0, 10)
    assert kernel.find_offset(GAPS, 11) == (27, 12)
    assert kernel.find_offset(GAPS, 20) == (54, 20)
    assert kernel.find_offset(GAPS, 21) is None


def test_a_complete_header_is_enough(kernel: ModuleType) -> None:
    """An entry is found by its first 12 bytes."""
    data = entry(10, None, b"a" * 100) + entry(11, None, b"b")
    for size in range(12, 126 + 12):
        assert kernel.find_offset(data[:size], 11) is None
    assert kernel.find_offset(data[: 126 + 12], 11) == (126, 11)


def test_an_impossible_size_is_refused(kernel: ModuleType) -> None:
    """An entry whose size is less than a header's is CorruptMessage."""
    with pytest.raises(CorruptMessage):
        kernel.find_offset(pack(">qi", 3, 5), 10)


def test_position_in_a_segment(kernel: ModuleType, segment_of: SegmentOf) -> None:
    """It is that of the first entry at or above the offset, from the start of the search on."""
    segment = segment_of(GAPS)
    found = [kernel.find_position(segment, 0, offset) for offset in (0, 10, 11, 12, 20, 21)]
    assert [0, 0, 27, 27, 54, -1] == found
    assert kernel.find_position(segment, 54, 0) == 54
    assert kernel.find_position(segment, len(GAPS), 0) == -1


def test_bytes_behind_the_segment_are_not_searched(
    kernel: ModuleType, segment_of: SegmentOf
) -> None:
    """A failed write may leave some."""
    segment = segment_of(GAPS)
    for size in range(54 + 12):
        segment.size = size
        assert kernel.find_position(segment, 0, 20) == -1
    segment.size = 54 + 12
    assert kernel.find_position(segment, 0, 20) == 54


def test_search_through_a_long_segment(kernel: ModuleType, segment_of: SegmentOf) -> None:
    """Entries larger than a read, and entries that reads cut anywhere, are found."""
    sizes = [1, SEARCH_BYTES, 3 * SEARCH_BYTES, *range(900, 1000), SEARCH_BYTES - 26, 0, 5]
    entries = [entry(10 + n, None, bytes(size)) for n, size in enumerate(sizes)]
    segment = segment_of(b"".join(entries))
    position = 0
    for n, data in enumerate(entries):
        assert kernel.find_position(segment, 0, 10 + n) == position
        position += len(data)
    assert kernel.find_position(segment, 0, 10 + len(sizes)) == -1


def test_broken_segments(kernel: ModuleType, segment_of: SegmentOf) -> None:
    """The error has the position in the segment; a file that ends early is one too."""
    long = entry(10, None, bytes(2 * SEARCH_BYTES))
    segment = segment_of(long + pack(">qi", 11, 13) + bytes(20))
    with pytest.raises(CorruptMessage, match=rf"size 13 \(offset 11, at byte {len(long)}\)"):
        kernel.find_position(segment, 0, 12)
    segment = segment_of(long)
    segment.size += 100
    with pytest.raises(CorruptMessage, match=f"ends before {len(long) + 100} .*{len(long)}"):
        kernel.find_position(segment, 0, 12)


def test_a_file_that_cannot_be_read(kernel: ModuleType, tmp_path: Path) -> None:
    """The operating system's error comes through."""

    def fail(size: int, position: int) -> bytes:
        raise OSError(5, "Input/output error")

    segment = a_tail(kernel, File(), read=fail)
    with pytest.raises(OSError, match="Input/output error"):
        kernel.find_position(segment, 0, 12)
    with (tmp_path / "log").open("wb") as unreadable:
        segment.descriptor = unreadable.fileno()
        if kernel.NAME == "native":
            with pytest.raises(OSError, match="Bad file descriptor"):
                kernel.find_position(segment, 0, 12)
