"""Our producer and simple consumer on brokers of 0.8.2.2, with its tools at the other end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kafka08.client import ClusterClient, RetryPolicy, parse_bootstrap
from kafka08.consumer import SimpleConsumer
from kafka08.errors import (
    FailedToSend,
    MessageTooLarge,
    OffsetMetadataTooLarge,
    OffsetOutOfRange,
    UnknownError,
    UnknownTopicOrPartition,
)
from kafka08.producer import ByteArrayPartitioner, KeyedMessage, Producer, ProducerConfig
from kafka08.structs import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    NO_OFFSET,
    OffsetAndMetadata,
    TopicPartition,
)
from tests.interop.jvm import JvmKafka
from tests.waiting import until

CODECS = ["none", "gzip", "snappy", "lz4"]
STRINGS = {"serializer.class": "kafka.serializer.StringEncoder"}


def producer_on(kafka: JvmKafka, **keys: Any) -> Producer:
    """Text in, acks 1 unless told otherwise. A topic that it creates may have no leader for longer
    than the default retries take, on a busy machine."""
    defaults = {
        "metadata.broker.list": kafka.bootstrap,
        "request.required.acks": 1,
        "message.send.max.retries": 100,
        **STRINGS,
    }
    return Producer(ProducerConfig(defaults, **keys))


@pytest.fixture
def consumer(jvm_kafka: JvmKafka) -> Iterator[SimpleConsumer]:
    with SimpleConsumer("127.0.0.1", jvm_kafka.brokers[0].port, client_id="simple") as consumer:
        yield consumer


def whole(consumer: SimpleConsumer, tp: TopicPartition) -> list[tuple[object, object]]:
    """(key, value) of everything in a partition, as text."""
    return [
        (m.key, m.value)
        for m in consumer.read_range(
            tp,
            consumer.earliest_or_latest(tp, EARLIEST_OFFSET),
            key_decoder=bytes.decode,
            value_decoder=bytes.decode,
        )
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_the_jvm_consumer_reads_our_producers_messages(jvm_kafka: JvmKafka, codec: str) -> None:
    """With each codec the console consumer of a new group reads every key and value once, in order
    by partition. Our producer's Metadata request creates the topic."""
    topic = f"ours-{codec}"
    lines = [(f"key-{n}", f"value {n} é") for n in range(300)]
    with producer_on(jvm_kafka, compression_codec=codec) as producer:
        producer.send([KeyedMessage(topic, value, key) for key, value in lines])
    read = jvm_kafka.tool(
        "kafka.tools.ConsoleConsumer",
        *("--zookeeper", jvm_kafka.zookeeper, "--topic", topic, "--from-beginning"),
        *("--property", "print.key=true", "--max-messages", str(len(lines))),
    )
    assert sorted(read.stdout.splitlines()) == sorted(f"{k}\t{v}" for k, v in lines)


@pytest.mark.parametrize("codec", CODECS)
def test_we_read_the_jvm_producers_messages(
    jvm_kafka: JvmKafka, consumer: SimpleConsumer, codec: str
) -> None:
    """With each codec we read the old console producer's messages; ByteArrayPartitioner decides the
    partition of each key."""
    topic = f"theirs-{codec}"
    jvm_kafka.create_topic(topic, 4)
    lines = [(f"k{n}", f"v{n}" * 10) for n in range(200)]
    jvm_kafka.tool(
        "kafka.tools.ConsoleProducer",
        *("--broker-list", jvm_kafka.bootstrap, "--topic", topic, "--sync"),
        *("--property", "parse.key=true", "--compression-codec", codec),
        *("--request-required-acks", "1"),
        stdin="".join(f"{key}\t{value}\n" for key, value in lines),
    )
    partitioner = ByteArrayPartitioner()
    for partition in range(4):
        tp = TopicPartition(topic, partition)
        assert whole(consumer, tp) == [
            (key, value) for key, value in lines if partitioner(key.encode(), 4) == partition
        ]


@pytest.mark.parametrize("max_bytes", [10, 1000, 100_000])
def test_reading_the_new_jvm_producers_sets_by_small_fetches(
    jvm_kafka: JvmKafka, consumer: SimpleConsumer, max_bytes: int
) -> None:
    """Small fetches that cut sets lose no message, nor does one message of 400 KB among small
    ones."""
    topic = f"small-fetches-{max_bytes}"
    jvm_kafka.create_topic(topic)
    values = [f"{n}" * 20 for n in range(50)] + ["x" * 400_000] + ["end"]
    jvm_kafka.tool(
        "kafka.tools.ConsoleProducer",
        *("--broker-list", jvm_kafka.bootstrap, "--topic", topic, "--new-producer"),
        *("--request-required-acks", "1"),  # with 0, the tool may end before the log has it
        stdin="".join(f"{value}\n" for value in values),
    )
    messages = consumer.read_range(TopicPartition(topic, 0), 0, max_bytes=max_bytes)
    assert [(m.value or b"").decode() for m in messages] == values


