"""Damaged directories, opened by Kafka's own broker and by ours: what starts, and what stays."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from kafka08 import kernel
from kafka08.errors import KafkaError
from kafka08.levels import Level
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.log.names import HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from kafka08.network.connection import Connection
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.protocol import message_set
from kafka08.protocol.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafka08.structs import ORDINARY_CONSUMER
from tests.interop.jvm import POM_0_10_2
from tests.interop.log_oracle import LogOracle
from tests.interop.seats import HOST, OF_0_8_2, Release, Seat, mixed_cluster
from tests.log.compaction import cleaning
from tests.waiting import until

SETTINGS = {"segment.bytes": 600, "segment.index.bytes": 1200}
MESSAGES = 20
Damage = Callable[[Path, Level], None]


@pytest.fixture(scope="module")
def oracle() -> Iterator[LogOracle]:
    with LogOracle() as running:
        yield running


def opened(directory: Path, level: Level = Level.V0_10_2, **settings: object) -> Log:
    """As a broker of ours opens it after a kill, without a recovery point."""
    values = {name: str(value) for name, value in {**SETTINGS, **settings}.items()}
    return Log(directory, LogConfig(level=level).from_stored("t", values))


def stored(directory: Path) -> list[tuple[int, bytes | None]]:
    """(offset, value) of each entry on disk, in order."""
    paths = sorted(directory.glob("*.log"))
    found = [entry for path in paths for entry in kernel.entries(path.read_bytes())]
    return [(entry.offset, entry.value) for entry in found]


def fill(directory: Path, level: Level, policy: str = "delete") -> Log:
    log = opened(directory, level, **{"cleanup.policy": policy})
    magic = int(level >= Level.V0_10_2)
    times = [1_600_000_000_000] if magic else None
    for number in range(MESSAGES):
        pair = (b"%d" % (number % 3), b"%d" % number * 40)
        log.append(bytearray(message_set.encode([pair], 0, 0, magic, times)))
    return log


def compacted(directory: Path, level: Level) -> None:
    """Its policy is changed back, and its checkpoint files are lost."""
    log = fill(directory, level, "compact")
    log.flush()
    cleaning(log).run()
    log.close()
    assert len(stored(directory)) < MESSAGES


def flipped(bit: int) -> Damage:
    """One bit of the offset of the third message."""

    def damage(directory: Path, level: Level) -> None:
        fill(directory, level).close()
        [path, *_] = sorted(directory.glob("*.log"))
        data = bytearray(path.read_bytes())
        place = [entry.position for entry in kernel.entries(bytes(data))][2]
        data[place + 7 - bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)

    return damage


DAMAGES: dict[str, Damage] = {
    "compacted once": compacted,
    **{f"bit {bit} of an offset": flipped(bit) for bit in (3, 20, 32, 62)},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_message_is_deleted_that_the_jvm_keeps(
    oracle: LogOracle, tmp_path: Path, damage: str
) -> None:
    """A gap in the offsets, and an offset that a disk has changed: both keep every message. The
    JVM keeps the wrong offset too, and we set it right."""
    ours, theirs = tmp_path / "t-0", tmp_path / "t-1"
    DAMAGES[damage](ours, Level.V0_10_2)
    before = stored(ours)
    shutil.copytree(ours, theirs, ignore=shutil.ignore_patterns("*.deleted"))
    opened(ours).close()
    oracle.open(theirs, SETTINGS)
    oracle.close_log()
    assert before == stored(theirs)
    assert [value for _, value in before] == [value for _, value in stored(ours)]
    offsets = [offset for offset, _ in stored(ours)]
    assert sorted(offsets) == offsets
    assert damage == "compacted once" or offsets == list(range(MESSAGES))


CHECKPOINTS = (RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT)
FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "zeros": lambda _: bytes(30),
    "cut": lambda data: data[:-3],
    "count": lambda data: data.replace(b"\n", b"\n7", 1),
}


RELEASES = (Release(POM_0_10_2, "0.10.2"), OF_0_8_2)
VALUES = [b"%d" % number for number in range(MESSAGES)]


def fetched(seat: Seat) -> FetchPartitionResponse | None:
    """From offset 0; None while the partition is not led there."""
    topics = [FetchTopic("t", [FetchPartition(0, 0, 100_000)])]
    try:
        with Connection(HOST, seat.port) as connection:
            response = connection.send(FetchRequest(ORDINARY_CONSUMER, 0, 0, topics))
    except KafkaError:
        return None
    assert isinstance(response, FetchResponse)
    [partition] = response.topics[0].partitions
    return None if partition.error_code else partition


def values_of(seat: Seat) -> list[bytes | None]:
    found = fetched(seat)
    data = b"" if found is None else bytes(found.message_set)
    return [message.value for message in message_set.decode(data, 0)]


@pytest.mark.timeout(300)
def test_no_message_is_deleted_that_0_8_keeps(tmp_path: Path) -> None:
    """The same of a broker of 0.8.2.2, which starts after a kill."""
    with mixed_cluster(tmp_path, 1, OF_0_8_2) as cluster:
        [seat] = cluster.seats
        seat.start_ours()
        cluster.admin.create_topic("t", 1)
        cluster.await_isr("t", 1)
        seat.kill()
        for damage in ("compacted once", "bit 3 of an offset", "bit 32 of an offset"):
            damaged = tmp_path / damage.replace(" ", "-") / "t-0"
            DAMAGES[damage](damaged, Level.V0_8_2)
            before = [value for _, value in stored(damaged)]
            for start in (seat.start_jvm, seat.start_ours):
                until(lambda: not cluster.store.broker_ids(), "the end of the former session")
                shutil.rmtree(seat.logs)
                shutil.copytree(damaged, seat.logs / "t-0")
                start()
                until(lambda: fetched(seat), "its partition")
                seat.kill()
                kept = [value for _, value in stored(seat.logs / "t-0")]
                assert before == kept, f"{damage}, {start.__name__}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.level)
def test_ours_starts_with_a_damaged_checkpoint_where_the_jvm_does(
    tmp_path: Path, release: Release
) -> None:
    """Only a recovery point checkpoint stops 0.8.2.2, and ours of that level. Where the JVM starts
    ours has every message; the JVM leads nothing without its high watermarks."""
    with mixed_cluster(tmp_path, 1, release) as cluster:
        [seat] = cluster.seats
        seat.start_ours()
        cluster.admin.create_topic("t", 1)
        cluster.await_isr("t", 1)
        with KafkaProducer(KafkaProducerConfig(bootstrap_servers=cluster.bootstrap)) as producer:
            for number in range(MESSAGES):
                producer.send(ProducerRecord("t", b"%d" % number))
        seat.stop()
        sound = tmp_path / "sound"
        shutil.copytree(seat.logs, sound)
        for name, fault in itertools.product(CHECKPOINTS, FAULTS.values()):
            starts = release is not OF_0_8_2 or name != RECOVERY_POINT_CHECKPOINT
            for start in (seat.start_jvm, seat.start_ours):
                until(lambda: not cluster.store.broker_ids(), "the end of the former session")
                shutil.rmtree(seat.logs)
                shutil.copytree(sound, seat.logs)
                path = seat.logs / name
                path.write_bytes(fault(path.read_bytes()))
                with nullcontext() if starts else pytest.raises((AssertionError, KafkaError)):
                    start()
                if starts and start == seat.start_ours:
                    until(lambda: values_of(seat) == VALUES, f"all messages without {name}")
                seat.kill()
