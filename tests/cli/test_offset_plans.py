"""The offsets that a user gives, on the command line or in a file of --export."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from kafka08.cli.offset_plans import parse_position, read_csv, without_conflicts
from kafka08.structs import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_two_offsets_of_a_partition_are_refused() -> None:
    """Whichever is meant: the last one won silently. The same offset twice is no contradiction."""
    twice = map(parse_position, ("t:0=5", "t:1=7", "t:0=5"))
    assert {T0: 5, T1: 7} == without_conflicts(twice, "POSITION")
    conflict = map(parse_position, ("t:0=5", "t:0=9"))
    with pytest.raises(click.BadParameter, match="POSITION: t:0 has the offsets 5 and 9"):
        without_conflicts(conflict, "POSITION")


def test_a_blank_line_ends_no_file(tmp_path: Path) -> None:
    """The offsets behind it count too. (They were dropped silently.)"""
    file = tmp_path / "offsets.csv"
    file.write_text("t,0,5\n\nt,1,7\n")
    assert {T0: 5, T1: 7} == read_csv(file)
    file.write_text("t,0,5\nt,0,9\n")
    with pytest.raises(click.BadParameter, match="t:0 has the offsets 5 and 9"):
        read_csv(file)
