"""A stream's positions: what the checkpoint holds is enough to read any batch again."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from kafka08.arrow.ranges import OffsetRange
from kafka08.spark.stream_offsets import (
    StreamOffset,
    end_of_batch,
    offsets_between,
    ranges_between,
)
from kafka08.structs import TopicPartition

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)

partitions = st.builds(TopicPartition, st.sampled_from(["t", "u", "initial"]), st.integers(0, 11))
numbers = st.dictionaries(partitions, st.integers(0, 10_000), max_size=6)


@given(numbers, numbers, st.dictionaries(st.sampled_from(["t", "u"]), st.integers(1, 1 << 40)))
def test_text_and_back(
    ends: dict[TopicPartition, int], starts: dict[TopicPartition, int], created: dict[str, int]
) -> None:
    """from_json returns the position that to_json was given."""
    position = StreamOffset(ends, starts, created)
    assert StreamOffset.from_json(json.loads(json.dumps(position.to_json()))) == position


def test_the_json_is_that_of_sparks_connector() -> None:
    """It has the starts too, only if there are any."""
    assert StreamOffset({T1: 7, T0: 5}).to_json() == {"t": {"0": 5, "1": 7}}
    assert StreamOffset({T0: 5}, {T0: 3}).to_json() == {
        "t": {"0": 5},
        "$starts": {"t": {"0": 3}},
    }


def test_batch_0_carries_its_start() -> None:
    """After a failure inside batch 0 the latest offset has moved: the repeated batch has the same
    ranges."""
    first = StreamOffset.initial({T0: 100})
    end = end_of_batch(first, {}, {T0: 105}, None)
    asked_again = StreamOffset.initial({T0: 150})
    assert ranges_between(asked_again, end) == [OffsetRange("t", 0, 100, 105)]
    assert ranges_between(first, end) == ranges_between(asked_again, end)


def test_an_empty_batch_0_is_exact_too() -> None:
    """An empty batch 0 ends at its start, and so does its repetition."""
    first = StreamOffset.initial({T0: 100})
    asked_again = StreamOffset.initial({T0: 150})
    assert ranges_between(asked_again, first) == []
    second = end_of_batch(first, {}, {T0: 150}, None)
    assert ranges_between(first, second) == [OffsetRange("t", 0, 100, 150)]


def test_new_partitions_carry_their_start() -> None:
    """The end of the first batch with a new partition has that partition's start."""
    start = StreamOffset({T0: 5})
    end = end_of_batch(start, {U0: 2}, {T0: 6, U0: 9}, None)
    assert end == StreamOffset({T0: 6, U0: 9}, {U0: 2})
    assert ranges_between(start, end) == [OffsetRange("t", 0, 5, 6), OffsetRange("u", 0, 2, 9)]
    after = end_of_batch(end, {}, {T0: 8, U0: 9}, None)
    assert after == StreamOffset({T0: 8, U0: 9})
    assert ranges_between(end, after) == [OffsetRange("t", 0, 6, 8)]


def test_partitions_gone_and_logs_cut() -> None:
    """Where loss is accepted, the stream continues with the partitions that exist."""
    start = StreamOffset({T0: 50, T1: 5})
    end = end_of_batch(start, {}, {T0: 40}, None)
    assert end.ends == {T0: 40}
    assert ranges_between(start, end) == []


@given(numbers, numbers, st.integers(1, 500))
def test_limited_batches_read_everything_once(
    begin: dict[TopicPartition, int], sizes: dict[TopicPartition, int], limit: int
) -> None:
    """Over batches under a limit each offset comes exactly once, and the stream reaches the end."""
    limit = max(limit, 1 + sum(sizes.values()) // 20)
    latest = {tp: begin.get(tp, 0) + size for tp, size in sizes.items()}
    position = StreamOffset.initial({tp: begin.get(tp, 0) for tp in latest})
    seen: dict[TopicPartition, int] = dict(position.ends)
    for _ in range(200):
        end = end_of_batch(position, {}, latest, limit)
        if end.ends == position.ends:
            break
        for r in ranges_between(position, end):
            assert seen[r.topic_partition] == r.from_offset
            seen[r.topic_partition] = r.until_offset
        assert offsets_between(position, end) <= limit + len(latest)
        position = StreamOffset.from_json(end.to_json())
    assert seen == latest