def test_an_oversize_message_is_named(jvm_kafka: JvmKafka) -> None:
    """The error has the size, which the first 12 bytes of the message in the response say."""
    with producer_on(jvm_kafka) as producer:
        producer.send(
            [KeyedMessage("oversize", "small", "k"), KeyedMessage("oversize", "x" * 5000)]
        )
    with SimpleConsumer("127.0.0.1", jvm_kafka.brokers[0].port, max_fetch_bytes=5000) as consumer:
        partitions = consumer.metadata(["oversize"]).partitions("oversize")
        errors = []
        for info in partitions:
            try:
                list(
                    consumer.read_range(
                        TopicPartition("oversize", info.partition), 0, max_bytes=100
                    )
                )
            except MessageTooLarge as error:
                errors.append(str(error))
        assert len(errors) == 1
        assert "has 5026 bytes, more than the 5000 allowed" in errors[0]


def test_offsets_and_errors(jvm_kafka: JvmKafka, consumer: SimpleConsumer) -> None:
    """The earliest and latest offset and one by time are the JVM's; error codes raise classes that
    name broker and partition."""
    jvm_kafka.create_topic("offsets")
    tp = TopicPartition("offsets", 0)
    assert consumer.offsets_before(tp, LATEST_OFFSET, 5) == [0]
    with producer_on(jvm_kafka) as producer:
        producer.send([KeyedMessage("offsets", str(n)) for n in range(7)])
    assert consumer.earliest_or_latest(tp, EARLIEST_OFFSET) == 0
    assert consumer.earliest_or_latest(tp, LATEST_OFFSET) == 7
    assert consumer.offsets_before(tp, LATEST_OFFSET, 5) == [7, 0]
    assert consumer.offsets_before(tp, 1000, 5) == []
    with pytest.raises(OffsetOutOfRange, match=r"\[offsets,0\] at 127.0.0.1:\d+, offset 8"):
        consumer.fetch(tp, 8)
    sets = consumer.multifetch({tp: 5, TopicPartition("offsets", 9): 0})
    assert [m.offset for m in sets[tp]] == [5, 6]
    assert isinstance(sets[TopicPartition("offsets", 9)].error, UnknownTopicOrPartition)


def test_commits_in_zookeeper_are_seen_by_the_jvm(
    jvm_kafka: JvmKafka, consumer: SimpleConsumer, tmp_path: Path
) -> None:
    """ExportZkOffsets finds our commits, without their metadata, which version 0 drops."""
    jvm_kafka.create_topic("in-zk", 2)
    first, second = TopicPartition("in-zk", 0), TopicPartition("in-zk", 1)
    assert consumer.fetch_offsets("zk-group", [first])[first].offset == NO_OFFSET
    consumer.commit_offsets("zk-group", {first: 4, second: OffsetAndMetadata(5, "dropped")})
    assert consumer.fetch_offsets("zk-group", [first, second]) == {
        first: OffsetAndMetadata(4, ""),
        second: OffsetAndMetadata(5, ""),
    }
    out = tmp_path / "offsets"
    jvm_kafka.tool(
        "kafka.tools.ExportZkOffsets",
        *("--zkconnect", jvm_kafka.zookeeper, "--group", "zk-group", "--output-file", str(out)),
    )
    assert sorted(out.read_text().split()) == [
        "/consumers/zk-group/offsets/in-zk/0:4",
        "/consumers/zk-group/offsets/in-zk/1:5",
    ]


