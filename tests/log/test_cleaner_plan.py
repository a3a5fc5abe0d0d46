"""The cleaner decides from numbers alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.log.cleaner_plan import (
    CleanerConfig,
    DirtyLog,
    SealedSegment,
    delete_horizon_ms,
    filthiest,
    first_dirty_offset,
    group_segments,
    keeps_tombstones,
    last_clean,
    measure,
)
from kafka08.structs import TopicPartition

TP = TopicPartition("t", 0)


def sealed(*sizes: int, index_bytes: int = 0, step: int = 10) -> list[SealedSegment]:
    return [
        SealedSegment(number * step, (number + 1) * step, size, index_bytes)
        for number, size in enumerate(sizes)
    ]


def dirty(name: str, clean_bytes: int, dirty_bytes: int) -> DirtyLog:
    return DirtyLog(TopicPartition(name, 0), 0, clean_bytes, dirty_bytes)


@pytest.mark.parametrize(
    ("checkpoint", "expected"), [(None, 5), (4, 5), (5, 5), (17, 17), (30, 30), (31, 5)]
)
def test_cleaning_continues_at_the_checkpoint(checkpoint: int | None, expected: int) -> None:
    """A checkpoint outside the sealed part of the log is ignored."""
    assert expected == first_dirty_offset(checkpoint, log_start_offset=5, active_base=30)


def test_a_segment_is_clean_if_all_of_it_is() -> None:
    """A segment that contains the first dirty offset counts as dirty with all of its bytes."""
    assert DirtyLog(TP, 20, 30, 30) == measure(TP, sealed(10, 20, 30), 20)
    assert DirtyLog(TP, 19, 10, 50) == measure(TP, sealed(10, 20, 30), 19)
    assert 0.5 == measure(TP, sealed(10, 20, 30), 20).dirty_ratio
    assert 0.0 == measure(TP, [], 0).dirty_ratio


def test_the_dirtiest_is_chosen_if_it_is_dirty_enough() -> None:
    """The log with the highest ratio is chosen if the ratio is strictly above the log's own
    threshold. The first one wins a tie, and an empty log is never chosen."""
    logs = [dirty("a", 50, 50), dirty("b", 40, 60), dirty("c", 40, 60), dirty("d", 0, 0)]
    assert filthiest([(log, 0.5) for log in logs]) is logs[1]
    assert filthiest([(logs[0], 0.5)]) is None
    assert filthiest([(logs[0], 0.4), (logs[1], 0.9)]) is logs[0]
    assert filthiest([(logs[3], -1.0)]) is None
    assert filthiest([]) is None


def test_groups_stay_below_the_limits() -> None:
    """A group stays strictly below the limit of bytes and below that of index bytes
    (CleanerTest.testSegmentGrouping)."""
    segments = sealed(10, 10, 10, 10, index_bytes=8)
    assert [(0, 4)] == group_segments(segments, 41, 1000)
    assert [(0, 3), (3, 4)] == group_segments(segments, 40, 1000)
    assert [(0, 2), (2, 4)] == group_segments(segments, 1000, 24)
    assert [(0, 1), (1, 2), (2, 3), (3, 4)] == group_segments(segments, 5, 1000)
    assert [] == group_segments([], 5, 5)


def test_a_group_fits_the_32_bits_of_an_index() -> None:
    """All offsets of a group lie less than 2**31 above its first one, because an index stores the
    difference."""
    segments = sealed(1, 1, 1, step=1 << 30)
    assert [(0, 2), (2, 3)] == group_segments(segments, 1000, 1000)


@given(
    segments=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20),
    limits=st.tuples(st.integers(1, 100), st.integers(1, 100)),
)
def test_every_segment_is_in_one_group(
    segments: list[tuple[int, int]], limits: tuple[int, int]
) -> None:
    """Groups keep the order of the segments. Only a group of one segment may exceed a limit, and no
    group has room for the next segment."""
    facts = [
        SealedSegment(number, number + 1, size, index_bytes)
        for number, (size, index_bytes) in enumerate(segments)
    ]
    groups = group_segments(facts, *limits)
    assert list(range(len(facts))) == [at for start, end in groups for at in range(start, end)]

    def fits(start: int, end: int) -> bool:
        sums = (sum(sizes) for sizes in zip(*segments[start:end], strict=True))
        return all(total < limit for total, limit in zip(sums, limits, strict=True))

    assert all(fits(start, end) for start, end in groups if end - start > 1)
    assert not any(fits(start, end + 1) for start, end in groups[:-1])


def test_the_last_clean_segment_begins_below_the_dirty_part() -> None:
    """The last clean segment is the last one that begins below the first dirty offset; it may
    contain dirty messages too. Without one the result is None."""
    assert last_clean(sealed(1, 1, 1), 0) is None
    assert 0 == last_clean(sealed(1, 1, 1), 10)
    assert 1 == last_clean(sealed(1, 1, 1), 15)
    assert 2 == last_clean(sealed(1, 1, 1), 30)
    assert last_clean([], 5) is None


def test_tombstones_go_from_old_clean_segments() -> None:
    """Tombstones go from clean segments that are as old as the horizon or older. A segment that is
    partly dirty keeps its tombstones at any age."""
    segment = SealedSegment(0, 10, 1, 0)
    assert not keeps_tombstones(segment, 10, 900, horizon_ms=900)
    assert keeps_tombstones(segment, 10, 901, horizon_ms=900)
    assert keeps_tombstones(segment, 9, 900, horizon_ms=900)


def test_no_tombstone_goes_while_nothing_is_clean() -> None:
    """The horizon is the retention before the last clean segment's time, or 0 without a clean
    segment. With 0 no tombstone goes."""
    assert 0 == delete_horizon_ms(None, 100)
    assert 900 == delete_horizon_ms(1000, 100)


def test_a_map_is_as_large_as_needed_and_never_larger_than_allowed() -> None:
    """A slot takes 24 bytes, the map fills to the load factor, and one slot stays free."""
    config = CleanerConfig(map_bytes=24_000, load_factor=0.9)
    assert (1000, 900) == (config.max_slots, config.max_keys)
    assert (1000, 900) == config.map_size(10**9)
    slots, keys = config.map_size(90)
    assert (101, 90) == (slots, keys)
    assert (2, 1) == CleanerConfig(map_bytes=48, load_factor=1.0).map_size(10)


@given(
    map_bytes=st.integers(48, 1 << 40),
    load_factor=st.floats(0.01, 1.0),
    messages=st.integers(0, 1 << 62),
)
def test_any_map_can_be_made(map_bytes: int, load_factor: float, messages: int) -> None:
    """The size is one that OffsetMap accepts: at least one key, at least one slot more, within the
    memory."""
    slots, keys = CleanerConfig(map_bytes=map_bytes, load_factor=load_factor).map_size(messages)
    assert 0 < keys < slots <= max(2, map_bytes // 24)
