"""`kafka08 offsets`: what it cannot know it does not pass over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.structs import TopicPartition
from kafka08.zk import paths
from tests.cli.conftest import Commands, Inspector


def test_what_is_not_known_is_no_lag_of_nothing(kafka08: Commands, inspect: Inspector) -> None:
    """get and lag say so and exit 1, as an alarm needs it."""
    topic = group = inspect.create_topic("lag-by-cli")
    inspect.store.commit_offsets(group, {TopicPartition(topic, 0): 0})
    assert kafka08.refused("offsets", "lag", group, "--fail-above", "10").code == 0
    inspect.zk.create(f"/consumers/{group}/offsets/{topic}/old", "5")
    for verb in ("get", "lag"):
        done = kafka08.refused("offsets", verb, group)
        assert done.code == 1
        assert f"Not known: /consumers/{group}/offsets/{topic}/old" in done.err
        assert "messages behind" not in done.err


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        (("lag", "raeders", "--fail-above", "0"), "Error: there is no group raeders"),
        (("lag", "raeders", "--json"), "Error: there is no group raeders"),
        (("get", "raeders"), "Error: there is no group raeders"),
        (("export", "raeders"), "Not exported: raeders: there is no group raeders"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_group_that_does_not_exist_is_not_behind_by_0(
    kafka08: Commands, verb: tuple[str, ...], said: str
) -> None:
    """A name mistyped in an alarm must not be well for ever."""
    done = kafka08.refused("offsets", *verb)
    assert done.code == 1
    assert said in done.err
    assert "messages behind" not in done.err


def test_a_member_without_offsets_has_no_known_lag(kafka08: Commands, inspect: Inspector) -> None:
    """It may be behind by all there is: that is said, and the exit code is 1."""
    topic = group = inspect.create_topic("lag-of-nothing")
    registration = f'{{"version":1,"subscription":{{"{topic}":1}}}}'
    inspect.zk.create(paths.consumer_id(group, f"{group}_m"), registration, ephemeral=True)
    done = kafka08.refused("offsets", "lag", group, "--json")
    assert (done.code, done.out) == (1, b"[]\n")
    assert "Not known: its lag" in done.err


def test_an_export_is_whole(kafka08: Commands, inspect: Inspector) -> None:
    """Of several groups too it has what only Kafka has; a group that cannot be read is left out,
    named, and the exit code is 1."""
    topic = inspect.create_topic("export-by-cli", 2)
    groups = [f"{topic}-{letter}" for letter in "ab"]
    for group in groups:
        kafka08("offsets", "set", group, f"{topic}:1=0", "--store", "kafka")
    done = kafka08.refused("offsets", "export", *groups)
    assert done.code == 0
    assert json.loads(done.out)["groups"] == {g: {topic: {"1": [None, 0]}} for g in groups}
    inspect.zk.put(f"/consumers/{groups[0]}/offsets/{topic}/0", "garbage")
    done = kafka08.refused("offsets", "export", *groups)
    assert done.code == 1
    assert list(json.loads(done.out)["groups"]) == groups[1:]
    assert f"Not exported: {groups[0]}: /consumers/{groups[0]}" in done.err


def test_a_topic_that_does_not_exist_is_named(kafka08: Commands, inspect: Inspector) -> None:
    """Not the group, whose name was right."""
    topic = group = inspect.create_topic("reset-by-cli")
    inspect.store.commit_offsets(group, {TopicPartition(topic, 0): 0})
    done = kafka08.refused("offsets", "reset", group, "--to", "earliest", "--topic", "nosuch")
    assert done.code == 1
    assert "topic nosuch does not exist; kafka08 topic list" in done.err


def test_an_import_of_nothing_is_misuse(kafka08: Commands, tmp_path: Path) -> None:
    """An empty file, of an export that failed, must not pass for one that was imported."""
    file = tmp_path / "offsets.txt"
    file.touch()
    done = kafka08.refused("offsets", "import", file, "--execute")
    assert (2, b"") == (done.code, done.out)
    assert f"Error: {file}: no offsets in it" in done.err
