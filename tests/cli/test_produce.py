"""`kafka08 produce`: every line is sent as it comes, or named."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Commands, Inspector
from tests.waiting import until


def test_lines_become_messages(kafka08: Commands, inspect: Inspector) -> None:
    """LF and CR LF end a line, an empty one is an empty message, a last one needs no end, and
    bytes that are no text stay as they are. What was done is said on stderr only."""
    topic = inspect.create_topic("lines")
    done = kafka08("produce", topic, stdin=b"one\ntwo\r\n\n\xff\x00\xfe\nlast")
    assert (b"", f"Sent 5 messages to {topic}\n") == (done.out, done.err)
    values = [value for _, value in inspect.messages(topic)]
    assert [b"one", b"two", b"", b"\xff\x00\xfe", b"last"] == values


def test_a_key_separator_splits_once(kafka08: Commands, inspect: Inspector) -> None:
    """At its first place; with --ignore-error a line without it has no key; one that begins with
    it has an empty key."""
    topic = inspect.create_topic("keys")
    kafka08(
        "produce",
        topic,
        "--key-separator",
        "::",
        "--ignore-error",
        stdin=b"a::b::c\nplain\n::v\nk::\n",
    )
    expected = [(b"a", b"b::c"), (None, b"plain"), (b"", b"v"), (b"k", b"")]
    assert expected == inspect.messages(topic)


@pytest.mark.parametrize("by", [(), ("--new-producer",)], ids=["old", "new"])
def test_a_line_without_the_separator_is_named(
    kafka08: Commands, inspect: Inspector, by: tuple[str, ...]
) -> None:
    """It is an error with its number and what to do; lines before it are sent, none from it on.
    Regression: it became a message without a key, which goes to any partition."""
    topic = inspect.create_topic(f"unkeyed-{len(by)}")
    done = kafka08("produce", topic, "--key-separator", ":", *by, stdin=b"a:1\nb2\nc:3\n", code=1)
    assert "line 2: it has no separator ':'" in done.err
    assert "--ignore-error" in done.err
    assert [(b"a", b"1")] == inspect.messages(topic)


def test_no_input_is_no_message(kafka08: Commands, inspect: Inspector) -> None:
    """That is not a failure, and no topic is made for it."""
    assert "Sent 0 messages" in kafka08("produce", "no-input").err
    assert "no-input" not in inspect.store.topics()


def test_a_line_that_is_too_large_is_named(kafka08: Commands, inspect: Inspector) -> None:
    """Those before it are stored, none behind it; the error has its number and a way out."""
    topic = inspect.create_topic("large")
    done = kafka08("produce", topic, stdin=b"small\n" + b"x" * 2_000_000 + b"\nafter\n", code=1)
    assert "Sent 1 message " in done.err
    assert "Error: line 2: " in done.err
    assert f"MessageSizeTooLarge (10): [{topic},0]" in done.err
    assert "Try: send smaller messages" in done.err
    assert [(None, b"small")] == inspect.messages(topic)


def test_a_record_too_large_for_the_new_producer_names_its_own_limit(kafka08: Commands) -> None:
    """Not the consumer's, whose messages may be too large as well."""
    line = b"x" * 1_500_000 + b"\n"
    done = kafka08("produce", "new-large", "--new-producer", stdin=line, code=1)
    assert "Error: line 1: a record of 1500026 bytes" in done.err
    assert "raise max.request.size (--override max.request.size=N)" in done.err
    assert "fetch.message.max.bytes" not in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_line_is_sent_when_it_is_there(
    kafka08: Commands, inspect: Inspector, number: signal.Signals
) -> None:
    """Nobody waits for more input; a signal then ends it with what was sent, and with 1, because
    the input may have had more."""
    topic = inspect.create_topic(f"slow-{number}")
    running = kafka08.start("produce", topic, stdin=subprocess.PIPE)
    assert running.popen.stdin is not None
    with running.popen.stdin as pipe:
        for count, line in enumerate([b"one\n", b"two\npart"], 1):
            os.write(pipe.fileno(), line)
            until(lambda count=count: count == len(inspect.messages(topic)))  # type: ignore[misc]
        done = running.stop(number)
    assert 1 == done.code
    assert "Sent 2 messages" in done.err
    assert "stopped by a signal before the end of the input" in done.err
    assert [(None, b"one"), (None, b"two")] == inspect.messages(topic)


def test_brokers_that_are_not_there_are_named_once(kafka08: Commands) -> None:
    """Address, cause, which lines were not sent, and a way out; four tries are one warning."""
    keys = ("--bootstrap", "127.0.0.1:1", "--override", "retry.backoff.ms=1")
    done = kafka08("produce", "t", *keys, stdin=b"a\nb\n", code=1)
    assert "Error: lines 1 to 2: " in done.err
    assert "cannot connect to 127.0.0.1:1: " in done.err
    assert "Connection refused" in done.err
    assert "Try: check that a broker is running at that address" in done.err
    assert 1 == done.err.count("WARNING: MetadataRequest")


