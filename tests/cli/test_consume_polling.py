"""`kafka08 consume --bootstrap`: a member of a group with a coordinator, templates, ranges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.cli.rendering import by_template, check_template
from kafka08.consumer.batch import MessageBatch
from kafka08.embedded import EmbeddedCluster
from kafka08.kernel import build_set, column_batches
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.protocol.message_set import unpack
from kafka08.structs import TopicPartition
from tests.cli.conftest import Commands
from tests.cli.test_completion_source import offered

QUIET = ("--override", "consumer.timeout.ms=1500")
TIMES = (1_500_000_000_000, 1_500_000_001_000, 1_500_000_002_000)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """kafka08 beside a cluster of 0.10.2, of which it is told the brokers alone."""
    config = {"api.level": "0.10.2", "offsets.topic.num.partitions": 3}
    with EmbeddedCluster(brokers=1, config=config) as cluster:
        for topic in ("words", "times"):
            cluster.create_topic(topic, partitions=2)
        with KafkaProducer(KafkaProducerConfig(bootstrap_servers=cluster.bootstrap)) as producer:
            for number in range(20):
                value, key = b"%d" % number, b"k"
                producer.send(ProducerRecord("words", value, key=key, partition=number % 2))
        running = Commands(cluster, tmp_path_factory.mktemp("commands"))
        del running.environ["KAFKA08_ZOOKEEPER"]
        yield running


def rows(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_group_goes_on_where_it_stopped(commands: Commands) -> None:
    """What was printed is committed, and nothing else."""
    group = ("--group", "readers", "--assignor", "sticky", "--json")
    first = commands("consume", "words", "--from-beginning", *group, "--max-messages", 7)
    second = commands("consume", "words", "--from-beginning", *group, "--max-messages", 13)
    printed = [int(row["value"]) for row in rows(first.out) + rows(second.out)]
    assert sorted(printed) == list(range(20))
    assert "Consumed 13 messages" in second.err


def test_a_group_with_a_coordinator_is_completed(commands: Commands) -> None:
    """Tab knows it by the brokers alone."""
    commands("consume", "words", "--group", "tab-readers", "--from-beginning", "--max-messages", 1)
    assert {"tab-readers"} == offered("kafka08 group describe tab-", commands.environ)


def test_without_a_group_nothing_is_committed(commands: Commands) -> None:
    """Each run reads everything, and ends after a silence."""
    for _ in range(2):
        done = commands("consume", "--whitelist", "words|none", "--from-beginning", *QUIET)
        assert sorted(map(int, done.out.split())) == list(range(20))


def test_a_range_of_offsets(commands: Commands) -> None:
    """From an offset, or counted from the end, up to another or to the end of now."""
    one = ("consume", "words", "--partition", 1)
    middle = commands(*one, "--offset", 2, "--until", 5)
    assert middle.out == b"5\n7\n9\n"
    assert "the next offset is 5" in middle.err
    tail = commands(*one, "--offset", -3, "--until", "end", "--print-key")
    assert tail.out == b"k\t15\nk\t17\nk\t19\n"


def test_what_needs_brokers_of_0_9_says_so(commands: Commands) -> None:
    """And what cannot be read."""
    for words, expected in (
        (("--offset", "@noon"), "is not N, -N, earliest or latest, nor @TIME"),
        (("--until", "tomorrow"), "is not N, @TIME or end"),
        (("--format", "xml"), "is not one of text, json, hex"),
        (("--format", "%x"), "%t topic, %p partition"),
    ):
        assert expected in commands("consume", "words", "--partition", 0, *words, code=2).err
    there = ("--zookeeper", "127.0.0.1:1")
    assert (
        "needs --bootstrap"
        in commands("consume", "words", "--assignor", "range", *there, code=2).err
    )


def batch_of(*messages: tuple[bytes | None, bytes | None]) -> MessageBatch:
    data = build_set(list(messages), 5, magic=1, timestamps=TIMES[: len(messages)])
    [columns] = [c for c in column_batches(data, 0, None, unpack, timestamps=True) if c.count]
    return MessageBatch(TopicPartition("t", 1), columns)


def test_a_template_is_filled_for_each_message() -> None:
    """All its tokens; null is a word, and has the size -1."""
    render = by_template(r"%t-%p-%o-%T %k(%K)=%s(%S) 100%%\n")
    batch = batch_of((b"key", b"value"), (None, None))
    lines = [
        b"t-1-5-1500000000000 key(3)=value(5) 100%",
        b"t-1-6-1500000001000 null(-1)=null(-1) 100%",
        b"",
    ]
    assert render(batch) == b"\n".join(lines)


def test_an_unknown_token_is_refused() -> None:
    """With the list of those that there are."""
    for template in ("%x", r"%s\q"):
        with pytest.raises(ValueError, match="%T timestamp"):
            check_template(template)


def test_output_of_a_batch_without_timestamps() -> None:
    """A message of 0.8 has the time -1."""
    [columns] = [c for c in column_batches(build_set([(None, b"v")]), 0, None, unpack) if c.count]
    assert by_template("%T")(MessageBatch(TopicPartition("t", 0), columns)) == b"-1"


def test_a_configuration_file_has_the_keys_of_0_10(commands: Commands, tmp_path: Path) -> None:
    """--config names a consumer's file with 0.10's keys."""
    file = tmp_path / "consumer.properties"
    file.write_text("group.id=from-file\nauto.offset.reset=earliest\nmax.poll.records=3\n")
    done = commands("consume", "words", "--config", file, "--max-messages", 20)
    assert sorted(map(int, done.out.split())) == list(range(20))
