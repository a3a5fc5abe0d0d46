"""`kafka08 topic offsets` prints what GetOffsetShell prints, by brokers or by ZooKeeper."""

from __future__ import annotations

import json
import time

import pytest

from kafka08.cli.topic_offsets import wanted_partitions
from kafka08.client import ClusterMetadata, PartitionInfo, TopicInfo
from tests.cli.conftest import Commands, Inspector

LINES = b"a\nb\nc\n"


def test_both_ends_of_each_partition(kafka08: Commands, inspect: Inspector) -> None:
    """Each partition has its first and last offset and their difference. No group is needed."""
    topic = inspect.create_topic("ends", 2)
    kafka08("produce", topic, stdin=LINES)
    rows = json.loads(kafka08("topic", "offsets", topic, "--json").out)
    assert [(topic, 0), (topic, 1)] == [(row["topic"], row["partition"]) for row in rows]
    assert {0} == {row["log_start"] for row in rows}
    assert 3 == sum(row["messages"] for row in rows) == sum(row["log_end"] for row in rows)


def test_the_jvm_format_is_that_of_get_offset_shell(kafka08: Commands, inspect: Inspector) -> None:
    """--format jvm prints topic:partition:offset; times may be names or its numbers, and there may
    be several offsets."""
    topic = inspect.create_topic("shell")
    kafka08("produce", topic, stdin=LINES)
    shell = ("topic", "offsets", topic, "--format", "jvm")
    for latest in ((), ("--time", "latest"), ("--time", "-1")):
        assert b"shell:0:3\n" == kafka08.refused(*shell, *latest).out
    for earliest in ("earliest", "-2"):
        assert b"shell:0:0\n" == kafka08.refused(*shell, "--time", earliest).out
    assert b"shell:0:3,0\n" == kafka08.refused(*shell, "--time", "latest", "--offsets", 5).out


def test_a_time_before_the_log_has_no_offset(kafka08: Commands, inspect: Inspector) -> None:
    """Before the first message there is no offset. A time in the future has the log end, as in
    0.8."""
    topic = inspect.create_topic("timed")
    kafka08("produce", topic, stdin=LINES)
    ask = ("topic", "offsets", topic, "--time")
    [young] = json.loads(kafka08.refused(*ask, "2001-01-31T12:00", "--json").out)
    assert young["offset"] is None
    assert b"timed:0:\n" == kafka08.refused(*ask, "980942400000", "--format", "jvm").out
    in_an_hour = int(1000 * (time.time() + 3600))
    [old] = json.loads(kafka08.refused(*ask, in_an_hour, "--json").out)
    assert old["offset"] == 3


def test_a_mistyped_topic_has_a_near_name(kafka08: Commands, inspect: Inspector) -> None:
    """The error for an unknown topic has the nearest name, as in `consume --partition`."""
    inspect.create_topic("nearby")
    partition = ("consume", "nerby", "--partition", 0)
    for command in (("topic", "offsets", "nerby"), partition):
        error = kafka08(*command, code=1).err
        assert "topic nerby does not exist; did you mean nearby?" in error


def test_brokers_are_enough_and_so_is_zookeeper(kafka08: Commands, inspect: Inspector) -> None:
    """Options override the environment. Without either, the command is misuse."""
    topic = inspect.create_topic("found")
    ask = ("topic", "offsets", topic, "--format", "jvm")
    bootstrap, zookeeper = (kafka08.environ.pop(f"KAFKA08_{n}") for n in ("BOOTSTRAP", "ZOOKEEPER"))
    assert 2 == kafka08(*ask, code=2).code
    assert b"found:0:0\n" == kafka08(*ask, "--bootstrap", bootstrap).out
    kafka08.environ["KAFKA08_BOOTSTRAP"] = "127.0.0.1:1"
    assert b"found:0:0\n" == kafka08(*ask, "--zookeeper", zookeeper).out


def test_asking_creates_no_topic(kafka08: Commands, inspect: Inspector) -> None:
    """An unknown topic is an error and is not created."""
    done = kafka08.refused("topic", "offsets", "never-made")
    assert (1, b"") == (done.code, done.out)
    assert "never-made" in done.err
    assert "never-made" not in inspect.store.topics()


def test_an_unknown_partition_is_an_error(kafka08: Commands, inspect: Inspector) -> None:
    """The error for an unknown partition has the number of partitions."""
    topic = inspect.create_topic("few", 2)
    done = kafka08.refused("topic", "offsets", topic, "--partitions", "1,9")
    assert "[few,9]: the topic has 2 partitions" in done.err
    assert (
        b"few:1:0\n"
        == kafka08.refused("topic", "offsets", topic, "--partitions", "1", "--format", "jvm").out
    )


def test_all_partitions_of_a_large_topic_are_selected_at_once() -> None:
    """The time grows with the number of partitions, not with its square."""
    infos = tuple(PartitionInfo(number, leader=1) for number in range(100_000))
    metadata = ClusterMetadata(topics={"large": TopicInfo("large", partitions=infos)})
    begun = time.process_time()
    assert 100_000 == len(wanted_partitions(metadata, ["large"], None))
    assert 2 > time.process_time() - begun


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--time", "soon"), "'soon' is not earliest, latest, a time"),
        (("--partitions", "x"), "'x' is not of the form 0,1,2"),
        (("--partitions", "9" * 5000), "is not of the form 0,1,2"),
        (("--offsets", 2), "--offsets needs --time"),
        (("--time", "latest", "--offsets", 2**31), "2147483648 is not in the range"),
        (("--json", "--format", "jvm"), "Give only one of --json and --format jvm."),
    ],
    ids=lambda value: str(value)[:40],
)
def test_misuse_is_an_error(kafka08: Commands, arguments: tuple[object, ...], said: str) -> None:
    """Misuse gives exit code 2 before any request."""
    done = kafka08.refused("topic", "offsets", *arguments)
    assert 2 == done.code
    assert said in done.err
