"""One log directory, used in turn by a JVM 0.10.2.2 broker and by ours of level 0.10.2."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import ConnectionFailed
from kafka08.kernel import entries
from kafka08.log.check import check_log
from kafka08.network.connection import Connection
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.protocol import message_set
from kafka08.protocol.compression import CODECS
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.offsets import OffsetsPartition, OffsetsRequest, OffsetsTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.structs import ORDINARY_CONSUMER
from tests.interop.jvm import POM_0_10_2, POM_3_9, run_tool
from tests.interop.seats import HOST, Release, Seat, mixed_cluster
from tests.waiting import until

TOPIC = "shared-log"
KEYS = {
    "log.segment.bytes": "4000",
    "log.index.interval.bytes": "200",
    "log.retention.hours": "-1",
}
START_MS = 1_600_000_000_000
"""The timestamp of the message at offset 0; each next one is 10 ms later."""


def ask(seat: Seat, request: Any) -> Any:
    with Connection(HOST, seat.port) as connection:
        response: Any = connection.send(request)
    return response.topics[0].partitions[0]


def produce(seat: Seat, first: int, count: int, size: int, magic: int) -> None:
    """Sets of `size` messages in every codec; values are the offsets."""
    for start in range(first, first + count, size):
        offsets = range(start, start + size)
        times = [START_MS + 10 * offset for offset in offsets] if magic else None
        codec = start // size % len(CODECS)
        data = message_set.encode([(b"k", b"%d" % o) for o in offsets], codec, 0, magic, times)
        topics = [ProduceTopic(TOPIC, [ProducePartition(0, data)])]
        response = ask(seat, ProduceRequest(1, 5000, topics, version=2))
        assert (0, start) == (response.error_code, response.base_offset)


def fetch(seat: Seat, offset: int) -> Any:
    topics = [FetchTopic(TOPIC, [FetchPartition(0, offset, 100_000)])]
    return ask(seat, FetchRequest(ORDINARY_CONSUMER, 0, 0, topics, version=2))


def leads(seat: Seat) -> bool:
    """False also while it does not listen: the registration may be its killed predecessor's."""
    try:
        return bool(fetch(seat, 0).error_code == 0)
    except ConnectionFailed:
        return False


def read_all(seat: Seat, end: int) -> list[tuple[bytes | None, int]]:
    """(value, timestamp) of every message."""
    until(lambda: leads(seat), "the leader")
    found: list[tuple[bytes | None, int]] = []
    while len(found) < end:
        batch = list(message_set.decode(bytes(fetch(seat, len(found)).message_set), len(found)))
        assert batch, f"nothing at offset {len(found)}"
        found += [(message.value, message.timestamp) for message in batch]
    return found


def expected(old: int, end: int) -> list[tuple[bytes | None, int]]:
    """The first `old` messages have no timestamp."""
    return [(b"%d" % o, START_MS + 10 * o if o >= old else -1) for o in range(end)]


def offset_at(seat: Seat, time_ms: int) -> tuple[int, int]:
    topics = [OffsetsTopic(TOPIC, [OffsetsPartition(0, time_ms, 1)])]
    response = ask(seat, OffsetsRequest(ORDINARY_CONSUMER, topics, version=1))
    return response.offset, response.timestamp_ms


