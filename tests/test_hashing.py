"""kafka08.hashing against what a JVM computed (tests/data/hashes.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka08 import hashing
from kafka08.structs import TopicPartition

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "hashes.json").read_text(encoding="utf-8")
)["strings"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: repr(v["s"]))
def test_every_vector_of_the_jvm(vector: dict[str, Any]) -> None:
    """Each hash and each partition equals the JVM's."""
    text = vector["s"]
    data = text.encode()
    assert hashing.java_string_hash(text) == vector["String.hashCode"]
    assert hashing.group_partition(text, 50) == vector["group_partition_of_50"]
    assert hashing.java_bytes_hash(data) == vector["Arrays.hashCode(utf8)"]
    assert hashing.murmur2(data) == vector["murmur2(utf8)"]
    of_7 = hashing.masked_partition_of(hashing.murmur2(data), 7)
    assert of_7 == vector["new_producer_partition_of_7"]


def test_a_transactional_id_is_placed_like_a_group() -> None:
    """By the absolute value of its hash: "left 2" has a negative one, and 0.11.0.3 stores it in
    partition 2 of 3."""
    assert hashing.transaction_partition("left 2", 3) == 2
    assert hashing.transaction_partition("ref-g1", 50) == 42


def test_text_outside_the_basic_plane_counts_as_two_units() -> None:
    """Java hashes UTF-16 code units: U+1F600 is the pair D83D DE00."""
    assert hashing.java_string_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


def test_the_smallest_int_has_the_absolute_value_zero() -> None:
    """Utils.abs of Integer.MIN_VALUE is 0, so such a key goes to partition 0."""
    assert hashing.java_abs(-(2**31)) == 0
    assert hashing.java_abs(-7) == 7
    assert hashing.partition_of(-(2**31), 50) == 0


def test_a_fetcher_is_numbered_in_32_bits() -> None:
    """31 times the hash of "pages" overflows an int: Java continues with -995751748."""
    assert hashing.java_string_hash("pages") == 106426308
    assert hashing.fetcher_of(TopicPartition("pages", 0), 1000) == 748
    assert hashing.fetcher_of(TopicPartition("pages", 1), 1000) == 747


def test_views_hash_as_their_bytes() -> None:
    """A memoryview or bytearray hashes as the bytes it shows."""
    data = b"\x80\x00key"
    for same in (bytearray(data), memoryview(data)):
        assert hashing.java_bytes_hash(same) == hashing.java_bytes_hash(data)
        assert hashing.murmur2(same) == hashing.murmur2(data)