@pytest.mark.parametrize("options", [(), ("--new-producer",)], ids=["old", "new"])
def test_no_input_for_brokers_that_are_not_there_is_a_failure(
    kafka08: Commands, options: tuple[str, ...]
) -> None:
    """A script whose input is empty must not take a dead cluster for a live one."""
    done = kafka08("produce", "t", "--bootstrap", "127.0.0.1:1", *options, code=1)
    assert "cannot connect to 127.0.0.1:1: " in done.err
    assert "Try: check that a broker is running at that address" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a b",), "topic name a b is illegal"),
        (("t", "--key-separator", ""), "--key-separator"),
        (("t", "--input", "absent"), "File 'absent' does not exist"),
        (("t", "--input", "/"), "File '/' is a directory"),
        (("t", "--config", "absent"), "cannot read the configuration file absent: No such file"),
        (("t", "--override", "x"), "--override 'x' is not of the form KEY=VALUE"),
        (("t", "--override", "request.required.acks=2"), "'2' is outside the range -1 to 1"),
        (("t", "--override", "compression.codec=zip"), "compression.codec: 'zip'"),
        (("t", "--bootstrap", "h"), "metadata.broker.list: 'h' is not of the form host:port"),
        (("t", "--format", "json", "--key-separator", ":"), "--key-separator is for lines of text"),
        (("t", "--new-producer", "--override", "acks=2"), "acks: '2' is not one of all, -1, 0, 1"),
        (("t", "--ignore-error"), "--ignore-error needs --key-separator"),
        (("t", "--rate", "0"), "--rate"),
        (("t", "--bootstrap", "h:x"), "the port must be a number from 1 to 65535"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_misuse_is_2(kafka08: Commands, arguments: tuple[str, ...], said: str) -> None:
    """The key or option, the value, and what would do."""
    done = kafka08.refused("produce", *arguments)
    assert 2 == done.code
    assert said in done.err


def test_a_closed_stdin_is_misuse(kafka08: Commands) -> None:
    """As `<&-` leaves it: there is nothing to send, and --input would help."""
    done = kafka08.shell("kafka08 produce t <&-")
    assert 2 == done.code
    assert "standard input is closed; give a file with --input" in done.err


def test_a_file_of_keys_is_enough(kafka08: Commands, inspect: Inspector, tmp_path: Path) -> None:
    """The brokers may come from --config; an unknown key is only a warning; the option on
    the command line is stronger than the file, the environment weaker."""
    topic = inspect.create_topic("from-file")
    bootstrap = kafka08.environ["KAFKA08_BOOTSTRAP"]
    config = tmp_path / "producer.properties"
    config.write_text(f"metadata.broker.list={bootstrap}\nno.such.key=1\n")
    lines = tmp_path / "lines"
    lines.write_bytes(b"a\n")
    kafka08.environ["KAFKA08_BOOTSTRAP"] = "127.0.0.1:1"
    done = kafka08("produce", topic, "--config", config, "--input", lines)
    assert "WARNING: Property no.such.key is not valid" in done.err
    config.write_text("metadata.broker.list=127.0.0.1:1\n")
    kafka08("produce", topic, "--config", config, "--bootstrap", bootstrap, "--input", lines)
    assert 2 == len(inspect.messages(topic))


def test_json_lines_keep_key_and_partition(kafka08: Commands, inspect: Inspector) -> None:
    """What consume prints as JSON goes into another topic as it was."""
    topic = inspect.create_topic("json-lines", partitions=2)
    kafka08(
        "produce", topic, "--format", "json", "--rate", "1000", "--progress",
        stdin=b'{"value": "a", "key": "k", "partition": 1}\n'
        b'{"value": "/w==", "encoding": "base64", "partition": 1}\n{"value": null, "partition": 0}',
    )  # fmt: skip
    assert [(b"k", b"a"), (None, b"\xff")] == inspect.messages(topic, 1)
    assert [(None, None)] == inspect.messages(topic, 0)


def test_a_bad_json_line_is_named(kafka08: Commands, inspect: Inspector) -> None:
    """Those before it are sent, none behind it is."""
    topic = inspect.create_topic("bad-json")
    lines = b'{"value": "a"}\nnonsense\n{"value": "b"}\n'
    done = kafka08("produce", topic, "--format", "json", stdin=lines, code=1)
    assert "line 2: not JSON" in done.err
    assert "Sent 1 message " in done.err
    assert [(None, b"a")] == inspect.messages(topic)


def test_the_new_producer_takes_text(kafka08: Commands, inspect: Inspector) -> None:
    """--new-producer, with its own keys; a line too large is named by its number."""
    topic = inspect.create_topic("new-producer")
    keys = ["--override", "linger.ms=1", "--override", "max.request.size=4000000"]
    options = ["--new-producer", "--key-separator", ":", "--ignore-error", *keys]
    kafka08("produce", topic, *options, stdin=b"k:v\nplain\n")
    assert [(b"k", b"v"), (None, b"plain")] == inspect.messages(topic)
    done = kafka08("produce", topic, *options, stdin=b"a\n" + b"x" * 2_000_000, code=1)
    assert "line 2: MessageSizeTooLarge" in done.err
