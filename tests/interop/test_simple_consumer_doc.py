"""The reader of docs/simple-consumer.md on a broker of 0.8.2.2."""

from __future__ import annotations

import json
from pathlib import Path

from kafka08.producer import KeyedMessage
from kafka08.zk.client import ZkClient
from tests.documents import run_program
from tests.interop.jvm import JvmKafka
from tests.interop.test_clients_on_jvm import producer_on


def test_the_reader_continues_where_it_stopped(jvm_kafka: JvmKafka, tmp_path: Path) -> None:
    """Two runs together read 10 messages without a gap or a repetition; the znode has storm-kafka's
    fields."""
    jvm_kafka.create_topic("storm")
    with producer_on(jvm_kafka) as producer:
        producer.send([KeyedMessage("storm", f"message {n}") for n in range(10)])
    read: list[str] = []
    for count in ("4", "6"):
        read += run_program(
            "simple-consumer.md",
            tmp_path,
            *("storm", "0", count),
            bootstrap=jvm_kafka.bootstrap,
            zookeeper=jvm_kafka.zookeeper,
        )
    assert read == [f"{n} message {n}" for n in range(10)]
    with ZkClient(jvm_kafka.zookeeper) as zk:
        stored = zk.get("/transactional/reader/partition_0").data
    assert stored is not None
    assert json.loads(stored).keys() == {"topology", "offset", "partition", "broker", "topic"}
    assert json.loads(stored)["offset"] == 10
