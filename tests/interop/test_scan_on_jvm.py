"""Reads by time from a broker of 0.10.2.2, and of committed messages from one of 3.9.1."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka08.admin import AdminClient
from kafka08.errors import ConfigError
from kafka08.producer import KafkaProducer, KafkaProducerConfig
from tests.interop.jvm import POM_0_10_2, POM_3_9, JvmKafka
from tests.waiting import until

pytest.importorskip("pyarrow")
from kafka08.arrow import scan
from tests.arrow.transactional_scans import SCENARIOS

HOUR = timedelta(hours=1)
TRANSACTIONS = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def test_times_before_an_upgrade(tmp_path: Path) -> None:
    """The messages of an upgraded log are found by times after the last write without timestamps.
    Before it the broker finds none, since it does not search behind those segments: a scan from
    there is an error, which reads nothing and skips nothing. A time behind everything is the log
    end."""
    with JvmKafka(tmp_path, {"log.segment.bytes": "1000"}, pom=POM_0_10_2) as kafka:
        admin = AdminClient(zookeeper=kafka.zookeeper)
        admin.create_topic("t", 1, 1, {"message.format.version": "0.9.0"})
        write(kafka, 100)
        time.sleep(0.1)  # the last write is earlier
        upgraded = datetime.now(UTC)
        admin.alter_topic("t", config={"message.format.version": "0.10.2"})
        admin.close()
        until(lambda: finds_times(kafka, upgraded + HOUR), "the new format")
        write(kafka, 100)
        with scan(kafka.bootstrap, "t", columns=["timestamp"], start=upgraded) as scanned:
            times = [row["timestamp"] for batch in scanned for row in batch.to_pylist()]
        assert len(times) == 100
        assert min(times) >= upgraded
        for start in (datetime.fromtimestamp(0, UTC), upgraded - HOUR):
            with pytest.raises(ConfigError, match="begins with messages without timestamps"):
                scan(kafka.bootstrap, "t", start=start)
        with scan(kafka.bootstrap, "t", start=upgraded + HOUR) as scanned:
            assert scanned.ranges == ()


@pytest.fixture(scope="module")
def kafka_3_9(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JvmKafka]:
    with JvmKafka(tmp_path_factory.mktemp("3.9"), TRANSACTIONS, pom=POM_3_9) as kafka:
        yield kafka


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_committed_messages(kafka_3_9: JvmKafka, scenario: Callable[[str, str], None]) -> None:
    """What each scenario says."""
    admin = AdminClient(zookeeper=kafka_3_9.zookeeper)
    admin.create_topic(scenario.__name__, 1, 1)
    admin.await_leaders(scenario.__name__)
    admin.close()
    scenario(kafka_3_9.bootstrap, scenario.__name__)


def write(kafka: JvmKafka, count: int) -> None:
    """Messages of now, in segments of a few."""
    with KafkaProducer(KafkaProducerConfig(bootstrap_servers=kafka.bootstrap)) as producer:
        for _ in range(count):
            producer.send_many("t", [b"x" * 300], partition=0).result(30)


def finds_times(kafka: JvmKafka, start: datetime) -> bool:
    """Whether the broker looks for messages by their times."""
    try:
        scan(kafka.bootstrap, "t", start=start).close()
    except ConfigError:
        return False
    return True
