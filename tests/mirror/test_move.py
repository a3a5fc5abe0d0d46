"""`kafka08 move` from a cluster of 0.8.2 to one of 0.11: each message once, and the groups."""

from __future__ import annotations

import itertools
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kafka08.admin import AdminClient, BrokerAdmin
from kafka08.client import parse_bootstrap
from kafka08.consumer import ConsumerConfig, ConsumerConnector, KafkaConsumer, Whitelist
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.embedded import EmbeddedCluster
from kafka08.mirror.move import Cluster, Move
from kafka08.mirror.offset_map import OffsetMap
from kafka08.mirror.outcome import MirrorFailed
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.structs import TopicPartition
from tests.mirror.moving import Moves, Outcome
from tests.waiting import until

PARTITIONS = 3


@pytest.fixture(scope="module")
def source() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(1, level="0.8.2") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def target() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(1, level="0.11.0") as cluster:
        yield cluster


@pytest.fixture
def topic(request: pytest.FixtureRequest, source: EmbeddedCluster) -> str:
    name: str = request.node.name
    with AdminClient(source.zookeeper.connect_string) as admin:
        admin.create_topic(name, PARTITIONS, 1, {"retention.ms": str(10**10)})
    return name


@pytest.fixture
def moves(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, tmp_path: Path
) -> Iterator[Moves]:
    zookeeper = source.zookeeper.connect_string
    options = ("--source-zookeeper", zookeeper, "--target-bootstrap", target.bootstrap)
    moves = Moves((*options, "--whitelist", topic, "--name", topic), tmp_path / "move.log")
    yield moves
    if moves.running is not None:
        moves.end(signal.SIGKILL)
    sys.stderr.write(moves.said)


def write(
    cluster: EmbeddedCluster, topic: str, first: int, count: int, partitions: int = PARTITIONS
) -> None:
    """Numbered messages, each partition's in order."""
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        sent = [
            producer.send(ProducerRecord(topic, b"%d" % n, b"k%d" % n, n % partitions))
            for n in range(first, first + count)
        ]
        for future in sent:
            future.result(60)


