from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.errors import CorruptLog
from kafka08.log import names
from kafka08.structs import TopicPartition


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-0", TopicPartition("t", 0)),
        ("a-b-12", TopicPartition("a-b", 12)),
        ("__consumer_offsets-49", TopicPartition("__consumer_offsets", 49)),
        ("a--1", TopicPartition("a-", 1)),
    ],
)
def test_a_directory_name_is_split_at_its_last_dash(name: str, expected: TopicPartition) -> None:
    """A topic name may contain dashes (Log.parseTopicPartitionName)."""
    assert expected == names.parse_partition_directory(Path("/logs") / name)
    assert name == names.partition_directory(expected)


@pytest.mark.parametrize(
    "name",
    [
        "lost+found", "x-0.adbe3bd0567a4d949238898aad573652-delete", "-1", "t-", "t-1x",
        "copy of t-0", "t\n-0", "t-007", "t-2147483648",
    ],
)  # fmt: skip
def test_a_directory_that_is_no_partition_is_named(name: str) -> None:
    """The error has the name of the directory. 0.8.2.2 does not start on it and does not name
    it."""
    with pytest.raises(CorruptLog, match=r"/logs/"):
        names.parse_partition_directory(Path("/logs") / name)


def test_segment_files_carry_twenty_digits() -> None:
    """The name is the base offset with leading zeros, so that names sort like numbers."""
    assert "00000000000000000042.log" == names.file_of(Path(), 42, names.LOG_SUFFIX).name
    assert "09223372036854775807.index" == names.file_of(Path(), 2**63 - 1, names.INDEX_SUFFIX).name
    assert 42 == names.base_offset_of(names.file_of(Path("/d"), 42, names.LOG_SUFFIX))


@pytest.mark.parametrize("name", ["notes.log", "99999999999999999999.log", f"{2**63:020d}.log"])
def test_a_log_file_without_an_offset_is_named(name: str) -> None:
    """A .log file whose name is no number, or none that an offset can be, stops the load with its
    path."""
    with pytest.raises(CorruptLog, match=rf"/d/{name}"):
        names.base_offset_of(Path("/d") / name)
