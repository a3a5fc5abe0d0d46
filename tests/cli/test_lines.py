"""kafka08.cli.lines splits a stream into whole lines, however it is cut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import repeat
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.cli.lines import READ_BYTES, LineTooLong, line_batches


class Pieces:
    """A stream that returns the given pieces."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]

    def read1(self, size: int, /) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


text = st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b"a", b"b\x00\xff"])).map(b"".join)


@given(text, st.lists(st.integers(1, 5)))
def test_cuts_between_reads_do_not_show(data: bytes, cuts: list[int]) -> None:
    """The lines are those of the whole text, each without its LF, CR or CR LF: the line ends of
    the JVM's console producer."""
    pieces = []
    rest = data
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    lines = [line for batch in line_batches(Pieces([*pieces, rest])) for line in batch]
    *expected, last = re.split(rb"\r\n|\r|\n", data)
    assert expected + [last] * bool(last) == lines


def test_a_line_does_not_wait_for_the_next() -> None:
    """The whole lines of one read are one batch. An incomplete line waits for its end, and a CR is
    one, whether or not LF follows."""
    batches = line_batches(Pieces([b"a\nb\nc", b"", b"d\n", b"e\r", b"\n", b"\nf"]))
    assert [[b"a", b"b"], [b"cd"], [b"e"], [b""], [b"f"]] == list(batches)


def test_a_long_line_is_alone() -> None:
    """A long line is a batch of its own."""
    long = b"x" * (READ_BYTES + 1)
    batches = list(line_batches(Pieces([b"a\n" + long[:10], long[10:] + b"\nb\nc\n"])))
    assert [[b"a"], [long], [b"b", b"c"]] == batches


def test_a_line_in_many_pieces_is_not_counted_again_with_each() -> None:
    """The pieces of a line are counted once: a writer that flushes every few bytes of a large line
    costs time in proportion to the line."""
    pieces = repeat(b"xy", 200_000)
    source = SimpleNamespace(read1=lambda _: next(pieces, b""))
    assert [[b"xy" * 200_000]] == list(line_batches(source))


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    """A line without end is refused, with its number, once it exceeds any broker's limit."""
    batches = line_batches(Pieces([b"a\nb\n", *[b"x" * 10] * 20]), line_bytes_max=50)
    assert [b"a", b"b"] == next(batches)
    with pytest.raises(LineTooLong, match="line 3 is longer than 50 bytes"):
        next(batches)
