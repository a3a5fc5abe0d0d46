"""A set without the messages of aborted transactions, by a model that knows each message's fate."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.format import batches
from kafka08.kernel.types import CorruptMessage
from kafka08.protocol import message_set
from tests.consumer.fetching.test_committed import ABORT, COMMIT, batch

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "send", "plain", "old", "commit", "abort"]),
        st.integers(1, 3),
        st.integers(1, 3),
    ),
    max_size=25,
)


def history(
    steps: list[tuple[str, int, int]],
) -> tuple[list[bytes], list[int], list[tuple[int, int, int]]]:
    """(entries, offsets of the messages that count, aborted transactions as first offset, producer
    and offset of the marker) of what producers do one after the other; those that are open at the
    end are aborted."""
    entries: list[bytes] = []
    offset = 0
    began: dict[int, int] = {}
    sent: dict[int, list[int]] = {}
    kept: list[int] = []
    aborted: list[tuple[int, int, int]] = []
    for what, producer, count in [*steps, *(("abort", producer, 1) for producer in (1, 2, 3))]:
        values = [b"v"] * count
        numbers = list(range(offset, offset + count))
        if what == "send":
            entries.append(batch(offset, *values, producer=producer))
            began.setdefault(producer, offset)
            sent.setdefault(producer, []).extend(numbers)
        elif what == "plain":
            entries.append(batch(offset, *values, producer=producer, transactional=False))
            kept += numbers
        elif what == "old":
            pairs = [(None, value) for value in values]
            entries.append(bytes(message_set.encode(pairs, 0, offset, 1, [5] * count)))
            kept += numbers
        elif producer in began:
            control = ABORT if what == "abort" else COMMIT
            entries.append(batch(offset, control=control, producer=producer))
            numbers = [offset]
            if what == "abort":
                aborted.append((began[producer], producer, offset))
            else:
                kept += sent[producer]
            del began[producer], sent[producer]
        else:
            numbers = []
        offset += len(numbers)
    return entries, sorted(kept), sorted(aborted)


def offsets(kernel: ModuleType, data: object) -> list[int]:
    return [m.offset for m in kernel.messages(data, "t", 0, 0, lambda _, value: value)]


@given(STEPS, st.integers(0, 30), st.integers(0, 40))
def test_what_counts_is_kept(
    kernel: ModuleType, steps: list[tuple[str, int, int]], first: int, cut: int
) -> None:
    """Exactly the messages that count, from whichever entry the set begins, and whether its last
    entry is whole or cut; as it is, where none is left out."""
    entries, kept, aborted = history(steps)
    data = memoryview(b"".join(entries[first:]))
    whole = data[: len(data) - cut] if cut < len(data) else data
    there = offsets(kernel, whole)
    began = next((one.base_offset for one in batches(whole)), 0)
    # A broker names those that overlap the set.
    named = [(start, producer) for start, producer, end in aborted if end >= began]
    result = kernel.without_aborted(whole, named)
    assert offsets(kernel, result) == [at for at in there if at in set(kept)]
    if offsets(kernel, result) == there:
        assert result is whole
    assert kernel.without_aborted(whole, []) is whole


def test_damage(kernel: ModuleType) -> None:
    """An impossible size, and a marker that cannot be read, have their place."""
    good = batch(0, b"a", producer=7)
    bad_size = bytearray(batch(1, b"b", producer=7))
    bad_size[8:12] = (20).to_bytes(4, "big")
    marker = bytearray(batch(1, control=ABORT, producer=7))
    marker[61] = 0x7F  # the length of the record
    for bad in (bad_size, marker):
        with pytest.raises(CorruptMessage) as error:
            kernel.without_aborted(good + bad, [(0, 7)])
        assert error.value.position == len(good)
