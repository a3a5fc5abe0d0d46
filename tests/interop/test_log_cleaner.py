"""Compacted logs between a JVM 0.8.2.2 broker and ours: the same survivors, and either goes on
where the other ended."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.clock import SYSTEM_CLOCK
from kafka08.log import checkpoint
from kafka08.log.check import check_log
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.cleaner import LogCleaner
from kafka08.log.cleaner_plan import CleanerConfig
from kafka08.log.config import LogConfig
from kafka08.log.dump import LogDump
from kafka08.log.manager import LogManager
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.produce import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from kafka08.structs import TopicPartition
from tests.interop.jvm import JvmBroker, JvmKafka, run_tool
from tests.waiting import until

THEIRS, OURS = TopicPartition("theirs", 0), TopicPartition("ours", 0)
CHECKPOINT = "cleaner-offset-checkpoint"
CONFIG = LogConfig(
    segment_bytes=6000, index_interval_bytes=200, cleanup_policy="compact", delete_retention_ms=0
)
SETTINGS = {
    "log.segment.bytes": "6000",
    "log.index.interval.bytes": "200",
    "log.cleanup.policy": "compact",
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.delete.retention.ms": "0",
}
KEYS = 30


def a_set(number: int) -> bytearray:
    """Three messages of the keys that follow each other, every eighth a tombstone."""
    pairs = [
        (b"key-%d" % (at * 7 % KEYS), None if at % 8 == 5 else b"value %d " % at * 5)
        for at in range(number * 3, number * 3 + 3)
    ]
    return bytearray(message_set.encode(pairs, codec=number % 4))


def open_manager(directory: Path) -> LogManager:
    manager = LogManager([directory], CONFIG)
    manager.load()
    return manager


def clean(directory: Path) -> None:
    """Clean everything there by ours, as a broker would, and stop cleanly."""
    manager = open_manager(directory)
    cleaner = LogCleaner(manager, CleanerConfig(), clock=SYSTEM_CLOCK)
    while cleaner.clean_one():
        pass
    manager.shutdown()
    for path in directory.rglob("*.deleted"):
        path.unlink()


Survivors = dict[str, list[tuple[int, bytes | None, bytes | None]]]


def survivors(directory: Path) -> Survivors:
    """The messages of each segment file."""
    return {
        path.name: [(m.offset, m.key, m.value) for m in message_set.decode(path.read_bytes())]
        for path in sorted(directory.glob("*.log"))
    }


def points(directory: Path) -> dict[TopicPartition, int]:
    return checkpoint.parse((directory / CHECKPOINT).read_text())


@pytest.fixture
def directories(tmp_path: Path) -> tuple[Path, Path]:
    """The same log twice: `ours-0` cleaned by us, `theirs-0` as it was written, in one log
    directory; and a second log directory with `theirs-0` cleaned by us, to compare with."""
    shared, reference = tmp_path / "shared", tmp_path / "reference"
    manager = open_manager(shared)
    log = manager.get_or_create(OURS)
    for number in range(150):
        log.append(a_set(number))
    manager.shutdown()
    reference.mkdir()
    shutil.copytree(shared / "ours-0", reference / "theirs-0")
    clean(reference)
    raw = shutil.copytree(shared / "ours-0", tmp_path / "raw")
    clean(shared)
    shutil.move(raw, shared / "theirs-0")
    ends = OffsetCheckpoint(shared / "recovery-point-offset-checkpoint")
    ends.write({OURS: 450, THEIRS: 450})
    return shared, reference


@pytest.fixture
def kafka(directories: tuple[Path, Path], tmp_path: Path) -> Iterator[JvmKafka]:
    """A JVM broker with a cleaner on the shared directory."""
    with JvmKafka(tmp_path / "jvm", {**SETTINGS, "log.dirs": str(directories[0])}) as kafka:
        yield kafka


def produce(broker: JvmBroker, number: int) -> None:
    topic = ProduceTopic(OURS.topic, [ProducePartition(OURS.partition, a_set(number))])
    with Connection("127.0.0.1", broker.port) as connection:
        response = connection.send(ProduceRequest(1, 5000, [topic]))
    assert isinstance(response, ProduceResponse)
    assert 0 == response.topics[0].partitions[0].error_code


def test_both_cleaners_write_the_same_segments(
    directories: tuple[Path, Path], kafka: JvmKafka
) -> None:
    """From the same log, with compressed sets and tombstones, both cleaners write the same messages
    into the same segment files and the same checkpoint. Each opens a log that the other cleaned,
    and continues there."""
    shared, reference = directories
    (broker,) = kafka.brokers
    end = points(reference)[THEIRS]
    assert points(shared)[OURS] == end > 300
    until(
        lambda: points(shared).get(THEIRS) == end, "their cleaning", explain=broker.describe_failure
    )
    expected = survivors(reference / "theirs-0")
    assert expected == survivors(shared / "theirs-0")
    assert KEYS < sum(map(len, expected.values())) < 150
    assert survivors(shared / "ours-0") == expected

    kafka.create_topic(OURS.topic)
    for number in range(150, 300):
        produce(broker, number)
    until(
        lambda: points(shared)[OURS] > end + 300,
        "the second cleaning",
        explain=broker.describe_failure,
    )
    output = broker.output()
    assert "Error due to" not in output
    assert "Cleaner 0: Cleaning log ours-0" in output
    # 0.8: a pass under way when the broker stops dies in the middle of a swap; we finish it.
    broker.stop()

    end = points(shared)[OURS]
    manager = open_manager(shared)
    for topic_partition in (OURS, THEIRS):
        log = manager.logs[topic_partition]
        assert [] == check_log(log.directory)
    assert 900 == manager.logs[OURS].log_end_offset
    compacted = [
        message
        for messages in survivors(shared / "ours-0").values()
        for message in messages
        if message[0] < end
    ]
    assert len({key for _, key, _ in compacted}) == len(compacted) <= KEYS
    manager.shutdown()


def test_the_dump_tool_reads_our_cleaned_logs(directories: tuple[Path, Path]) -> None:
    """DumpLogSegments prints our dump's lines for messages and indexes; every index entry leads to
    its message."""
    directory = directories[1] / "theirs-0"
    logs = sorted(directory.glob("*.log"))
    indexes = [
        path.with_suffix(".index") for path in logs if path.with_suffix(".index").stat().st_size
    ]
    assert any(path.stat().st_size > 1000 for path in logs)
    assert indexes
    files = [*logs, *indexes]
    done = run_tool("kafka.tools.DumpLogSegments", "--files", ",".join(map(os.fspath, files)))
    dump = LogDump()
    ours = [line for path in files for line in dump.lines(path)]
    assert (0, ours) == (done.rc, done.stdout.splitlines())
    assert "Mismatches" not in done.stderr
