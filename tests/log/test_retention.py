from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka08.log.retention import Retention, SegmentFacts

NOW_MS = 1_000_000


def facts(*sizes_and_ages: tuple[int, int]) -> list[SegmentFacts]:
    return [
        SegmentFacts(number * 10, size, NOW_MS - age_ms)
        for number, (size, age_ms) in enumerate(sizes_and_ages)
    ]


def test_time_stops_at_the_first_young_segment() -> None:
    """Old segments behind a young one stay, so that a log has no gaps. A segment exactly at the
    limit is young."""
    segments = facts((1, 500), (1, 101), (1, 100), (1, 900))
    assert 2 == Retention(100).expired(segments, NOW_MS)


def test_a_negative_retention_time_deletes_everything() -> None:
    """0.8: -1 deletes everything; it does not mean "unlimited"."""
    assert 2 == Retention(-1).expired(facts((1, 0), (1, 0)), NOW_MS)


def test_size_keeps_at_least_retention_bytes() -> None:
    """A segment goes only if the rest still has at least retention.bytes."""
    segments = facts((10, 0), (10, 0), (10, 0))
    assert [2, 1, 1, 0, 0, 0] == [
        Retention(retention_bytes=limit).expired(segments, NOW_MS)
        for limit in (10, 11, 20, 21, 30, 31)
    ]
    assert 3 == Retention(retention_bytes=0).expired(segments, NOW_MS)
    assert 0 == Retention(retention_bytes=-1).expired(segments, NOW_MS)


def test_retention_by_size_follows_retention_by_time() -> None:
    """Retention by size runs after retention by time, on what that left, as in Kafka."""
    assert 2 == Retention(100, 10).expired(facts((10, 500), (10, 0), (10, 0)), NOW_MS)


def test_an_empty_active_segment_stays() -> None:
    """An empty active segment stays, because the log would only create it again."""
    assert 1 == Retention(-1).expired(facts((5, 9), (0, 9)), NOW_MS)
    assert 0 == Retention(-1).expired(facts((0, 9)), NOW_MS)
    assert 1 == Retention(-1).expired(facts((1, 9)), NOW_MS)


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 1000)), min_size=1, max_size=8),
    st.integers(-1, 300),
)
def test_size_retention_is_the_definition(segments: list[tuple[int, int]], limit: int) -> None:
    """Retention by size deletes the longest run of oldest segments that leaves at least the
    limit, but no empty active segment."""
    found = Retention(retention_bytes=limit).expired(facts(*segments), NOW_MS)
    sizes = [size for size, _ in segments]
    most = len(sizes) if sizes[-1] else len(sizes) - 1
    allowed = [n for n in range(most + 1) if sum(sizes[n:]) >= limit]
    assert (max(allowed, default=0) if limit >= 0 else 0) == found
