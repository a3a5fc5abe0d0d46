"""Ranges as text, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.arrow.ranges import OffsetRange, ranges_from_json, ranges_to_json
from kafka08.errors import ConfigError
from kafka08.structs import TopicPartition

offsets = st.integers(0, 2**63 - 1)
ranges = st.builds(
    lambda topic, partition, a, b: OffsetRange(topic, partition, min(a, b), max(a, b)),
    st.text(min_size=1),
    st.integers(0, 2**31 - 1),
    offsets,
    offsets,
)


@given(st.lists(ranges))
def test_text_and_back(given_ranges: list[OffsetRange]) -> None:
    """ranges_from_json returns what ranges_to_json was given, in order, with repetitions."""
    assert ranges_from_json(ranges_to_json(given_ranges)) == tuple(given_ranges)


def test_size_and_name() -> None:
    """The size counts offsets; the text names the partition as Kafka does."""
    wanted = OffsetRange("t", 3, 10, 25)
    assert wanted.size == 15
    assert wanted.topic_partition == TopicPartition("t", 3)
    assert str(wanted) == "[t,3] [10, 25)"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[[", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"t":1}', "is not a list"),
        ('[["t",0,1]]', "is not [topic, partition, from, until]"),
        ('[["t","0",1,2]]', "is not [topic, partition, from, until]"),
        ('[["",0,1,2]]', "is not [topic, partition, from, until]"),
        ('[["t",0,1.5,2]]', "is not [topic, partition, from, until]"),
        ('[["t",-1,1,2]]', "negative"),
        ('[["t",0,-2,2]]', "negative"),
        ('[["t",0,3,2]]', "starts behind its end"),
    ],
)
def test_refusals(text: str, fault: str) -> None:
    """A text that is no list of ranges is a ConfigError with the option's name and the reason."""
    with pytest.raises(ConfigError) as refused:
        ranges_from_json(text)
    assert str(refused.value).startswith("offsetRanges: ")
    assert fault in str(refused.value)
