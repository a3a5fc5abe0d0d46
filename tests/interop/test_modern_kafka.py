"""KafkaProducer and KafkaConsumer at a broker of 4.4, which has dropped what 0.8 to 0.10 speak."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig, MessageAndMetadata
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.protocol.compression import CLIENT_CODECS
from kafka08.spark.sink import RowWriter, planned
from kafka08.spark.write_options import parse_write_options
from kafka08.structs import TopicPartition
from tests.integration.polling_cluster import read
from tests.integration.transactional import SCENARIOS, producer_on
from tests.interop.jvm import JvmMissing, classpath, java
from tests.interop.kraft_broker import POM_4_4, KraftBroker, cutting_proxy
from tests.waiting import until

_names = count()
HEADERS = [("a", b"1"), ("ü", None), ("a", b"")]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftBroker]:
    try:
        java()
        classpath(POM_4_4)
        with KraftBroker(tmp_path_factory.mktemp("kraft")) as running:
            yield running
    except JvmMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"tests against Kafka 4.4 cannot run: {missing}")
        pytest.skip(f"needs Kafka 4.4: {missing}")


@pytest.fixture
def topic() -> str:
    return f"t{next(_names)}"


def consumed(
    broker: KraftBroker, topic: str, wanted: int, listener: str = "PLAINTEXT", **more: str
) -> list[MessageAndMetadata[Any, Any]]:
    """What a new group reads."""
    keys = {"group.id": f"g{next(_names)}", "auto.offset.reset": "earliest", **more}
    with KafkaConsumer(KafkaConsumerConfig({**broker.keys(listener), **keys})) as consumer:
        consumer.subscribe([topic])
        found = read(consumer, wanted, 30)
        consumer.commit()
    return found


@pytest.mark.parametrize("codec", CLIENT_CODECS.values())
@pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL_SSL"])
def test_there_and_back(broker: KraftBroker, topic: str, listener: str, codec: str) -> None:
    """Keys, values, timestamps and headers of single records, and many in one call."""
    keys = {"acks": "all", "retries": 20, "compression.type": codec, "linger.ms": 5}
    with KafkaProducer(KafkaProducerConfig({**broker.keys(listener), **keys})) as producer:
        sent = [
            producer.send(
                ProducerRecord(topic, b"%d" % n, b"k", headers=HEADERS if n % 9 == 0 else None)
            )
            for n in range(100)
        ]
        stored = [future.result(30) for future in sent]
        producer.send_many(topic, [b"x"] * 1000).result(30)
    found = consumed(broker, topic, 1100, listener)
    assert [m.value for m in found] == [b"%d" % n for n in range(100)] + [b"x"] * 1000
    assert [(m.offset, m.timestamp) for m in found[:100]] == [
        (one.offset, one.timestamp) for one in stored
    ]
    assert {m.key for m in found[:100]} == {b"k"}
    assert [n for n, m in enumerate(found) if m.headers == tuple(HEADERS)] == [*range(0, 100, 9)]


def test_others_read_what_we_sent(broker: KraftBroker, topic: str) -> None:
    """librdkafka finds the same records, and we those of librdkafka, in every codec."""
    confluent = pytest.importorskip("confluent_kafka")
    at = {"bootstrap.servers": broker.address["PLAINTEXT"]}
    for codec in CLIENT_CODECS.values():
        config = KafkaProducerConfig({**at, "compression.type": codec, "enable.idempotence": True})
        with KafkaProducer(config) as producer:
            producer.send(ProducerRecord(topic, codec.encode(), headers=HEADERS)).result(30)
        other = confluent.Producer({**at, "compression.type": codec})
        other.produce(topic, codec.encode(), headers=HEADERS)
        assert other.flush(30) == 0
    wanted = [codec.encode() for codec in CLIENT_CODECS.values() for _ in range(2)]
    reader = confluent.Consumer({**at, "group.id": topic, "auto.offset.reset": "earliest"})
    reader.subscribe([topic])
    theirs = reader.consume(len(wanted), 30)
    reader.close()
    assert [(m.value(), m.headers()) for m in theirs] == [(value, HEADERS) for value in wanted]
    ours = consumed(broker, topic, len(wanted))
    assert [(m.value, m.headers) for m in ours] == [(value, tuple(HEADERS)) for value in wanted]


def test_read_committed(broker: KraftBroker, topic: str) -> None:
    """Neither messages of aborted transactions nor those behind an open one are read."""
    confluent = pytest.importorskip("confluent_kafka")
    at = {"bootstrap.servers": broker.address["PLAINTEXT"]}
    producer = confluent.Producer({**at, "transactional.id": topic})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for n in range(5):
            producer.produce(topic, b"%d-%d" % (number, n))
        producer.flush(30)
        if number == 5:
            break
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    wanted = [b"%d-%d" % (number, n) for number in (0, 2, 4) for n in range(5)]
    found = consumed(broker, topic, len(wanted), **{"isolation.level": "read_committed"})
    assert [m.value for m in found] == wanted
    assert len(consumed(broker, topic, 30)) == 30
    for level, end in (("read_committed", 30), ("read_uncommitted", 35)):
        config = KafkaConsumerConfig({**at, "isolation.level": level})
        with KafkaConsumer(config) as consumer:
            tp = TopicPartition(topic, 0)
            assert consumer.end_offsets([tp]) == {tp: end}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_transactions(
    broker: KraftBroker, topic: str, scenario: Callable[[str, str], None]
) -> None:
    """What each scenario says."""
    scenario(broker.address["PLAINTEXT"], topic)


def test_read_offsets_belong_to_a_transaction(broker: KraftBroker, topic: str) -> None:
    """The positions of a consumer, with the epoch of the leader that had the messages."""
    tp = TopicPartition(topic, 0)
    options: dict[str, Any] = {"bootstrap_servers": broker.address["PLAINTEXT"], "group_id": topic}
    at = options["bootstrap_servers"]
    with producer_on(at, topic) as producer, KafkaConsumer(**options) as consumer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(ProducerRecord(topic, b"a")).result(30)
        consumer.assign([tp])
        consumer.seek(tp, 0)
        until(lambda: consumer.poll(0.1), "the message")
        read = consumer.positions()
        with producer.transaction():
            producer.send_offsets_to_transaction(read, topic)
        until(lambda: consumer.committed(tp)[tp], "the commit")
        (found,) = consumer.committed(tp).values()
    assert found == read[tp]
    assert found.leader_epoch == read[tp].leader_epoch == 0


@pytest.mark.parametrize("seed", range(2))
def test_connections_that_are_cut_store_nothing_twice(
    broker: KraftBroker, topic: str, seed: int
) -> None:
    """An idempotent producer whose requests and responses are lost: each record once, in order."""
    values = [b"%d" % n for n in range(3000)]
    keys: dict[str, Any] = {
        "enable.idempotence": True,
        "retry.backoff.ms": 5,
        "reconnect.backoff.ms": 5,
        "batch.size": 200,
    }
    with cutting_proxy(broker.proxy_port, broker.address["PROXIED"], seed) as cuts:
        config = KafkaProducerConfig({**broker.keys("PROXIED"), **keys})
        with KafkaProducer(config) as producer:
            futures = [producer.send(ProducerRecord(topic, value)) for value in values]
            for future in futures:
                future.result(60)
    assert cuts[0] > 5
    assert [m.value for m in consumed(broker, topic, len(values))] == values


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_a_task_of_the_spark_sink_writes(broker: KraftBroker, topic: str, codec: str) -> None:
    """As record batches: keys, values, timestamps."""
    options = {f"kafka.{key}": value for key, value in broker.keys("PLAINTEXT").items()}
    options |= {"topic": topic, "kafka.compression.type": codec, "includeTimestamp": "true"}
    writer = RowWriter(planned(parse_write_options(options)))
    keys, values = [None, b"k"] * 500, [b"%d" % n for n in range(1000)]
    batch = pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array(range(1000, 2000), pa.timestamp("ms")),
        }
    )
    assert writer.write(iter([batch])).counts[topic][0] == 1000
    found = [(m.timestamp, m.key, m.value) for m in consumed(broker, topic, 1000)]
    found.sort(key=lambda row: row[0])
    assert found == list(zip(range(1000, 2000), keys, values, strict=True))