@pytest.mark.parametrize("jvm_first", [True, False], ids=["jvm", "ours"])
def test_a_log_directory_changes_hands(tmp_path: Path, jvm_first: bool) -> None:
    """The JVM and our broker take over a directory of magic 0, then magic 1, in every codec, from
    each other. After each clean stop or kill all messages have their timestamps, a search by time
    finds them, and our check and the JVM's tool report nothing."""
    with mixed_cluster(tmp_path, 1, Release(POM_0_10_2, "0.10.2", KEYS)) as cluster:
        (seat,) = cluster.seats
        starts = [seat.start_jvm, seat.start_ours]
        if not jvm_first:
            starts.reverse()
        starts[0]()
        cluster.admin.create_topic(TOPIC, config={"message.format.version": "0.9.0"})
        cluster.await_isr(TOPIC, 1)
        until(lambda: leads(seat), "the leader")
        produce(seat, 0, 100, 5, magic=0)
        cluster.admin.alter_topic(TOPIC, delete_config=["message.format.version"])
        until(lambda: stores_magic_1(seat), "magic 1")
        end = fetch(seat, 0).high_watermark
        for turn, stop in enumerate((seat.stop, seat.kill, seat.stop, seat.kill), 1):
            produce(seat, end, 100, 5, magic=1)
            end += 100
            stop()
            directory = seat.logs / f"{TOPIC}-0"
            if stop == seat.stop:
                assert [] == check_log(directory)
                assert [] == complaints_of_the_jvm(directory)
            starts[turn % 2]()
            old = next(o for o, (_, time) in enumerate(read_all(seat, end)) if time >= 0)
            assert expected(old, end) == read_all(seat, end)
            for offset in (end - 1, end - 150, end - 70):
                wanted = max(offset, old)
                time_ms = START_MS + 10 * wanted
                assert (wanted, time_ms) == offset_at(seat, time_ms - 9)
            assert (-1, -1) == offset_at(seat, START_MS + 10 * end)


def stores_magic_1(seat: Seat) -> bool:
    """Produce sets until one is stored so: the change of the configuration takes a moment. They
    have no timestamps: of those that it removes, 0.10.2.2 puts the largest into the time index."""
    end = fetch(seat, 0).high_watermark
    produce(seat, end, 5, 5, magic=0)
    last = [*entries(bytes(fetch(seat, end).message_set))][-1]
    return bool(last.magic == 1)


def complaints_of_the_jvm(directory: Path, pom: Path = POM_0_10_2) -> list[str]:
    """The complaints of a release's DumpLogSegments about the files of a partition. Later ones
    expect the last offset of a compressed set in an index; brokers before 0.11 write the first."""
    paths = sorted(
        p
        for p in directory.iterdir()
        if p.suffix == ".log" or (p.stat().st_size and (p.suffix != ".index" or pom == POM_0_10_2))
    )
    done = run_tool(
        "kafka.tools.DumpLogSegments",
        *("--files", ",".join(map(str, paths)), "--deep-iteration"),
        pom=pom,
    )
    assert done.rc == 0
    words = ("mismatch", "Mismatches", "out of order", "not found", "secutive")
    return [line for line in done.stderr.splitlines() if any(word in line for word in words)]


def test_times_of_our_producer_are_dumped(tmp_path: Path) -> None:
    """DumpLogSegments of 0.10.2.2 and 3.9.1 print the timestamp of each record of a KafkaProducer,
    in every codec, and report nothing about log and indexes."""
    with mixed_cluster(tmp_path, 1, Release(POM_0_10_2, "0.10.2", KEYS)) as cluster:
        (seat,) = cluster.seats
        seat.start_ours()
        cluster.admin.create_topic(TOPIC)
        until(lambda: leads(seat), "the leader")
        times: list[int] = []
        for codec in CODECS.values():
            config = KafkaProducerConfig(
                bootstrap_servers=cluster.bootstrap, compression_type=codec, batch_size=500
            )
            with KafkaProducer(config) as producer:
                given = [START_MS + len(times) + n for n in range(99)]
                futures = [
                    producer.send(ProducerRecord(TOPIC, b"v", b"k", 0, at)) for at in (*given, None)
                ]
                times += [future.result(60).timestamp for future in futures]
            assert given == times[-100:-1]
            assert abs(times[-1] - time.time_ns() // 1_000_000) < 600_000
        seat.stop()
        directory = seat.logs / f"{TOPIC}-0"
        segments = ",".join(map(str, sorted(directory.glob("*.log"))))
        for pom in (POM_0_10_2, POM_3_9):
            assert [] == complaints_of_the_jvm(directory, pom)
            dump = "kafka.tools.DumpLogSegments"
            done = run_tool(dump, "--files", segments, "--deep-iteration", pom=pom)
            dumped = dict(
                re.findall(r"^(?:\| )?offset: (\d+) .*CreateTime: (\d+)", done.stdout, re.M)
            )
            assert dumped == {str(offset): str(at) for offset, at in enumerate(times)}
