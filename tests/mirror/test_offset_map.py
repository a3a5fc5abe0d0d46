"""Offsets of the source and those of the target."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import ConfigError
from kafka08.mirror.offset_map import Copied, OffsetMap, Run, runs_of
from kafka08.structs import NO_LEADER_EPOCH, TopicPartition

TP = TopicPartition("pages", 1)


@st.composite
def copies(draw: st.DrawFn) -> list[tuple[list[int], list[int]]]:
    """Portions: offsets at the source, and at the target. Both ascend, with gaps."""
    found, source, target = [], draw(st.integers(0, 5)), 0
    for _ in range(draw(st.integers(1, 4))):
        here, there = [], []
        for _ in range(draw(st.integers(1, 6))):
            source += draw(st.sampled_from((0, 0, 0, 3)))
            target += draw(st.sampled_from((0, 0, 0, 1)))
            here.append(source)
            there.append(target)
            source, target = source + 1, target + 1
        found.append((here, there))
        target += 1  # the marker of the transaction
    return found


def stretches(there: Sequence[int]) -> list[tuple[list[int], int]]:
    """The indexes that a producer stored behind each other."""
    found: list[tuple[list[int], int]] = []
    for place, offset in enumerate(there):
        if found and offset == found[-1][1] + len(found[-1][0]):
            found[-1][0].append(place)
        else:
            found.append(([place], offset))
    return found


@given(copies())
def test_each_offset_leads_to_the_next_message(portions: list[tuple[list[int], list[int]]]) -> None:
    """A group goes on at the first message that it has not read, whatever gaps there are; the
    records are read back as they were written."""
    mapped = OffsetMap()
    for here, there in portions:
        copied = Copied(TP, runs_of(here, stretches(there)))
        assert Copied.decode(copied.encode()) == copied
        mapped.add(copied)
    pairs = [pair for here, there in portions for pair in zip(here, there, strict=True)]
    last_source, last_target = pairs[-1]
    assert mapped.position(TP) == last_source + 1
    assert mapped.first(TP) == pairs[0][0]
    for offset in range(last_source + 1):
        expected = next(target for source, target in pairs if source >= offset)
        assert mapped.translated(TP, offset) == expected
    assert mapped.translated(TP, last_source + 1) == last_target + 1


def test_messages_behind_each_other_are_one_run() -> None:
    """So the records of a long log stay small."""
    assert runs_of(range(10, 20), [([*range(4)], 7), ([*range(4, 10)], 11)]) == (Run(10, 10, 7),)


def test_the_epoch_of_what_was_copied_last_is_kept() -> None:
    """Read back from the records; those of earlier releases have none."""
    mapped = OffsetMap()
    for epoch, offset in ((4, 10), (5, 11)):
        written = Copied(TP, (Run(offset, 1, offset),), leader_epoch=epoch)
        mapped.add(Copied.decode(written.encode()))
    assert (mapped.position(TP), mapped.epoch(TP)) == (12, 5)
    mapped.add(Copied.decode(b'{"topic":"pages","partition":1,"runs":[[12,1,12]]}'))
    assert (mapped.position(TP), mapped.epoch(TP)) == (13, NO_LEADER_EPOCH)


def test_nothing_is_known_of_other_partitions() -> None:
    """None, and no guess."""
    mapped = OffsetMap()
    assert mapped.position(TP) is None
    assert mapped.translated(TP, 3) is None
    assert TP not in mapped


@pytest.mark.parametrize("text", [None, b"", b"{}", b'{"topic":1,"partition":0,"runs":[[1,2]]}'])
def test_a_strangers_record_is_refused(text: bytes | None) -> None:
    """Named, and nothing is guessed from it."""
    with pytest.raises(ConfigError, match="no record of a move"):
        Copied.decode(text)
