"""kafka08.config: Java properties, typed keys, and errors that name key, value and range."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka08.config import (
    Config,
    escape_property,
    key,
    load_properties,
    parse_overrides,
    parse_properties,
)
from kafka08.errors import ConfigError


class Sample(Config):
    ALIASES = {"log.dir": "log.dirs"}

    group_id: str = key()
    fetch_max_bytes: int = key(1024, low=1, high=5000)
    ratio: float = key(0.5, low=0.0)
    auto_commit_enable: bool = key(True)
    storage: str = key("zookeeper", choices=("zookeeper", "kafka"))
    log_dirs: str = key("/tmp")
    consumer_id: str | None = key(None)
    num_network_threads: int = key(3, low=1, effect=False)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1", {"a": "1"}),
        ("a:1\nb 2", {"a": "1", "b": "2"}),
        ("# c\n! d\n\n  a=1", {"a": "1"}),
        ("a=1 ", {"a": "1 "}),
        ("a=x\\\n   y", {"a": "xy"}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        ("a\\=b=1", {"a=b": "1"}),
        ("a=\\u0041\\t", {"a": "A\t"}),
        ("a", {"a": ""}),
        ("a==1", {"a": "=1"}),
    ],
)
def test_properties_read_as_java_reads_them(text: str, pairs: dict[str, str]) -> None:
    """Separators, comments, continuation, escapes and trailing blanks are as in Java."""
    assert pairs == parse_properties(text)


@example("\U0001f600 ü \udcff")
@given(st.text())
def test_an_escaped_value_is_read_as_it_was(value: str) -> None:
    """A value written with escape_property is ASCII on one line, and is read unchanged: blanks at
    its start, line ends, characters beyond 16 bits, and bytes of a path that is not UTF-8."""
    line = f"a={escape_property(value)}"
    assert line.isascii()
    assert {"a": value, "b": "1"} == parse_properties(f"{line}\nb=1\n")


def test_defaults_text_and_typed_values_meet() -> None:
    """A key is its default, or the parsed text, or the keyword; keywords win."""
    config = Sample({"group.id": "g", "fetch.max.bytes": " 10 "}, group_id="h")
    assert ("h", 10, 0.5, True) == (
        config.group_id,
        config.fetch_max_bytes,
        config.ratio,
        config.auto_commit_enable,
    )


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({}, ["group.id", "Missing"]),
        ({"group.id": "g", "fetch.max.bytes": "0"}, ["fetch.max.bytes", "'0'", "1 to 5000"]),
        ({"group.id": "g", "fetch.max.bytes": "x"}, ["fetch.max.bytes", "'x'", "number"]),
        ({"group.id": "g", "ratio": "-1"}, ["ratio", "-1", "below"]),
        ({"group.id": "g", "auto.commit.enable": "yes"}, ["auto.commit.enable", "'yes'", "true"]),
        ({"group.id": "g", "storage": "disk"}, ["storage", "'disk'", "zookeeper, kafka"]),
        ({"group.id": ["g", "h"]}, ["group.id", "['g', 'h']", "by commas"]),
    ],
)
def test_a_bad_value_names_key_value_and_range(
    properties: dict[str, Any], words: list[str]
) -> None:
    """Every refused value says which key it is, what it was, and what would do."""
    with pytest.raises(ConfigError) as refused:
        Sample(properties)
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_unknown_and_idle_keys_are_named_not_refused(caplog: pytest.LogCaptureFixture) -> None:
    """An unknown key and a key without effect are warned about; `external` ones are silent."""
    config = Sample(
        {"group.id": "g", "grop.id": "x", "num.network.threads": "8", "external.x": "1"}
    )
    with caplog.at_level(logging.WARNING):
        config.log_notes()
    assert {"grop.id": "x"} == config.unknown
    assert ["num.network.threads"] == config.without_effect
    assert 2 == len(caplog.records)


def test_an_alias_is_the_key_unless_the_key_is_there() -> None:
    """log.dir stands in for log.dirs, and log.dirs wins."""
    assert "/a" == Sample({"group.id": "g", "log.dir": "/a"}).log_dirs
    assert "/b" == Sample({"group.id": "g", "log.dir": "/a", "log.dirs": "/b"}).log_dirs


def test_changes_make_another_configuration() -> None:
    """with_changes keeps what was given, and the original cannot be changed."""
    config = Sample(group_id="g", ratio=0.25)
    assert (0.25, 7) == (
        config.with_changes(fetch_max_bytes=7).ratio,
        config.with_changes(fetch_max_bytes=7).fetch_max_bytes,
    )
    with pytest.raises(AttributeError, match="immutable"):
        config.ratio = 1.0


def test_overrides_are_pairs() -> None:
    """KEY=VALUE keeps later equals signs; anything else is refused by its text."""
    assert {"a": "b=c"} == parse_overrides(["a=b=c"])
    with pytest.raises(ConfigError, match="'nonsense'"):
        parse_overrides(["nonsense"])


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    """A missing properties file is a ConfigError with its path."""
    with pytest.raises(ConfigError, match=r"none\.properties"):
        load_properties(tmp_path / "none.properties")


def test_the_mark_of_an_editor_is_no_part_of_a_key(tmp_path: Path) -> None:
    """Some write one before UTF-8: the first key was one that nobody knows."""
    path = tmp_path / "a.properties"
    path.write_bytes(b"\xef\xbb\xbfgroup.id=g\n")
    assert load_properties(path) == {"group.id": "g"}


def test_lines_end_where_java_ends_them() -> None:
    """CR, LF and CR LF end a line; what Unicode calls a line end, as a byte of UTF-8, does not."""
    assert {"a": "1", "b": "2", "c": "3\x85\x0b4"} == parse_properties("a=1\rb=2\r\nc=3\x85\x0b4")


def test_a_malformed_escape_is_refused() -> None:
    """A \\u needs four hexadecimal digits; the error shows where."""
    with pytest.raises(ConfigError, match="12zz"):
        parse_properties("a=\\u12zz")


def test_a_changed_configuration_still_warns_of_unknown_keys() -> None:
    """with_changes keeps what was not understood, so that its owner can say so."""
    changed = Sample({"group.id": "g", "nonsense": "1"}).with_changes(fetch_max_bytes=7)
    assert {"nonsense": "1"} == changed.unknown


def test_a_bad_pair_names_the_option_it_came_from() -> None:
    """The text that is no pair, and the option it stood behind."""
    with pytest.raises(ConfigError, match=r"--config 'retention\.ms' is not of the form KEY=VALUE"):
        parse_overrides(["retention.ms"], "--config")


def test_an_unknown_keyword_is_an_error_with_the_nearest_name() -> None:
    """A keyword is ours, so a mistyped one does not leave the default in force."""
    with pytest.raises(
        ConfigError, match=r"no key fetch\.max\.byte .*did you mean fetch_max_bytes"
    ):
        Sample(group_id="g", fetch_max_byte=7)
    with pytest.raises(ConfigError, match="did you mean fetch_max_bytes"):
        Sample(group_id="g").with_changes(fetch_max_byte=7)


def test_an_alias_is_a_keyword_too() -> None:
    """log_dir= is log.dir, the other spelling of log.dirs."""
    assert "/a" == Sample(group_id="g", log_dir="/a").log_dirs


def test_none_is_the_default_of_a_key_that_has_no_none() -> None:
    """Other clients have it as the default of many keys: kafka-python's group_id=None, say."""
    assert Sample(group_id="g", storage=None, log_dir=None) == Sample(group_id="g")
    assert Sample({"group.id": "g", "ratio": None}).given == {"group.id"}
    assert Sample(group_id="g", consumer_id=None).given == {"group.id", "consumer.id"}
    with pytest.raises(ConfigError, match=r"Missing required property 'group\.id'"):
        Sample(group_id=None)


