"""`kafka08 consume --partition` reads one partition as SimpleConsumerShell does, without group and
ZooKeeper."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08 import kernel
from kafka08.cli.consume_partition import PartitionPrinter, start_of
from kafka08.cli.printing import Printing
from kafka08.client import ClusterClient
from kafka08.consumer import MessageBatch
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.errors import OffsetOutOfRange
from kafka08.protocol import compression, message_set
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.structs import TopicPartition
from kafka08.zk.group_store import GroupStore
from tests.cli.conftest import Commands, Inspector

TP = TopicPartition("t", 0)
TO_END = ("--no-wait-at-logend",)


def fill(kafka08: Commands, inspect: Inspector, topic: str, count: int) -> tuple[object, ...]:
    """Makes a topic with the messages 0, 1, … and returns the command that reads its one
    partition."""
    inspect.create_topic(topic)
    kafka08("produce", topic, stdin=b"".join(b"%d\n" % n for n in range(count)))
    return ("consume", topic, "--partition", 0)


def lines(first: int, end: int) -> bytes:
    return b"".join(b"%d\n" % n for n in range(first, end))


@pytest.mark.parametrize(
    ("wanted", "offset"),
    [("earliest", 5), ("latest", 20), ("5", 5), ("20", 20), ("-3", 17), ("-99", 5), ("-0", 20)],
)
def test_where_it_begins(wanted: str, offset: int) -> None:
    """In a log of the offsets 5 to 20, a start counted from the end is never below the log
    start."""
    assert offset == start_of(wanted, TP, 5, 20)


@pytest.mark.parametrize("wanted", ["4", "21"])
def test_an_offset_that_is_not_in_the_log_is_refused(wanted: str) -> None:
    """The error for an offset outside the log has the log's range."""
    with pytest.raises(OffsetOutOfRange, match=rf"\[t,0\] has the offsets 5 to 20, not {wanted}"):
        start_of(wanted, TP, 5, 20)


def test_it_reads_to_the_log_end(kafka08: Commands, inspect: Inspector) -> None:
    """The command reads to the log end from the beginning, from an offset, or the last few
    messages, and prints the next offset."""
    consume = fill(kafka08, inspect, "shell-end", 10)
    whole = kafka08(*consume, *TO_END)
    assert (lines(0, 10), "Consumed 10 messages; the next offset is 10\n") == whole[1:]
    assert lines(7, 10) == kafka08(*consume, *TO_END, "--offset", 7).out
    assert lines(8, 10) == kafka08(*consume, *TO_END, "--offset", -2).out
    assert b"" == kafka08(*consume, *TO_END, "--offset", "latest").out


class Emptied:
    """A reader of a log whose messages from 5 on were removed, below its end of 9."""

    position, high_watermark, is_at_end = 5, 9, False

    def __init__(self) -> None:
        self.polls = 0

    def poll(self, _: BatchLimits) -> Iterator[MessageBatch]:
        self.polls += 1
        return iter(())


def test_an_end_whose_last_messages_were_removed_is_reached(tmp_path: Path) -> None:
    """A second empty fetch below the same end says so: the first may be older than that end. (The
    command waited for messages that the cleaner had removed.)"""
    reader: Any = Emptied()
    stopping: Any = SimpleNamespace(is_set=lambda: False, waiting=nullcontext)
    with (tmp_path / "out").open("wb") as output:
        printing = Printing(lambda batch: b"", None, False, stopping)
        printer = PartitionPrinter(output.fileno(), printing)
        printer.run(reader, stop_at_end=True, idle_limit_ms=-1)
    assert (2, 0) == (reader.polls, printer.count)


def test_the_last_messages_of_each_partition(kafka08: Commands, inspect: Inspector) -> None:
    """One partition after another, or one of them. A partition may have fewer, or none; a limit
    counts all."""
    inspect.create_topic("shell-last", 4)
    rows = [
        {"topic": "t", "partition": p, "value": str(p * 10 + n)} for p in (0, 2) for n in (0, 1, 2)
    ]
    rows.append({"topic": "t", "partition": 3, "value": "30"})
    stdin = "\n".join(json.dumps(row) for row in rows).encode()
    kafka08("produce", "shell-last", "--format", "json", stdin=stdin)
    last = ("consume", "shell-last", "--last", 2)
    done = kafka08(*last)
    assert b"1\n2\n21\n22\n30\n" == done.out
    assert "Consumed 5 messages of 4 partitions\n" == done.err
    assert b"21\n22\n" == kafka08(*last, "--partition", 2).out
    assert b"1\n2\n21\n" == kafka08(*last, "--max-messages", 3).out


def test_the_limit_is_exact_in_compressed_sets(kafka08: Commands, inspect: Inspector) -> None:
    """--max-messages may end within a compressed set. The next offset is that of the next
    message."""
    topic = inspect.create_topic("shell-limit")
    produce = ("produce", topic, "--override", "compression.codec=gzip")
    kafka08(*produce, stdin=lines(0, 100))
    limited = ("consume", topic, "--partition", 0, "--offset", 10, "--max-messages", 33)
    done = kafka08(*limited)
    assert (lines(10, 43), "Consumed 33 messages; the next offset is 43\n") == done[1:]