def read(cluster: EmbeddedCluster, topic: str, group: str, count: int) -> list[int]:
    """The numbers that a member of this group finds, as many as it should."""
    keys = {"group.id": group, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    config = KafkaConsumerConfig({"bootstrap.servers": cluster.bootstrap, **keys})
    found: list[int] = []

    def has_all() -> bool:
        found.extend(number_of(message.value) for message in consumer.poll(0.2))
        return len(found) >= count

    with KafkaConsumer(config) as consumer:
        consumer.subscribe([topic])
        until(has_all, f"{count} messages", explain=lambda: f"{len(found)} came")
        found += [number_of(message.value) for message in consumer.poll(0.5)]
    return found


def number_of(value: bytes | None) -> int:
    assert value is not None
    return int(value)


def await_copies(moves: Moves) -> None:
    """Until all that the source has is copied."""

    def lag() -> int:
        rows = json.loads(moves.run("status", "--json").out)["partitions"]
        return sum(row["lag"] for row in rows)

    until(lambda: not lag(), "all messages to be copied", 120, explain=lambda: moves.said)


def test_kill_9_copies_each_message_once(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, moves: Moves
) -> None:
    """Killed in the middle again and again, while messages come in: a reader of committed messages
    finds each once, in the order of its partition."""
    count, stopping = 3000, threading.Event()

    def feed() -> None:
        for first in range(0, count, 100):
            write(source, topic, first, 100)

    feeding = threading.Thread(target=feed)
    feeding.start()
    while feeding.is_alive():
        moves.start()
        stopping.wait(1.5)
        moves.end(signal.SIGKILL)
    moves.start()
    await_copies(moves)
    assert moves.end() == 0
    found = read(target, topic, "checker", count)
    assert sorted(found) == list(range(count))
    for partition in range(PARTITIONS):
        of_one = [n for n in found if n % PARTITIONS == partition]
        assert of_one == sorted(of_one)
    done = moves.run("verify")
    assert (done.code, done.out) == (0, f"{count} messages are the same, 0 partitions differ.\n")


def test_a_group_goes_on_where_it_was(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, moves: Moves
) -> None:
    """A ZooKeeper group that was stopped in the middle reads the rest at the target, as a group
    with a coordinator; with members it cannot switch, and not twice."""
    write(source, topic, 0, 300)
    keys = {"group.id": topic, "zookeeper.connect": source.zookeeper.connect_string}
    config = ConsumerConfig({**keys, "auto.offset.reset": "smallest"})
    with ConsumerConnector(config) as connector:
        (stream,) = connector.create_message_streams({topic: 1})[topic]
        seen = [number_of(next(stream).message) for _ in range(100)]
        connector.commit_offsets()
        moves.start()
        await_copies(moves)
        refused = moves.run("switch", topic, "--execute")
        assert (refused.code, "it has 1 members" in refused.err) == (1, True), refused
    assert moves.end() == 0
    preview = moves.run("switch", topic)
    assert (preview.code, "Nothing was changed" in preview.err) == (0, True), preview
    assert moves.run("switch", topic, "--execute").code == 0
    rest = read(target, topic, topic, 300 - len(seen))
    assert sorted([*seen, *rest]) == list(range(300))
    again = moves.run("switch", topic, "--execute")
    assert (again.code, "other offsets already" in again.err) == (1, True), again


def test_a_plan_changes_nothing(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, moves: Moves
) -> None:
    """It says what would be made, with its overrides, and what stands against it."""
    done = moves.run("plan", "--json")
    (step,) = json.loads(done.out)
    assert (step["step"], step["config"]) == ("create", {"retention.ms": str(10**10)})
    assert step["partitions"] == PARTITIONS
    refused = moves.run("plan", "--replication-factor", "2")
    assert (refused.code, "the target has 1" in refused.err) == (1, True), refused
    with AdminClient(target.zookeeper.connect_string) as admin:
        assert topic not in admin.list_topics()


def test_a_strangers_messages_stand_against_it(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, moves: Moves
) -> None:
    """A topic of the target with messages that the move has not copied is not mixed."""
    write(source, topic, 0, 10)
    target.create_topic(topic, PARTITIONS)
    write(target, topic, 0, 10)
    moves.start()
    assert moves.running is not None
    assert moves.running.wait(60) == 1
    assert "it has messages at the target that this move has not copied" in moves.said
    moves.running = None


def test_a_second_run_ends_the_first(
    topic: str, moves: Moves, source: EmbeddedCluster, target: EmbeddedCluster
) -> None:
    """Two at a time would copy twice: the first is fenced and says so, the second goes on."""
    write(source, topic, 0, 30)
    moves.start()
    await_copies(moves)
    first, moves.running = moves.running, None
    assert first is not None
    try:
        moves.start()
        numbers = itertools.count(1)

        def has_ended() -> bool:
            # A process finds out that it is fenced when it has something to copy.
            write(source, topic, 30 * next(numbers), 30)
            return first.poll() is not None

        until(has_ended, "the end of the first", 240, explain=lambda: moves.said)
    finally:
        first.kill()
        first.wait()
    assert (first.returncode, "another process has begun this move" in moves.said) == (1, True)
    await_copies(moves)
    assert moves.end() == 0
    count = 30 * next(numbers)
    assert sorted(read(target, topic, topic, count)) == list(range(count))


def move_of(topic: str, source: EmbeddedCluster, target: EmbeddedCluster) -> Move:
    there = Cluster(None, {"bootstrap.servers": target.bootstrap})
    return Move(Cluster(source.zookeeper.connect_string, {}), there, Whitelist(topic), topic)


def begin(move: Move, process: str, copied: OffsetMap) -> None:
    """Let a process of this move begin, with the records that it knows, and stop at once."""
    stopping = threading.Event()
    stopping.set()
    move._run_once(process, copied, stopping)


def test_an_earlier_process_recovers_and_ends(
    topic: str, source: EmbeddedCluster, target: EmbeddedCluster
) -> None:
    """One that recovers after a later one has begun takes nothing from it: it ends."""
    move, known = move_of(topic, source, target), OffsetMap()
    begin(move, "earlier", known)
    begin(move, "later", OffsetMap())
    with pytest.raises(MirrorFailed, match="another process has begun this move"):
        begin(move, "earlier", known)
    begin(move, "later", OffsetMap())


def test_a_look_for_new_topics_fences_no_later_process(
    topic: str,
    source: EmbeddedCluster,
    target: EmbeddedCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The earlier one looks again and again, and ends at the first look after the later began."""
    monkeypatch.setattr("kafka08.mirror.move.LOOK_AGAIN_S", 0.05)
    move, stopping = move_of(topic, source, target), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        earlier = pool.submit(move.run, stopping)
        try:
            until(lambda: move.copied().next_record > 6, "some looks")
            begin(move, "later", OffsetMap())
            with pytest.raises(MirrorFailed, match="another process has begun this move"):
                earlier.result(60)
        finally:
            stopping.set()


@pytest.mark.parametrize("option", ["", "--skip-deleted"])
def test_deletion_while_it_runs(target: EmbeddedCluster, tmp_path: Path, option: str) -> None:
    """What the source deletes before it is copied ends the move, or is left out if it may be."""
    topic = f"deleted{option}"
    with EmbeddedCluster(1, level="0.11.0") as source:
        source.create_topic(topic, 1)
        write(source, topic, 0, 1, partitions=1)
        options = ("--source-bootstrap", source.bootstrap, "--target-bootstrap", target.bootstrap)
        moves = Moves((*options, "--whitelist", topic, "--name", topic), tmp_path / "move.log")
        moves.start(*filter(None, [option]))
        running = moves.running
        assert running is not None
        try:
            await_copies(moves)
            running.send_signal(signal.SIGSTOP)
            for number in range(1, 10):  # one waits in its socket; the next ones are not fetched
                write(source, topic, number, 1, partitions=1)
            with BrokerAdmin(parse_bootstrap(source.bootstrap)) as admin:
                admin.delete_records({TopicPartition(topic, 0): 7})
            running.send_signal(signal.SIGCONT)
            if option:
                await_copies(moves)
                assert moves.end() == 0
                assert read(target, topic, "checker", 5)[-3:] == [7, 8, 9]
            else:
                assert running.wait(120) == 1
                assert "Give --skip-deleted to go on" in moves.said
        finally:
            running.kill()
            running.wait()
            sys.stderr.write(moves.said)


def test_a_source_that_lost_messages_is_not_one_that_deleted_them(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, moves: Moves
) -> None:
    """A log that ends before the position of the move was truncated, or made again: no option goes
    on there."""
    write(source, topic, 0, 30)
    moves.start()
    await_copies(moves)
    assert moves.end() == 0
    with AdminClient(source.zookeeper.connect_string) as admin:
        admin.delete_topic(topic)
        until(lambda: topic not in admin.list_topics(), "the deletion")
        admin.create_topic(topic, PARTITIONS, 1)
    write(source, topic, 0, 6)
    done = moves.run("start", "--skip-deleted")
    assert (done.code, "lost messages which were copied" in done.err) == (1, True), done


def test_headers_come_and_aborted_messages_do_not(
    target: EmbeddedCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Between clusters of 0.11, without ZooKeeper: what was aborted at the source is not copied."""
    topic, written_ms = request.node.name, time.time_ns() // 1_000_000
    with EmbeddedCluster(1, level="0.11.0") as source:
        source.create_topic(topic, 1)
        keys = {"bootstrap.servers": source.bootstrap, "transactional.id": "writer"}
        with KafkaProducer(KafkaProducerConfig(keys)) as producer:
            producer.init_transactions()
            for n in range(6):
                producer.begin_transaction()
                headers = [("n", b"%d" % n)]
                record = ProducerRecord(topic, b"%d" % n, b"k", 0, written_ms, headers)
                producer.send(record).result(30)
                if n % 2:
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()
        found = read(source, topic, "readers", 2)
        assert found == [0, 2, 4]
        options = ("--source-bootstrap", source.bootstrap, "--target-bootstrap", target.bootstrap)
        moves = Moves((*options, "--whitelist", topic, "--name", topic), tmp_path / "move.log")
        moves.start()
        done: list[Outcome] = []

        def is_copied() -> bool:
            done.append(moves.run("verify"))
            return "3 messages" in done[-1].out

        until(is_copied, "the copies", explain=lambda: f"{done} {moves.said}")
        assert moves.end() == 0
    config = {"bootstrap.servers": target.bootstrap, "isolation.level": "read_committed"}
    with KafkaConsumer(KafkaConsumerConfig(config)) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        copies: list[Any] = []
        while len(copies) < 3:
            copies += consumer.poll(0.2)
    assert [(m.value, m.timestamp, m.headers) for m in copies] == [
        (b"%d" % n, written_ms, (("n", b"%d" % n),)) for n in (0, 2, 4)
    ]
