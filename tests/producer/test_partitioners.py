"""Partitioners return the partitions of the JVM (tests/data/hashes.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.producer.partitioners import ByteArrayPartitioner, DefaultPartitioner, java_hash

STRINGS = json.loads((Path(__file__).parent.parent / "data" / "hashes.json").read_text())["strings"]


@pytest.mark.parametrize("vector", STRINGS, ids=lambda vector: repr(vector["s"]))
def test_captured_hashes(vector: dict[str, object]) -> None:
    """Text has the hash of String.hashCode, and bytes that of Arrays.hashCode. 50 is the number of
    partitions of the offsets topic."""
    text = str(vector["s"])
    assert java_hash(text) == vector["String.hashCode"]
    assert java_hash(text.encode()) == vector["Arrays.hashCode(utf8)"]
    assert DefaultPartitioner()(text, 50) == vector["group_partition_of_50"]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, 0),
        (-5, -5),
        (2**31 - 1, 2**31 - 1),
        (-(2**31), -(2**31)),
        (2**31, -(2**31)),
        (2**32 + 7, 1 ^ 7),
        (2**63 - 1, -(2**31)),
        (-(2**63), -(2**31)),
        (-(2**31) - 1, -(2**31)),
    ],
)
def test_numbers(number: int, expected: int) -> None:
    """Integer.hashCode is the number. Long.hashCode combines its halves, by the JVM's rule (int)
    (value ^ (value >>> 32))."""
    assert java_hash(number) == expected


def test_the_smallest_hash_goes_to_partition_0() -> None:
    """kafka.utils.Utils.abs maps MIN_VALUE to 0. Math.abs would return a negative number."""
    assert DefaultPartitioner()(-(2**31), 7) == 0
    assert DefaultPartitioner()("polygenelubricants", 7) == 0


def test_bytes() -> None:
    """ByteArrayPartitioner and DefaultPartitioner choose the same partition for bytes."""
    assert ByteArrayPartitioner()(b"key-1", 7) == 130572514 % 7
    assert DefaultPartitioner()(b"key-1", 7) == 130572514 % 7


@pytest.mark.parametrize("key", [1.5, True, ("a",), 2**63, object()])
def test_other_types_have_no_java_hash(key: object) -> None:
    """A key of another type is an error, since no JVM producer would choose the same partition."""
    with pytest.raises(TypeError, match="no Java hash"):
        DefaultPartitioner()(key, 3)
