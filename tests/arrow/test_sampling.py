"""Bytes of ranges by samples, and parts of about the same number of bytes."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.arrow.options import parse_read_options
from kafka08.arrow.plan import cut_by_bytes, split_by_bytes
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.resolve import Resolver
from kafka08.arrow.sampling import SAMPLE_BYTES, densities, density
from kafka08.errors import OffsetOutOfRange
from kafka08.protocol import compression, message_set
from kafka08.structs import TopicPartition
from tests.arrow.logs import T0, LogCluster

T1 = TopicPartition("t", 1)
per_offset = st.lists(st.floats(0, 1000), min_size=1, max_size=4)


@given(st.integers(0, 50), st.integers(1, 3000), per_offset, st.integers(1, 40))
def test_parts_are_the_piece(start: int, size: int, given_: list[float], parts: int) -> None:
    """For any densities the parts follow each other and together are the range."""
    piece = OffsetRange("t", 0, start, start + size)
    cut = cut_by_bytes(piece, given_, parts)
    assert (cut[0].from_offset, cut[-1].until_offset) == (start, start + size)
    assert all(a.until_offset == b.from_offset for a, b in pairwise(cut))
    assert len(cut) <= parts
    assert all(part.size for part in cut)


def test_parts_have_the_same_number_of_bytes() -> None:
    """A range whose last third has ten times the bytes is cut there more often; a partition of
    large messages gets more parts than one of small ones."""
    grows = OffsetRange("t", 0, 0, 300)
    assert [r.until_offset for r in cut_by_bytes(grows, [1, 1, 10], 6)] == [
        200,
        220,
        240,
        260,
        280,
        300,
    ]
    small, large = OffsetRange("t", 0, 0, 1000), OffsetRange("t", 1, 0, 1000)
    split = split_by_bytes({small: [1.0], large: [9.0]}, [small, large], 10)
    assert [r.partition for r in split] == [0] + [1] * 9
    assert {r.size for r in split[1:]} == {111, 112} or {r.size for r in split[1:]} == {111}
    assert split_by_bytes({small: [0.0]}, [small], 10) == [small]
    halves = split_by_bytes({small: [1.0]}, [small], 1, 500)
    assert [r.size for r in halves] == [500, 500]


def test_density() -> None:
    """It is exact for plain entries. Wrappers count without the first one, which may begin in front
    of the offset; the last one may be cut. One entry, nothing and damage have none."""
    plain = message_set.encode([(None, b"x" * 74)] * 10, 0, 5)  # 100 bytes each
    assert density(plain) == density(plain[:150]) == 100
    first, second = (
        message_set.encode([(None, b"x" * 74)] * 10, compression.SNAPPY, at) for at in (5, 15)
    )
    assert density(first + second) == density(first + second[:12]) == len(second) / 10
    for nothing in (first, first[:20], first[:11], b"", bytes(100)):
        assert density(nothing) is None


def test_entries_larger_than_the_sample_are_measured_by_the_head_of_the_next() -> None:
    """Wherever the sample begins in a wrapper; the last wrapper of a log counts as the mean."""
    cluster = LogCluster({"t": {0: 1}})
    messages = [(None, bytes(1000))] * 100  # zeros: compressed, but not below the sample
    messages[50] = (None, random.Random(1).randbytes(SAMPLE_BYTES))
    for _ in range(3):
        cluster.write(T0, messages, compression.SNAPPY)
    size = len(cluster.logs[T0]) / 3
    found = densities(cluster.client, [OffsetRange("t", 0, 0, 300)])
    (by_third,) = found.values()
    assert by_third == pytest.approx([size / 100] * 3, rel=0.001)


def skewed() -> LogCluster:
    """[t,0]: 8,000 messages of 40 bytes, then 2,000 of 1,000; [t,1]: 10,000 of 40."""
    cluster = LogCluster({"t": {0: 1, 1: 2}})
    for size, count, tp in ((40, 8000, T0), (1000, 2000, T0), (40, 10_000, T1)):
        cluster.write(tp, [(None, bytes(size - 26))] * count)
    return cluster


def test_ranges_are_measured_in_each_third() -> None:
    """A place that cannot be measured has the mean of the others; an empty range too."""
    ranges = [OffsetRange("t", 0, 6000, 10_000)]
    ranges += [OffsetRange("t", 1, 0, until) for until in (10, 0)]
    cluster = skewed()
    found = densities(cluster.client, ranges)
    assert found[ranges[0]] == (40, 1000, 1000)
    assert found[ranges[1]] == (40, 40, 40)
    cluster.refuse(T1, *[OffsetOutOfRange.code] * 3)
    found = densities(cluster.client, ranges)
    assert found[ranges[0]] == (40, 1000, 1000)
    assert found[ranges[1]] == found[ranges[2]] == (680, 680, 680)


def test_the_option_shares_tasks_by_bytes() -> None:
    """With splitBy=bytes the partition of large messages gets most of the tasks."""
    options = {
        "kafka.bootstrap.servers": "b1:9092",
        "subscribe": "t",
        "minPartitions": "9",
        "splitBy": "bytes",
    }
    cluster = skewed()
    resolver = Resolver(parse_read_options(options), cluster.client)
    tasks = resolver.tasks(resolver.batch())
    assert [t.partition for t in tasks].count(1) == 1
    assert len([t for t in tasks if t.partition == 0 and t.until_offset > 8000]) >= 4
    assert sum(t.size for t in tasks) == 20_000
