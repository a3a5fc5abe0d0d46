"""`kafka08 produce` sends every line at once, or names the one that it cannot send."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from kafka08.producer.partitioners import ByteArrayPartitioner, partition_for_key
from tests.cli.conftest import Commands, Inspector
from tests.waiting import until

STRINGS = "org.apache.kafka.common.serialization.StringSerializer"


def test_lines_become_messages(kafka08: Commands, inspect: Inspector) -> None:
    """LF or CR LF ends a line. An empty line is an empty message, and the last line needs no end.
    Bytes that are no text stay unchanged. Counts are on stderr alone."""
    topic = inspect.create_topic("lines")
    done = kafka08("produce", topic, stdin=b"one\ntwo\r\n\n\xff\x00\xfe\nlast")
    assert (b"", f"Sent 5 messages to {topic}\n") == (done.out, done.err)
    values = [value for _, value in inspect.messages(topic)]
    assert [b"one", b"two", b"", b"\xff\x00\xfe", b"last"] == values


def test_a_key_separator_splits_once(kafka08: Commands, inspect: Inspector) -> None:
    """The first separator counts. With --ignore-error a line without it has no key. A line that
    begins with it has an empty key."""
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
    """A line without the separator is an error with its number and what to do. Lines before it are
    sent, later ones are not. (It used to be sent without a key, to any partition.)"""
    topic = inspect.create_topic(f"unkeyed-{len(by)}")
    done = kafka08("produce", topic, "--key-separator", ":", *by, stdin=b"a:1\nb2\nc:3\n", code=1)
    assert "line 2: it has no separator ':'" in done.err
    assert "--ignore-error" in done.err
    assert [(b"a", b"1")] == inspect.messages(topic)


@pytest.mark.parametrize(
    ("by", "topic"), [("--old-producer", "announcments"), ("--new-producer", "anouncements")]
)
def test_a_topic_that_is_made_is_said(
    kafka08: Commands, inspect: Inspector, by: str, topic: str
) -> None:
    """A mistyped name makes a topic, so the command says that, with the name that may be meant."""
    inspect.create_topic(f"announcements-{by[2:5]}")
    said = f"Topic {topic} does not exist: the brokers create it"
    done = kafka08("produce", topic, by, stdin=b"one\n")
    assert said in done.err
    assert "; did you mean an" in done.err
    assert said not in kafka08("produce", topic, by, stdin=b"two\n").err
    assert [b"one", b"two"] == [value for _, value in inspect.messages(topic)]


def test_no_input_is_no_message(kafka08: Commands, inspect: Inspector) -> None:
    """Empty input is no failure and creates no topic."""
    assert "Sent 0 messages" in kafka08("produce", "no-input").err
    assert "no-input" not in inspect.store.topics()


def test_a_line_that_is_too_large_is_named(kafka08: Commands, inspect: Inspector) -> None:
    """Lines before the large one are stored, later ones are not. The error has its number and what
    to do."""
    topic = inspect.create_topic("large")
    done = kafka08("produce", topic, stdin=b"small\n" + b"x" * 2_000_000 + b"\nafter\n", code=1)
    assert "Sent 1 message " in done.err
    assert "Error: line 2: " in done.err
    assert f"MessageSizeTooLarge (10): [{topic},0]" in done.err
    assert "Try: send smaller messages" in done.err
    assert [(None, b"small")] == inspect.messages(topic)


def test_a_record_too_large_for_the_new_producer_names_its_own_limit(kafka08: Commands) -> None:
    """The error names the new producer's own limit, and not the consumer's."""
    line = b"x" * 1_500_000 + b"\n"
    done = kafka08("produce", "new-large", "--new-producer", stdin=line, code=1)
    assert "Error: line 1: a record of 1500026 bytes" in done.err
    assert "raise max.request.size (--override max.request.size=N)" in done.err
    assert "fetch.message.max.bytes" not in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_line_is_sent_when_it_is_there(
    kafka08: Commands, inspect: Inspector, number: signal.Signals
) -> None:
    """Each line is sent without waiting for more input. A signal then gives exit code 1, because
    there may have been more input."""
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
    """The error has address, cause, the lines that were not sent, and what to do. Four tries give
    one warning."""
    keys = ("--bootstrap", "127.0.0.1:1", "--override", "retry.backoff.ms=1")
    done = kafka08("produce", "t", *keys, stdin=b"a\nb\n", code=1)
    assert "Error: lines 1 to 2: " in done.err
    assert "cannot connect to 127.0.0.1:1: " in done.err
    assert "connection refused" in done.err
    assert "Try: check that a broker is running at that address" in done.err
    assert 1 == done.err.count("WARNING: MetadataRequest")


@pytest.mark.parametrize("options", [("--new-producer",), ("--format", "json")])
def test_the_new_producer_says_why_it_waits(kafka08: Commands, options: tuple[str, ...]) -> None:
    """It waits max.block.ms for a broker. The cause is on stderr long before, once, and Ctrl-C ends
    the wait. (It used to say nothing for 60 seconds, and to ignore Ctrl-C.)"""
    keys = ("--bootstrap", "127.0.0.1:1", "--override", f"max.block.ms={10**8}")
    running = kafka08.start("produce", "t", *keys, *options, stdin=subprocess.PIPE)
    assert running.popen.stdin is not None
    with running.popen.stdin as pipe:
        os.write(pipe.fileno(), b'{"value": "a"}\n')
        until(lambda: "WARNING: cannot connect to 127.0.0.1:1: " in running.err, "the cause")
        done = running.stop(signal.SIGINT)
    assert 1 == done.code
    assert "Sent 0 messages to t" in done.err
    assert "Error: stopped by a signal" in done.err
    assert 1 == done.err.count("WARNING")


@pytest.mark.parametrize("options", [(), ("--new-producer",)], ids=["old", "new"])
def test_no_input_for_brokers_that_are_not_there_is_a_failure(
    kafka08: Commands, options: tuple[str, ...]
) -> None:
    """Empty input and no broker is a failure, so that a script notices a dead cluster."""
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
        (
            ("t", "--old-producer", "--new-producer"),
            "only one of --old-producer and --new-producer",
        ),
        (("t", "--old-producer", "--format", "json"), "only one of --old-producer and --format"),
        (("t", "--old-producer", "--override", "request.required.acks=2"), "'2' is outside"),
        (
            ("t", "--override", "serializer.class=kafka.serializer.StringEncoder"),
            "serializer.class: it takes str, and a line is bytes; leave the key out",
        ),
        (
            ("t", "--new-producer", "--override", f"key.serializer={STRINGS}"),
            "key.serializer: it takes str, and a line is bytes; leave the key out",
        ),
        (("t", "--ignore-error"), "--ignore-error needs --key-separator"),
        (("t", "--rate", "0"), "--rate"),
        (("t", "--rate", "1e-300"), "--rate"),
        (("t", "--rate", "inf"), "--rate"),
        (("t", "--rate", "nan"), "--rate"),
        (("t", "--bootstrap", "h:x"), "the port must be a number from 1 to 65535"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_misuse_is_2(kafka08: Commands, arguments: tuple[str, ...], said: str) -> None:
    """The error has the key or option, its value, and the legal ones."""
    done = kafka08.refused("produce", *arguments)
    assert 2 == done.code
    assert said in done.err


def test_a_closed_stdin_is_misuse(kafka08: Commands) -> None:
    """A closed stdin (`<&-`) is misuse, and the error suggests --input."""
    done = kafka08.shell("kafka08 produce t <&-")
    assert 2 == done.code
    assert "standard input is closed; give a file with --input" in done.err


def test_a_file_of_keys_is_enough(kafka08: Commands, inspect: Inspector, tmp_path: Path) -> None:
    """--config may have the brokers, and an unknown key gives a warning. An option on the command
    line overrides the file, which overrides the environment."""
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
    """Lines of `consume --format json` are sent to another topic with key and partition."""
    topic = inspect.create_topic("json-lines", partitions=2)
    kafka08(
        "produce", topic, "--format", "json", "--rate", "1000", "--progress",
        stdin=b'{"value": "a", "key": "k", "partition": 1}\n'
        b'{"value": "/w==", "encoding": "base64", "partition": 1}\n{"value": null, "partition": 0}',
    )  # fmt: skip
    assert [(b"k", b"a"), (None, b"\xff")] == inspect.messages(topic, 1)
    assert [(None, None)] == inspect.messages(topic, 0)


def test_a_bad_json_line_is_named(kafka08: Commands, inspect: Inspector) -> None:
    """Lines before the bad one are sent, later ones are not."""
    topic = inspect.create_topic("bad-json")
    lines = b'{"value": "a"}\nnonsense\n{"value": "b"}\n'
    done = kafka08("produce", topic, "--format", "json", stdin=lines, code=1)
    assert "line 2: not JSON" in done.err
    assert "Sent 1 message " in done.err
    assert [(None, b"a")] == inspect.messages(topic)


def test_the_new_producer_takes_text(kafka08: Commands, inspect: Inspector) -> None:
    """--new-producer has keys of its own. A line that is too large has its number in the error."""
    topic = inspect.create_topic("new-producer")
    keys = ["--override", "linger.ms=1", "--override", "max.request.size=4000000"]
    options = ["--new-producer", "--key-separator", ":", "--ignore-error", *keys]
    kafka08("produce", topic, *options, stdin=b"k:v\nplain\n")
    assert [(b"k", b"v"), (None, b"plain")] == inspect.messages(topic)
    done = kafka08("produce", topic, *options, stdin=b"a\n" + b"x" * 2_000_000, code=1)
    assert "line 2: MessageSizeTooLarge" in done.err


# ------------------------------------------------------------------------------ which producer


def produced(commands: Commands, topic: str, *options: object) -> list[dict[str, Any]]:
    """The messages of twelve lines, each its own key, in a new topic of two partitions."""
    commands.cluster.create_topic(topic, partitions=2)
    lines = b"".join(b"%d:%d\n" % (n, n) for n in range(12))
    commands("produce", topic, "--key-separator", ":", *options, stdin=lines)
    read = ("--from-beginning", "--max-messages", 12, "--format", "json")
    rows = [json.loads(line) for line in commands("consume", topic, *read).out.splitlines()]
    return sorted(rows, key=lambda row: int(row["value"]))


def test_brokers_of_0_10_get_lines_with_timestamps(coordinating: Commands) -> None:
    """Lines for brokers of 0.10 are KafkaProducer's: each has the time of its send, and murmur2 of
    its key chooses the partition."""
    before = time.time_ns() // 1_000_000
    rows = produced(coordinating, "lines-of-0-10")
    after = time.time_ns() // 1_000_000
    assert all(before <= row["timestamp"] <= after for row in rows)
    keys = [row["key"].encode() for row in rows]
    assert [partition_for_key(key, 2) for key in keys] == [row["partition"] for row in rows]


@pytest.mark.parametrize(
    "options",
    [
        ("--old-producer",),
        ("--override", "request.required.acks=-1"),
        ("--override", "queue.time=10"),
        ("--config", "old.properties"),
    ],
    ids=" ".join,
)
def test_the_old_producer_and_its_keys_select_it(
    coordinating: Commands, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """--old-producer, and a key that only the old producer has, also in a file, select it: no
    timestamps, and Java's hash of the key's bytes chooses the partition."""
    file = tmp_path / "old.properties"
    file.write_text(f"metadata.broker.list={coordinating.cluster.bootstrap}\nacks=all\n")
    words = [file if word == file.name else word for word in options]
    rows = produced(coordinating, f"old-{'-'.join(options).replace('=', '-')}", *words)
    assert not any("timestamp" in row for row in rows)
    choose = ByteArrayPartitioner()
    assert [choose(row["key"].encode(), 2) for row in rows] == [row["partition"] for row in rows]


def test_bootstrap_servers_of_a_file_select_the_new_producer(
    coordinating: Commands, tmp_path: Path
) -> None:
    """A file with bootstrap.servers is the new producer's, and enough."""
    file = tmp_path / "new.properties"
    file.write_text(f"bootstrap.servers={coordinating.cluster.bootstrap}\nacks=all\n")
    coordinating.cluster.create_topic("by-file")
    done = coordinating.shell(
        f"unset KAFKA08_BOOTSTRAP; echo a | kafka08 produce by-file --config {file}"
    )
    assert (0, "Sent 1 message to by-file\n") == (done.code, done.err)