def test_an_unknown_key_of_a_mapping_warns_with_the_nearest_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """0.8's words, and what was probably meant; nothing is guessed where nothing is alike."""
    config = Sample({"group.id": "g", "fetch.max.byte": "1", "zzz": "1"})
    with caplog.at_level(logging.WARNING):
        config.log_notes()
    assert [
        "Property fetch.max.byte is not valid; did you mean fetch.max.bytes?",
        "Property zzz is not valid",
    ] == caplog.messages


def test_a_key_of_odd_bytes_is_shown_without_them(caplog: pytest.LogCaptureFixture) -> None:
    """The file given was no .properties file: a terminal must not obey what it holds."""
    Sample({"group.id": "g", "\x1b[2J\x07": "1", "": "1"}).log_notes()
    assert [
        "Property '' is not valid",
        r"Property '\x1b[2J\x07' is not valid",
    ] == caplog.messages


def test_a_missing_key_names_the_typo() -> None:
    """A required key under a wrong spelling: both spellings are in the error."""
    with pytest.raises(ConfigError, match=r"'group.id'; 'grop.id' is not a key"):
        Sample({"grop.id": "g"})
    with pytest.raises(ConfigError, match=r"^Missing required property 'group.id'$"):
        Sample({"ratio": "1", "zzz": "1"})