def test_it_waits_for_more(kafka08: Commands, inspect: Inspector) -> None:
    """Without --no-wait-at-logend the command waits for messages until SIGTERM; the exit code is
    0."""
    consume = fill(kafka08, inspect, "shell-wait", 1)
    running = kafka08.start(*consume)
    running.await_out(1)
    kafka08("produce", "shell-wait", stdin=b"more\n")
    running.await_out(2)
    assert (0, b"0\nmore\n") == running.stop()[:2]


def test_brokers_are_enough(kafka08: Commands, inspect: Inspector) -> None:
    """The command uses no ZooKeeper and leaves no group."""
    consume = fill(kafka08, inspect, "shell-brokers", 3)
    groups = set(GroupStore(inspect.store.zk).groups())
    kafka08.environ["KAFKA08_ZOOKEEPER"] = "127.0.0.1:1"
    assert lines(0, 3) == kafka08(*consume, *TO_END).out
    assert groups == set(GroupStore(inspect.store.zk).groups())


def test_silence_ends_it_when_asked_to(kafka08: Commands, inspect: Inspector) -> None:
    """consumer.timeout.ms ends the command."""
    consume = fill(kafka08, inspect, "shell-silence", 3)
    assert lines(0, 3) == kafka08(*consume, "--override", "consumer.timeout.ms=2000").out


def test_a_partition_that_does_not_exist_is_not_waited_for(
    kafka08: Commands, inspect: Inspector
) -> None:
    """A missing partition is an error, and a missing topic is not created."""
    consume = fill(kafka08, inspect, "shell-one", 1)
    done = kafka08(*consume[:-1], 7, code=1)
    assert "[shell-one,7]: the topic has 1 partition" in done.err
    assert "never-there" in kafka08("consume", "never-there", "--partition", 0, code=1).err
    assert "never-there" not in inspect.store.topics()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("t", "--offset", 5), "--offset needs --partition"),
        (("t", "--no-wait-at-logend"), "--no-wait-at-logend needs --partition"),
        (("t", "--partition", 0, "--group", "g"), "--group cannot be used with --partition"),
        (("t", "--partition", 0, "--from-beginning"), "--from-beginning cannot be used with"),
        (("--partition", 0), "--partition needs a TOPIC"),
        (("--last", 5), "--last needs a TOPIC"),
        (("t", "--last", 5, "--group", "g"), "--group cannot be used with --last"),
        (
            ("t", "--partition", 0, "--last", 5, "--offset", 3),
            "--offset cannot be used with --last",
        ),
        (
            ("t", "--partition", 0, "--offset", "end"),
            "'end' is not N, -N, earliest, latest or @TIME",
        ),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_options_that_do_not_go_together_are_misuse(
    kafka08: Commands, arguments: tuple[object, ...], said: str
) -> None:
    """Options of a group and of a partition exclude each other."""
    done = kafka08.refused("consume", *arguments)
    assert (2, b"") == (done.code, done.out)
    assert said in done.err


def append_damaged(inspect: Inspector, topic: str) -> None:
    """Appends a compressed set of a and b, in which b has a wrong CRC. A broker accepts it, as
    0.8.2.2 does."""
    data = bytearray(message_set.encode([(None, b"a"), (None, b"b")]))
    data[-1] ^= 4
    wrapper = bytes(kernel.wrap(compression.compress(compression.GZIP, data), 1, 1))
    request = ProduceRequest(1, 5000, [ProduceTopic(topic, [ProducePartition(0, wrapper)])])
    with closing(ClusterClient(inspect.store.broker_addresses())) as cluster:
        cluster.refresh()
        with cluster.connection(cluster.leader(TopicPartition(topic, 0))) as connection:
            connection.send(request)


def test_a_damaged_message_can_be_passed(kafka08: Commands, inspect: Inspector) -> None:
    """The error has the offset behind the damaged message, from which the next run reads on."""
    topic = inspect.create_topic("shell-damaged")
    append_damaged(inspect, topic)
    kafka08("produce", topic, stdin=b"c\n")
    consume = ("consume", topic, "--partition", 0, *TO_END)
    done = kafka08(*consume, code=1)
    assert b"a\n" == done.out
    assert "continue after it with --offset 2" in done.err
    assert b"c\n" == kafka08(*consume, "--offset", 2).out


def test_damaged_messages_are_skipped_when_asked_to(kafka08: Commands, inspect: Inspector) -> None:
    """--skip-message-on-error continues behind damaged messages of a partition or group, whose
    offset moves. Each is printed on stderr. The command that a group's error suggests works."""
    topic = inspect.create_topic("shell-skipped")
    for line in (b"c\n", b"d\n"):
        append_damaged(inspect, topic)
        kafka08("produce", topic, stdin=line)
    skip = "--skip-message-on-error"
    done = kafka08("consume", topic, "--partition", 0, *TO_END, skip)
    assert (b"a\nc\na\nd\n", 2) == (done.out, done.err.count("Skipped a damaged message of"))
    assert "the next offset is 6" in done.err

    quiet = ("--from-beginning", "--override", "consumer.timeout.ms=3000")
    consume = ("consume", topic, "--group", topic, *quiet)
    done = kafka08(*consume, code=1)
    assert b"a\n" == done.out
    assert {0: 1} == inspect.committed(topic)
    [command] = re.findall(r"`kafka08 (offsets set GROUP [^`]+)`", done.err)
    kafka08(*command.replace("GROUP", topic).split())
    done = kafka08(*consume, skip)
    assert (b"c\na\nd\n", 1) == (done.out, done.err.count("Skipped a damaged message of"))
    assert {0: 6} == inspect.committed(topic)