ASYNC = ("--override", "producer.type=async", "--override", "queue.buffering.max.ms=10")


def test_queued_lines_count_when_they_are_stored(kafka08: Commands, inspect: Inspector) -> None:
    """With producer.type=async the summary has what the brokers acknowledged, and a lost line is a
    failure. (Every queued line used to count as sent.)"""
    topic = inspect.create_topic("queued")
    done = kafka08("produce", topic, *ASYNC, stdin=b"a\nb\n")
    assert f"Sent 2 messages to {topic}\n" == done.err
    large = b"x" * 2_000_000
    done = kafka08("produce", topic, *ASYNC, "--json", stdin=b"c\n" + large + b"\n", code=1)
    assert "not sent: Failed to send messages after 1 tries: " in done.err
    assert "MessageSizeTooLarge (10)" in done.err
    summary, failure = map(json.loads, done.out.splitlines())
    assert 2 + summary["sent"] == len(inspect.messages(topic)) < 4
    assert "not sent" in failure["error"]


@pytest.mark.parametrize(
    ("keys", "lines", "said"),
    [
        ("", 2, "Error: 2 queued lines not sent: "),
        (
            "batch.num.messages=1 queue.buffering.max.messages=1 queue.enqueue.timeout.ms=0",
            200,
            "queue is full of 1 unsent messages",
        ),
    ],
    ids=["lost", "full"],
)
def test_queued_lines_that_no_broker_gets_are_not_sent(
    kafka08: Commands, keys: str, lines: int, said: str
) -> None:
    """Neither those in the queue nor the one that finds no room there count as sent."""
    overrides = [word for key in keys.split() for word in ("--override", key)]
    dead = ("--bootstrap", "127.0.0.1:1", "--override", "retry.backoff.ms=100")
    done = kafka08("produce", "t", *dead, *ASYNC, *overrides, stdin=b"a\n" * lines, code=1)
    assert "Sent 0 messages to t\n" in done.err
    assert said in done.err


def test_brokers_of_0_8_get_lines_of_the_old_producer(
    kafka08: Commands, inspect: Inspector
) -> None:
    """Lines for brokers of 0.8 are the old producer's: those without a key share a partition."""
    topic = inspect.create_topic("old-lines", partitions=2)
    kafka08("produce", topic, stdin=b"1\n2\n3\n4\n")
    assert [0, 4] == sorted(len(inspect.messages(topic, n)) for n in range(2))
