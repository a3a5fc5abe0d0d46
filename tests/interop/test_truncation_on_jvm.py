"""An unclean election on JVM brokers of 3.9.1 takes messages away that consumers have read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka08.admin import BrokerAdmin
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.consumer import KafkaConsumer, LogTruncated
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.consumer.partition_reader import PartitionReader
from kafka08.mirror import MirrorFailed
from kafka08.mirror.sources import NewSource, Portion
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.structs import OffsetAndMetadata, TopicPartition
from tests.interop.jvm import (
    POM_3_9,
    JvmBroker,
    JvmMissing,
    classpath,
    knows_leaders,
    metadata_of,
    new_zookeeper,
)
from tests.waiting import until

pytest.importorskip("pyspark")
from pyspark.sql.streaming.datasource import ReadAllAvailable

from kafka08.arrow.connections import resolved
from kafka08.arrow.data_loss import DataLost
from kafka08.arrow.options import parse_read_options
from kafka08.spark.schema import default_schema
from kafka08.spark.stream import StreamReader

TP = TopicPartition("t", 0)
COMMON = [b"common %d" % n for n in range(3)]
LOST = [b"lost %d" % n for n in range(5)]
NEW = [b"new %d" % n for n in range(20)]
"""More than were lost: the log grows beyond the positions of its readers."""
KEYS = {
    "unclean.leader.election.enable": "true",
    "offsets.topic.replication.factor": "2",
    "replica.lag.time.max.ms": "3000",
}


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[JvmBroker]]:
    """Those with the ids 1, 2 and 3."""
    try:
        classpath(POM_3_9)
    except JvmMissing as missing:
        pytest.skip(str(missing))
    with ExitStack() as stack:
        zookeeper = stack.enter_context(new_zookeeper(tmp_path)).connect_string
        yield [
            stack.enter_context(JvmBroker(tmp_path, number, zookeeper, KEYS, pom=POM_3_9))
            for number in (1, 2, 3)
        ]


def write(bootstrap: str, values: list[bytes]) -> None:
    with KafkaProducer(bootstrap_servers=bootstrap, acks="all", retries=20) as producer:
        for future in [producer.send(ProducerRecord("t", one, partition=0)) for one in values]:
            future.result(60)


def isr(broker: JvmBroker) -> list[int]:
    (topic,) = metadata_of(broker, "t").topics
    return topic.partitions[0].isr if topic.partitions else []


def read(consumer: KafkaConsumer, found: list[tuple[int, bytes | None]], last: bytes) -> None:
    """Read up to the message `last`."""

    def is_read() -> bool:
        found.extend((message.offset, message.value) for message in consumer.poll(0.2))
        return any(value == last for _, value in found)

    until(is_read, f"the message {last!r}", explain=lambda: f"{found} came")


def stream_of(bootstrap: str) -> StreamReader:
    keys = {"kafka.bootstrap.servers": bootstrap, "subscribe": "t", "startingOffsets": "earliest"}
    options = parse_read_options(keys, streaming=True)
    address = resolved(options.address, options.settings, options.topic_filter())
    return StreamReader(replace(options, address=address), default_schema(False))


def has_raised(consumer: KafkaConsumer) -> LogTruncated | None:
    try:
        assert not consumer.poll(0.2)
    except LogTruncated as error:
        return error
    return None


def last_of(source: NewSource) -> Portion | None:
    """The portion with the last message before the election, when it is read."""
    found = source.poll(0.2)
    return found[-1] if found and LOST[-1] in found[-1].values else None


@pytest.mark.interop
@pytest.mark.timeout(400)
def test_readers_of_messages_that_were_lost_are_told(
    brokers: list[JvmBroker], caplog: pytest.LogCaptureFixture
) -> None:
    """Although the log has grown beyond their position: by a warning, and at the first other
    message, with auto.offset.reset; by LogTruncated at each poll without; and one that begins at an
    offset that was committed before. A move fails, also one that is started again; a reader of
    one partition; and a stream of Spark between two batches."""
    one, two = brokers[:2]
    bootstrap = ",".join(broker.address for broker in brokers)
    with BrokerAdmin(parse_bootstrap(bootstrap)) as admin:
        until(lambda: len(admin.live_brokers()) == 3, "three brokers")
        admin.create_topic("t", assignment={0: [1, 2]})
    write(bootstrap, COMMON)
    two.kill()
    until(lambda: isr(one) == [1], "the leader alone in the ISR", 60)
    write(bootstrap, LOST)
    options: Any = {"bootstrap_servers": bootstrap, "metadata_max_age_ms": 2000}
    before = list(enumerate(COMMON + LOST))
    with KafkaConsumer(**options, group_id="g") as gone:
        gone.assign([TP])
        gone.seek(TP, 0)
        read(gone, [], LOST[-1])
        gone.commit()
        committed = gone.committed(TP)[TP]
    assert committed == OffsetAndMetadata(8)
    assert committed.leader_epoch == 1, "the ISR became smaller, which begins an epoch"
    with (
        KafkaConsumer(**options, auto_offset_reset="latest") as resetting,
        KafkaConsumer(**options, auto_offset_reset="none") as strict,
        KafkaConsumer(**options, auto_offset_reset="none", group_id="g") as resumed,
        closing(ClusterClient(parse_bootstrap(bootstrap), negotiates=True)) as cluster,
    ):
        cluster.refresh()
        source = NewSource({"bootstrap.servers": bootstrap}, cluster)
        found: dict[KafkaConsumer, list[tuple[int, bytes | None]]] = {resetting: [], strict: []}
        for consumer, messages in found.items():
            consumer.assign([TP])
            consumer.seek(TP, 0)
            read(consumer, messages, LOST[-1])
            assert messages == before
        source.seek({TP: OffsetAndMetadata(0)})
        copied = until(partial(last_of, source), "the move's copy")
        assert copied.leader_epoch == 1
        assert strict.positions()[TP].leader_epoch == 1
        reader = PartitionReader(cluster, TP, 0)
        until(lambda: [*reader.poll(BatchLimits())] and reader.position == 8, "the messages")
        stream = stream_of(bootstrap)
        batch = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
        assert batch["t"] == {"0": 8}
        assert batch["$epochs"] == {"t": {"0": 1}}
        one.kill()
        two.start()
        until(lambda: knows_leaders(two, "t", 1), "an unclean election", 60)
        write(bootstrap, NEW)
        with caplog.at_level(logging.WARNING, logger="kafka08.consumer"):
            read(resetting, found[resetting], NEW[-1])
        assert found[resetting] == before + list(enumerate(NEW, 3))
        assert "[t,0]: the messages from offset 3 to 7 were lost" in caplog.text

        with pytest.raises(MirrorFailed, match="offset 3 to 7 were lost"):
            until(lambda: source.poll(0.2) and None, "an error")
        source.close()
        restarted = NewSource({"bootstrap.servers": bootstrap}, cluster)
        restarted.seek({TP: OffsetAndMetadata(8, leader_epoch=copied.leader_epoch)})
        with pytest.raises(MirrorFailed, match="offset 3 to 7 were lost"):
            until(lambda: restarted.poll(0.2) and None, "an error")
        restarted.close()
        with pytest.raises(LogTruncated, match="offset 3 to 7 were lost"):
            list(reader.poll(BatchLimits()))
        with pytest.raises(DataLost, match="offset 3 to 7 were lost"):
            stream.latestOffset(batch, ReadAllAvailable())
        stream.stop()
        resumed.assign([TP])
        for consumer in (strict, resumed):
            raises = partial(has_raised, consumer)
            for error in (until(raises, "an error"), until(raises, "the error again")):
                assert (error.topic_partition, error.position, error.diverges_at) == (TP, 8, 3)
            assert consumer.position(TP) == 8
            consumer.seek(TP, 3)
            read(consumer, messages := [], NEW[-1])
            assert messages == list(enumerate(NEW, 3))
