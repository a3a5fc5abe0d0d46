"""Files of offsets: what was written is read, the JVM's form is the JVM's, faults are named."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kafka08.admin.group_facts import GroupFacts
from kafka08.admin.offset_files import FORM, parse, read_offsets, to_json, to_jvm_lines
from kafka08.errors import ConfigError
from kafka08.observe.group import PartitionFacts
from kafka08.structs import TopicPartition

TPS = [TopicPartition("t", n) for n in range(3)]
FACTS = GroupFacts(
    "g",
    (),
    (
        PartitionFacts(TPS[0], 5, 7, 0, 9),
        PartitionFacts(TPS[1], None, 3, 0, 9),
        PartitionFacts(TPS[2], None, None, 0, 9),
    ),
)


def test_our_form_has_both_stores() -> None:
    """An import restores each store's own; partitions without an offset are not set. (The larger
    one went into both: export, then import of the same file moved the group.)"""
    assert parse(to_json([FACTS])) == {"g": {TPS[0]: (5, 7), TPS[1]: (None, 3)}}


def test_no_position_is_no_offset() -> None:
    """A member of 0.8.2.2 without a position commits -1. It is not exported, and the JVM's export,
    which has it, can be imported."""
    facts = replace(FACTS, partitions=(PartitionFacts(TPS[0], -1, -1, 0, 9), FACTS.partitions[1]))
    assert parse(to_json([facts])) == {"g": {TPS[1]: (None, 3)}}
    assert list(to_jvm_lines([facts], "newest")) == ["/consumers/g/offsets/t/1:3"]
    line = "/consumers/g/offsets/t/"
    assert parse(f"{line}0:-1\n{line}1:3") == {"g": {TPS[1]: (3, 3)}}
    assert parse('{"version":1,"groups":{"g":{"t":{"0":[-1,3]}}}}') == {"g": {TPS[0]: (None, 3)}}


def test_groups_without_offsets_are_left_out(tmp_path: Path) -> None:
    """An export of all groups can be imported: a group that has never committed is not in it, and
    is passed over in a file that has it."""
    nothing = GroupFacts("idle", (), (PartitionFacts(TPS[0], None, None, 0, 9),))
    assert "idle" not in to_json([nothing, FACTS])
    path = tmp_path / "offsets.json"
    path.write_text('{"version":1,"groups":{"idle":{},"g":{"t":{"0":[5,7]}}}}')
    assert read_offsets(path) == {"g": {TPS[0]: (5, 7)}}


@pytest.mark.parametrize(
    "text", ['{"version":1,"groups":{"g":{"t":{"0":[5,5]}}}}', "/consumers/g/offsets/t/0:5"]
)
def test_the_mark_of_an_editor_is_no_part_of_it(tmp_path: Path, text: str) -> None:
    """Some write one before UTF-8."""
    path = tmp_path / "offsets"
    path.write_text(text, encoding="utf-8-sig")
    assert read_offsets(path) == {"g": {TPS[0]: (5, 5)}}


def test_the_jvms_form_is_one_line_for_each_znode() -> None:
    """The form is ExportZkOffsets's. Empty lines are passed over: the JVM ends there, and drops the
    rest without a word."""
    assert list(to_jvm_lines([FACTS], "zookeeper")) == ["/consumers/g/offsets/t/0:5"]
    lines = list(to_jvm_lines([FACTS], "newest"))
    assert parse("\n \n".join(lines)) == {"g": {TPS[0]: (7, 7), TPS[1]: (3, 3)}}
    with pytest.raises(ConfigError, match="line 4: 'nonsense'"):
        parse("\n".join([*lines, "", "nonsense"]))


@pytest.mark.parametrize("text", ["/consumers/g/offsets/t:5", "x", "/a\n/consumers/g/x/t/0:1"])
def test_an_invalid_line_is_named(text: str) -> None:
    """A line without the path of an offset is a ConfigError with its number."""
    with pytest.raises(ConfigError, match="line 1"):
        parse(text)


@pytest.mark.parametrize("offset", ["0.0", '"1"', "-2", "true", "[]"])
def test_an_invalid_offset_is_refused(offset: str) -> None:
    """The tool would write it into a znode unchanged, and no member could read that."""
    with pytest.raises(ConfigError, match="is not an offset"):
        parse(f'{{"version":1,"groups":{{"g":{{"t":{{"0":[{offset},null]}}}}}}}}')


def test_two_offsets_of_a_partition_are_refused() -> None:
    """Whichever is meant: the last one won silently. The same offset twice is no contradiction."""
    line = "/consumers/g/offsets/t/0:"
    with pytest.raises(ConfigError, match=r"line 2: \[t,0\] of group g has offset 6 here and 5 in"):
        parse(f"{line}5\n{line}6\n")
    assert {"g": {TopicPartition("t", 0): (5, 5)}} == parse(f"{line}5\n{line}5\n")
    with pytest.raises(ConfigError, match='"0" is twice'):
        parse('{"version":1,"groups":{"g":{"t":{"0":[5,null],"1":[7,7],"0":[6,null]}}}}')


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """The error has the first byte that cannot be decoded."""
    path = tmp_path / "offsets.txt"
    path.write_bytes(b"/consumers/\xff/offsets/u/0:1\n")
    with pytest.raises(ConfigError, match=r"offsets\.txt: .*byte 11 is not UTF-8"):
        read_offsets(path)


@pytest.mark.parametrize("text", ["{", "{}", '{"version":2,"groups":{}}', '{"version":1}'])
def test_another_json_object_is_refused(text: str) -> None:
    """JSON of another kind or version is a ConfigError that says what is expected."""
    with pytest.raises(ConfigError, match="not a file of"):
        parse(text)


@pytest.mark.parametrize(
    ("groups", "place"),
    [
        ("[]", "groups: "),
        ('{"g":1}', "group g: "),
        ('{"g":{"t":[]}}', "group g, topic t: "),
        ('{"g":{"t":{"x":[1,2]}}}', "group g, topic t: 'x'"),
        ('{"g":{"t":{"0":5}}}', "group g, topic t, partition 0: 5"),
    ],
)
def test_a_wrong_field_is_named(groups: str, place: str) -> None:
    """The error has the field's path in the file, and an example of a valid value."""
    with pytest.raises(ConfigError, match=re.escape(place)) as caught:
        parse(f'{{"version":1,"groups":{groups}}}')
    assert f"one has the form {FORM}" in str(caught.value)


def test_the_example_of_the_form_is_valid() -> None:
    """The example has a partition whose offset only ZooKeeper has."""
    assert parse(FORM) == {"readers": {TopicPartition("pages", 0): (120, None)}}


@pytest.mark.parametrize("text", ["", "\n", '{"version":1,"groups":{"g":{}}}'])
def test_a_file_without_offsets_is_refused(tmp_path: Path, text: str) -> None:
    """An empty import is never intended: the export failed, or it is another file."""
    path = tmp_path / "offsets.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"offsets\.txt: no offsets in it"):
        read_offsets(path)
