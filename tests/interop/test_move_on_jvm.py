"""docs/move.md, "Topics", on real clusters: from a JVM 0.8.2.2 to a JVM 4.4.0 with TLS and a login,
by `kafka08 move`, which is killed."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from kafka08.admin import AdminClient
from kafka08.consumer import ConsumerConfig, ConsumerConnector, KafkaConsumer
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.producer import KafkaProducer, ProducerRecord
from tests.interop.jvm import POM, JvmBroker, JvmMissing, classpath, new_zookeeper
from tests.interop.kraft_broker import POM_4_4, KraftBroker
from tests.mirror.moving import Moves
from tests.mirror.test_move import await_copies, number_of
from tests.waiting import until

COUNT = 4000


@pytest.mark.interop
@pytest.mark.timeout(400)
def test_an_afternoon(tmp_path: Path) -> None:
    """Each message is there once, in order; the group continues; both sides are the same."""
    try:
        classpath(POM), classpath(POM_4_4)
    except JvmMissing as missing:
        pytest.skip(str(missing))
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    with new_zookeeper(tmp_path / "old") as zookeeper, KraftBroker(tmp_path / "new") as modern:
        connect = zookeeper.connect_string
        with JvmBroker(tmp_path / "old", 1, connect) as old:
            port = old.port
            with AdminClient(connect) as admin:
                admin.create_topic("pages", 2, 1, {"retention.ms": str(10**10)})
            until(lambda: write(old.address, 0, COUNT), "the messages")
            keys = {"group.id": "readers", "zookeeper.connect": connect}
            config = ConsumerConfig({**keys, "auto.offset.reset": "smallest"})
            with ConsumerConnector(config) as connector:
                (stream,) = connector.create_message_streams({"pages": 1})["pages"]
                seen = [number_of(next(stream).message) for _ in range(1000)]
                connector.commit_offsets()
            secured = tmp_path / "new.properties"
            keys = modern.keys("SASL_SSL")
            secured.write_text("".join(f"{name}={value}\n" for name, value in keys.items()))
            options = ("--source-zookeeper", connect, "--whitelist", "pages")
            target = ("--target-bootstrap", keys["bootstrap.servers"])
            secrets = ("--target-config", str(secured))
            moves = Moves((*options, *target, *secrets), tmp_path / "move.log")
            try:
                for _ in range(3):
                    moves.start()
                    time.sleep(3)
                    moves.end(signal.SIGKILL)
                moves.start()
                await_copies(moves)
                old.stop()
                with JvmBroker(tmp_path / "old", 1, connect, {"port": str(port)}):
                    until(lambda: write(old.address, COUNT, 100), "more messages")
                    await_copies(moves)
                    assert moves.end() == 0
                    assert moves.run("switch", "readers", "--execute").code == 0
                    done = moves.run("verify")
                    same = f"{COUNT + 100} messages are the same, 0 partitions differ.\n"
                    assert (done.code, done.out) == (0, same), done
            finally:
                if moves.running is not None:
                    moves.end(signal.SIGKILL)
                sys.stderr.write(moves.said)
            rest = read_on(keys, COUNT + 100 - len(seen))
            assert sorted([*seen, *rest]) == list(range(COUNT + 100))


def write(address: str, first: int, count: int) -> bool:
    with KafkaProducer(bootstrap_servers=address, retries=20) as producer:
        sent = [
            producer.send(ProducerRecord("pages", b"%d" % n, b"k%d" % (n % 7), n % 2))
            for n in range(first, first + count)
        ]
        for future in sent:
            future.result(60)
    return True


def read_on(keys: dict[str, str], count: int) -> list[int]:
    """The group's messages at the target."""
    found: list[int] = []
    own = {"group.id": "readers", "auto.offset.reset": "none", "isolation.level": "read_committed"}
    with KafkaConsumer(KafkaConsumerConfig({**keys, **own})) as consumer:
        consumer.subscribe(["pages"])

        def has_all() -> bool:
            found.extend(number_of(message.value) for message in consumer.poll(0.2))
            return len(found) >= count

        until(has_all, f"{count} messages", explain=lambda: f"{len(found)} came")
        found += [number_of(message.value) for message in consumer.poll(0.5)]
    return found
