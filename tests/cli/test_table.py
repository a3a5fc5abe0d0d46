"""Rows under headings, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.cli.table import SHORTEST, as_objects, layout, shortened, show_table
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.group_store import GroupStore
from tests.cli.conftest import Commands, Inspector


def keys_in(value: Any) -> Iterator[str]:
    """Every key of every object in a JSON value."""
    if isinstance(value, list):
        for item in value:
            yield from keys_in(item)
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from keys_in(item)


def test_columns_are_as_wide_as_their_cells() -> None:
    """Columns are as wide as their cells. Headings and cells begin together, `-` means None, and no
    line ends with blanks."""
    heads, lines = layout(("topic", "log start"), [("words", None), ("a", 17)])
    assert ["topic  log start"] == heads
    assert ["words  -", "a      17"] == lines


def test_rows_as_objects_name_their_fields_by_the_headings() -> None:
    """Values keep their type, and a heading of two words becomes one key."""
    assert [{"topic": "t", "log_start": None}, {"topic": "u", "log_start": 3}] == as_objects(
        ("topic", "log start"), [("t", None), ("u", 3)]
    )


def test_an_empty_table_is_a_sentence_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty table prints a sentence on stderr, and nothing on stdout for a program to read."""
    show_table(("topic",), [], if_none="No offsets are committed.")
    assert ("", "No offsets are committed.\n") == capsys.readouterr()


def test_no_key_of_json_has_a_blank(kafka08: Commands, inspect: Inspector) -> None:
    """Every key in the JSON of `group`, `offsets` and `migrate` is one word, and the same word in
    each."""
    topic = group = inspect.create_topic("keys-by-cli")
    GroupStore(inspect.store.zk).commit_offsets(group, {TopicPartition(topic, 0): 0})
    kafka08.refused("migrate", "start", group)
    registration = f'{{"version":1,"subscription":{{"{topic}":1}}}}'
    inspect.zk.create(paths.consumer_id(group, f"{group}_m"), registration, ephemeral=True)
    keys = {}
    for line in (
        "group list",
        f"group describe {group}",
        f"group explain {group}",
        f"offsets get {group}",
        f"offsets lag {group}",
        f"migrate plan {group}",
        f"migrate status {group}",
        f"migrate verify {group} --seconds 0.1",
        f"migrate rollback {group}",
    ):
        done = kafka08.refused(*line.split(), "--json")
        assert done.out, f"{line}: {done.err}"
        keys[line.rpartition(f" {group}")[0] or line] = set(keys_in(json.loads(done.out)))
    assert not {key for found in keys.values() for key in found if " " in key}
    common = {"topic", "partition", "zookeeper", "kafka", "log_start", "log_end", "lag"}
    for name in ("group describe", "offsets get", "migrate plan"):
        assert common <= keys[name], name


OWNERS = [("words", 0, "readers_worker-7.example.com-1700000000000-0a1b2c3d-0", 120)]


def test_a_table_fits_the_terminal() -> None:
    """The longest cells lose their middle. Their beginning and end, which tell owners apart,
    stay."""
    [head], [line] = layout(("topic", "partition", "owner", "lag"), OWNERS, 50)
    assert "topic  partition  owner                        lag" == head
    assert "words  0          readers_worke…00-0a1b2c3d-0  120" == line
    assert 50 == len(head) == len(line)


def test_prose_is_folded_at_its_blanks() -> None:
    """A sentence is whole on a narrow terminal, too: its middle may be what it says."""
    says = "the offset in Kafka is newer: nothing to copy"
    heads, lines = layout(("topic", "partition", "to do"), [("t", 0, says), ("t", 1, "copy")], 40)
    assert ["topic  partition  to do"] == heads
    assert "t      0          the offset in Kafka is" == lines[0]
    assert "                  newer: nothing to copy" == lines[1]
    assert "t      1          copy" == lines[2]


def test_cells_keep_a_least_width() -> None:
    """No cell becomes shorter than SHORTEST or its heading, whatever the terminal's width."""
    [head], [line] = layout(("topic", "partition", "owner", "lag"), OWNERS, 5)
    assert "topic  partition  owner         lag" == head
    assert "readers…c3d-0" not in line
    assert SHORTEST == len(line.split()[2])


PLANNED = ("topic", "partition", "log start", "lag", "owner", "to do")
STEPS = [("words", 0, 1200, 34, None, "copy"), ("words", 1, 1300, 35, None, "nothing")]


def test_headings_are_broken_where_whole_ones_do_not_fit() -> None:
    """Headings break at their blanks, and the cells below stay unchanged."""
    heads, lines = layout(PLANNED, STEPS, 46)
    assert "topic  partition  log    lag  owner  to" == heads[0]
    assert "                  start              do" == heads[1]
    assert "words  0          1200   34   -      copy" == lines[0]


def test_empty_columns_give_way_where_that_is_not_enough() -> None:
    """Columns with only `-` are left out, on a narrow terminal alone."""
    heads, lines = layout(PLANNED, STEPS, 39)
    assert "topic  partition  log    lag  to" == heads[0]
    assert "words  1          1300   35   nothing" == lines[1]
    assert all(len(line) <= 39 for line in (*heads, *lines))
    assert "owner" in layout(PLANNED, STEPS)[0][0]


def test_a_pipe_is_given_every_cell_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe every cell is whole and without colour, because a program may read it."""
    show_table(("topic", "partition", "owner", "lag"), OWNERS)
    printed = capsys.readouterr().out
    assert OWNERS[0][2] in printed
    assert "\x1b" not in printed


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8])
def test_a_shortened_text_is_as_long_as_it_may_be(width: int) -> None:
    """A shortened text has exactly the limit; a text that fits stays unchanged."""
    assert width == len(shortened("abcdefgh", width))
    assert ("abcdefgh" == shortened("abcdefgh", width)) == (width == 8)
