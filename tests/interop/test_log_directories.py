"""One log directory, used in turn by a JVM 0.8.2.2 broker and by kafka08.log."""

from __future__ import annotations

from pathlib import Path

from kafka08.log.check import check_log
from kafka08.log.config import LogConfig
from kafka08.log.manager import LogManager
from kafka08.log.names import CLEAN_SHUTDOWN_FILE
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafka08.protocol.produce import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from kafka08.structs import ORDINARY_CONSUMER, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from tests.interop.jvm import JvmBroker, JvmKafka
from tests.waiting import until

TP = TopicPartition("shared-log", 0)
SETTINGS = {
    "log.segment.bytes": "4000",
    "log.index.interval.bytes": "200",
    "zookeeper.session.timeout.ms": "2000",
}
CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=200)


def a_set(first: int, count: int) -> bytearray:
    """Messages whose values are their offsets, in the codec of the round."""
    values = [(b"k", b"%d" % offset) for offset in range(first, first + count)]
    return bytearray(message_set.encode(values, codec=first // count % 4))


def produce(broker: JvmBroker, first: int, count: int) -> None:
    topic = ProduceTopic(TP.topic, [ProducePartition(TP.partition, a_set(first, count))])
    with Connection("127.0.0.1", broker.port) as connection:
        response = connection.send(ProduceRequest(1, 5000, [topic]))
    assert isinstance(response, ProduceResponse)
    (partition,) = response.topics[0].partitions
    assert (0, first) == (partition.error_code, partition.base_offset)


def fetch(broker: JvmBroker, offset: int) -> FetchPartitionResponse:
    with Connection("127.0.0.1", broker.port) as connection:
        topic = FetchTopic(TP.topic, [FetchPartition(TP.partition, offset, 100_000)])
        response = connection.send(FetchRequest(ORDINARY_CONSUMER, 0, 0, [topic]))
    assert isinstance(response, FetchResponse)
    (partition,) = response.topics[0].partitions
    return partition


def read_from_jvm(broker: JvmBroker, end: int) -> list[bytes | None]:
    # A new leader may answer before it has raised its high watermark: with no messages.
    until(lambda: fetch(broker, 0).message_set, "first messages", explain=broker.describe_failure)
    found: list[bytes | None] = []
    while len(found) < end:
        data = fetch(broker, len(found)).message_set
        batch = list(message_set.decode(data, len(found)))
        assert batch, f"nothing at offset {len(found)}"
        found += [message.value for message in batch]
    return found


def read_from_ours(manager: LogManager) -> list[bytes | None]:
    log = manager.logs[TP]
    found: list[bytes | None] = []
    while len(found) < log.log_end_offset:
        data = log.read(len(found), 100_000).bytes()
        found += [message.value for message in message_set.decode(data, len(found))]
    return found


def open_ours(directory: Path) -> LogManager:
    manager = LogManager([directory], CONFIG)
    manager.load()
    return manager


def _session_ends(kafka: JvmKafka) -> None:
    """0.8: a broker that comes back before its old session is gone takes itself for the controller
    and never becomes one."""
    zk = ZkClient(kafka.zookeeper, session_timeout_ms=6000, connection_timeout_ms=6000)
    zk.start()
    try:
        until(lambda: not zk.exists(paths.CONTROLLER), "end of the broker's session")
    finally:
        zk.close()


def test_a_log_directory_changes_hands(tmp_path: Path) -> None:
    """The JVM and our broker take over a directory from each other after clean stops, kills and
    half an entry at the end: at each change all messages are there, in order, and our full check
    passes."""
    with JvmKafka(tmp_path, SETTINGS) as kafka:
        (broker,) = kafka.brokers
        kafka.create_topic(TP.topic)
        expected = [b"%d" % offset for offset in range(500)]
        directory = broker.log_dir / "shared-log-0"

        for first in range(0, 100, 5):
            produce(broker, first, 5)
        broker.kill()
        _session_ends(kafka)
        manager = open_ours(broker.log_dir)
        assert expected[:100] == read_from_ours(manager)
        for first in range(100, 200, 5):
            manager.logs[TP].append(a_set(first, 5))
        manager.shutdown()
        assert [] == check_log(directory)

        broker.start()
        assert expected[:200] == read_from_jvm(broker, 200)
        assert "Recovering unflushed segment" not in broker.output()
        for first in range(200, 300, 5):
            produce(broker, first, 5)
        broker.stop()
        assert (broker.log_dir / CLEAN_SHUTDOWN_FILE).exists()
        manager = open_ours(broker.log_dir)
        assert [] == check_log(directory)
        assert expected[:300] == read_from_ours(manager)
        for first in range(300, 400, 5):
            manager.logs[TP].append(a_set(first, 5))
        active = sorted(directory.glob("*.log"))[-1]
        with active.open("ab") as file:
            file.write(message_set.encode([(None, b"400")], base_offset=400)[:-3])
        manager._release()

        broker.start()
        assert expected[:400] == read_from_jvm(broker, 400)
        assert [] == [str(problem) for problem in check_log(directory)]
