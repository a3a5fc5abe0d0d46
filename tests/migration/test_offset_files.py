"""Files of offsets: what was written is read, the JVM's form is the JVM's, faults are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka08.errors import ConfigError
from kafka08.migration.facts import GroupFacts, PartitionFacts
from kafka08.migration.offset_files import FORM, parse, read_offsets, to_json, to_jvm_lines
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


def test_ours_holds_both_stores() -> None:
    """And means the newer one; partitions without an offset are not set."""
    assert parse(to_json([FACTS])) == {"g": {TPS[0]: 7, TPS[1]: 3}}


def test_the_jvms_form_is_one_line_for_each_znode() -> None:
    """As ExportZkOffsets writes it; a file ends at its first empty line."""
    assert list(to_jvm_lines([FACTS], "zookeeper")) == ["/consumers/g/offsets/t/0:5"]
    lines = list(to_jvm_lines([FACTS], "newest"))
    assert parse("\n".join([*lines, "", "nonsense"])) == {"g": {TPS[0]: 7, TPS[1]: 3}}


@pytest.mark.parametrize("text", ["/consumers/g/offsets/t:5", "x", "/a\n/consumers/g/x/t/0:1"])
def test_a_strange_line_is_named(text: str) -> None:
    """A line that is no path of an offset is a ConfigError with its number."""
    with pytest.raises(ConfigError, match="line 1"):
        parse(text)


@pytest.mark.parametrize("offset", ["0.0", '"1"', "-1", "true", "[]"])
def test_what_is_no_offset_is_refused(offset: str) -> None:
    """It would be written into a znode as it stands, and no member could read that."""
    with pytest.raises(ConfigError, match="is no offset"):
        parse(f'{{"version":1,"groups":{{"g":{{"t":{{"0":[{offset},null]}}}}}}}}')


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """With the first byte that cannot be read."""
    path = tmp_path / "offsets.txt"
    path.write_bytes(b"/consumers/\xff/offsets/u/0:1\n")
    with pytest.raises(ConfigError, match=r"offsets\.txt: .*byte 11 is no UTF-8"):
        read_offsets(path)


@pytest.mark.parametrize("text", ["{", "{}", '{"version":2,"groups":{}}', '{"version":1}'])
def test_a_strange_object_is_refused(text: str) -> None:
    """JSON of another kind or version is a ConfigError that says what is read."""
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
def test_a_wrong_place_is_named(groups: str, place: str) -> None:
    """In the words of the file, with an example of what belongs there."""
    with pytest.raises(ConfigError, match=re.escape(place)) as caught:
        parse(f'{{"version":1,"groups":{groups}}}')
    assert f"one has the form {FORM}" in str(caught.value)


def test_the_example_of_the_form_can_be_read() -> None:
    """It has a partition that only ZooKeeper knows an offset of."""
    assert parse(FORM) == {"readers": {TopicPartition("pages", 0): 120}}


@pytest.mark.parametrize("text", ["", "\n", '{"version":1,"groups":{"g":{}}}'])
def test_a_file_without_offsets_is_refused(tmp_path: Path, text: str) -> None:
    """Nobody means to set nothing: the export went wrong, or it is another file."""
    path = tmp_path / "offsets.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"offsets\.txt: no offsets in it"):
        read_offsets(path)