def test_a_jvm_group_continues_at_our_commit_in_kafka(
    jvm_kafka: JvmKafka, consumer: SimpleConsumer, tmp_path: Path
) -> None:
    """After our commit of 6 of 8 messages in Kafka, the console consumer of that group reads the
    last two, and we read back its commit. ZooKeeper has no offset of the group."""
    jvm_kafka.create_topic("in-kafka")
    tp, other = TopicPartition("in-kafka", 0), TopicPartition("in-kafka", 1)
    with producer_on(jvm_kafka) as producer:
        producer.send([KeyedMessage("in-kafka", f"message {n}") for n in range(8)])
    consumer.commit_offsets("kafka-group", {tp: OffsetAndMetadata(6, "m")}, "kafka")
    assert consumer.fetch_offsets("kafka-group", [tp], "kafka") == {tp: OffsetAndMetadata(6, "m")}
    config = tmp_path / "consumer.properties"
    config.write_text(
        "group.id=kafka-group\noffsets.storage=kafka\ndual.commit.enabled=false\n"
        "consumer.timeout.ms=20000\n"
    )
    read = jvm_kafka.tool(
        "kafka.tools.ConsoleConsumer",
        *("--zookeeper", jvm_kafka.zookeeper, "--topic", "in-kafka", "--max-messages", "2"),
        *("--consumer.config", str(config)),
    )
    assert read.stdout.splitlines() == ["message 6", "message 7"]
    assert consumer.fetch_offsets("kafka-group", [tp], "kafka") == {tp: OffsetAndMetadata(8, "")}
    assert consumer.fetch_offsets("kafka-group", [tp])[tp].offset == NO_OFFSET
    with pytest.raises(UnknownTopicOrPartition, match=r"\[in-kafka,1\]"):
        consumer.fetch_offsets("kafka-group", [other], "kafka")
    with pytest.raises(OffsetMetadataTooLarge):
        consumer.commit_offsets("kafka-group", {tp: OffsetAndMetadata(7, "m" * 4097)}, "kafka")


def test_a_message_that_is_too_large_fails_alone(jvm_kafka: JvmKafka) -> None:
    """A message above max.message.bytes fails at once, and the rest of the batch is stored."""
    jvm_kafka.create_topic("refused", 2)
    too_large = KeyedMessage("refused", "x" * 1_000_012, 0)
    keyed = ProducerConfig(
        {"metadata.broker.list": jvm_kafka.bootstrap, "request.required.acks": -1, **STRINGS}
    )
    with Producer(keyed, key_encoder=lambda key: b"%d" % key) as producer:
        with pytest.raises(
            FailedToSend, match=r"after 1 tries: 1 of 2: .*MessageSizeTooLarge"
        ) as e:
            producer.send([too_large, KeyedMessage("refused", "small", 1)])
        assert e.value.messages == (too_large,)
    with SimpleConsumer("127.0.0.1", jvm_kafka.brokers[0].port) as consumer:
        assert whole(consumer, TopicPartition("refused", 0)) == []
        assert whole(consumer, TopicPartition("refused", 1)) == [("1", "small")]


def test_acks_0_arrives_without_a_response(jvm_kafka: JvmKafka, consumer: SimpleConsumer) -> None:
    """With acks 0, the default of 0.8, messages arrive although no response comes."""
    jvm_kafka.create_topic("acks-0")
    tp = TopicPartition("acks-0", 0)
    with producer_on(jvm_kafka, request_required_acks=0) as producer:
        for n in range(100):
            producer.send(KeyedMessage("acks-0", str(n)))

    def log_end() -> int:
        with suppress(UnknownError):  # the JVM's, if the first message arrives meanwhile
            return consumer.earliest_or_latest(tp, LATEST_OFFSET)
        return 0

    until(lambda: log_end() == 100, "100 messages")
    assert [value for _, value in whole(consumer, tp)] == [str(n) for n in range(100)]


def test_a_leader_that_dies_is_followed_by_producer_and_reader(tmp_path: Path) -> None:
    """With two replicas and acks -1 the leader is killed between sends: no acknowledged message is
    missing, and a reader finds the new leader by at_leader."""
    properties = {"zookeeper.session.timeout.ms": "2000", "min.insync.replicas": "1"}
    with JvmKafka(tmp_path, properties, brokers=2) as kafka:
        kafka.create_topic("moving", 1, replication_factor=2)
        tp = TopicPartition("moving", 0)
        cluster = ClusterClient(
            parse_bootstrap(kafka.bootstrap), retry_policy=RetryPolicy(tries=100, backoff_ms=200)
        )
        patient = producer_on(
            kafka, request_required_acks=-1, message_send_max_retries=100, retry_backoff_ms=200
        )
        with patient as producer:
            for n in range(5):
                producer.send(KeyedMessage("moving", str(n)))
            kafka.brokers[cluster.leader(tp).id - 1].kill()
            for n in range(5, 10):
                producer.send(KeyedMessage("moving", str(n)))

        def read(connection: object) -> list[str]:
            leader = cluster.leader(tp)
            with SimpleConsumer(leader.host, leader.port) as consumer:
                return [str(value) for _, value in whole(consumer, tp)]

        values = cluster.at_leader(tp, read)
        cluster.close()
        assert list(dict.fromkeys(values)) == [str(n) for n in range(10)]
