"""Clusters change their release broker by broker while messages are sent and read (upgrading.md).

Messages are sent with acks=-1 to a topic that needs two replicas in sync, and read from the first
one on. In the end no acknowledged message is lost and all replicas hold the same bytes. A group
with a coordinator processes all messages of another topic, in order; no commit goes back. One
KafkaProducer sends to a third topic all the time: timestamps begin with the new format.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import pytest

from kafka08.format import magic_of
from kafka08.format.types import ENTRY_HEADER
from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.producer.future import RecordFuture
from kafka08.protocol import message_set
from tests.histories.group_run import GroupRun
from tests.histories.workload import Workload
from tests.interop.jvm import POM, POM_0_10_2, POM_3_9
from tests.interop.seats import MixedCluster, Release, Seat, mixed_cluster
from tests.waiting import until

pytestmark = pytest.mark.timeout(400)
TOPIC, GROUPED, NUMBERED = "rolling", "grouped", "numbered"
SEATS = 3
SAFE = {"unclean.leader.election.enable": "false", "min.insync.replicas": "2"}
GROUP_KEYS = {level: {"group.min.session.timeout.ms": "500"} for level in ("0.10.2", "0.11.0")}
PROTOCOL, FORMAT = "inter.broker.protocol.version", "log.message.format.version"


def of(level: str, protocol: str = "", message_format: str = "", pom: Path = POM_0_10_2) -> Release:
    """A release with the two keys that pin it."""
    keys = {PROTOCOL: protocol, FORMAT: message_format, **GROUP_KEYS.get(level, {})}
    return Release(pom, level, {key: value for key, value in keys.items() if value})


class Untouched:
    """The network of a GroupRun without faults of its own."""

    def hold(self, broker: int) -> None: ...

    def release(self) -> None: ...

    def reset(self, broker: int) -> None: ...


class Numbers:
    """A KafkaProducer that sends 0, 1, 2, … to NUMBERED until the end of the `with` block.

    marks   at each call of `mark`, the next number; smaller ones are acknowledged
    """

    def __init__(self, bootstrap: str) -> None:
        self.marks: list[int] = []
        self.began_ms = time.time_ns() // 1_000_000
        config = KafkaProducerConfig(
            bootstrap_servers=bootstrap,
            acks="all",
            retries=1_000_000,
            max_in_flight_requests_per_connection=1,
            metadata_max_age_ms=1000,
        )
        self._producer = KafkaProducer(config)
        self._futures: list[RecordFuture] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.mark()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.close(30.0)

    def mark(self) -> None:
        """Wait until twenty more are acknowledged, and note where they end."""
        wanted = len(self._futures) + 20
        until(
            lambda: len(self._futures) >= wanted and self._futures[wanted - 1].done(), "a response"
        )
        assert not any(future.exception() for future in self._futures[:wanted])
        self.marks.append(wanted)

    def failures(self) -> list[Exception]:
        """Of those that were sent."""
        return [error for future in self._futures if (error := future.exception()) is not None]

    def _send(self) -> None:
        while not self._stop.wait(0.01):
            record = ProducerRecord(NUMBERED, b"%d" % len(self._futures))
            self._futures.append(self._producer.send(record))

    def times_in(self, seat: Seat) -> list[int]:
        """The timestamp of each number in the seat's log. Each number is there, behind the smaller
        ones; a repetition of a request does not count."""
        times: dict[int, int] = {}
        for data in seat.segments(NUMBERED, 0).values():
            for message in message_set.decode(data):
                number = int(message.value or b"")
                assert number <= len(times), f"{len(times)} is missing before {number}"
                times.setdefault(number, message.timestamp)
        assert [future.exception() for future in self._futures] == [None] * len(times)
        return list(times.values())


def roll(cluster: MixedCluster, work: Workload, start: Callable[[Seat], None]) -> None:
    """Restart each broker cleanly as `start` does, the next one when all replicas are in sync."""
    everybody = [seat.id for seat in cluster.seats]
    for seat in cluster.seats:
        work.await_progress()
        seat.stop()
        start(seat)
        cluster.await_isr(TOPIC, *everybody)
    work.await_progress()


def magics(cluster: MixedCluster) -> set[int | None]:
    """The message formats in the logs of the topic."""
    found = set()
    for files in [seat.segments(TOPIC, n) for seat in cluster.seats for n in range(2)]:
        for data in files.values():
            rest = memoryview(data)
            while rest:
                found.add(magic_of(rest))
                rest = rest[ENTRY_HEADER.size + ENTRY_HEADER.unpack_from(rest)[1] :]
    return found


def change(
    cluster: MixedCluster,
    start: Callable[[Seat], None],
    *rounds: Callable[[Seat], None],
    group: Path | None = None,
    compares: bool = True,
) -> Numbers:
    """Start all brokers, then roll them through the rounds, and look at what is left; `compares`
    the bytes of the replicas too. `group`: a directory for a group of KafkaConsumers, which work
    from the end of the first round on: before it no broker coordinates. Returns the numbers that
    were sent, with a mark at the start of each round and at the end."""
    for seat in cluster.seats:
        start(seat)
    topics = (TOPIC, GROUPED)
    for topic in topics if group is not None else topics[:1]:
        cluster.admin.create_topic(topic, 2, SEATS, SAFE)
        cluster.admin.await_leaders(topic)
    cluster.admin.create_topic(NUMBERED, 1, SEATS, SAFE)
    cluster.admin.await_leaders(NUMBERED)
    numbers = Numbers(cluster.bootstrap)
    with Workload(cluster.bootstrap, TOPIC, partitions=2) as work, numbers:

        def roll_all(rounds: Sequence[Callable[[Seat], None]]) -> None:
            for restart in rounds:
                roll(cluster, work, restart)
                numbers.mark()

        if group is None:
            roll_all(rounds)
        else:
            roll_all(rounds[:1])
            group.mkdir()
            rng = random.Random(1)
            run = GroupRun(cluster.bootstrap, GROUPED, 2, group, rng, lambda: None, Untouched(), ())
            with run:
                run.run_while(lambda: roll_all(rounds[1:]))
                assert [] == run.problems
    assert [] == work.problems()
    if compares:
        cluster.await_equal_logs(TOPIC, 2)
        cluster.await_equal_logs(NUMBERED, 1)
    return numbers


def check_times(cluster: MixedCluster, numbers: Numbers) -> None:
    """No number was lost. Those before the last round have no timestamp, those behind it have
    the time of their send."""
    times = numbers.times_in(cluster.seats[0])
    *_, last_round, end = numbers.marks
    assert set(times[:last_round]) == {NO_TIMESTAMP}
    assert len(times) > end
    assert all(numbers.began_ms < at <= time.time_ns() // 1_000_000 for at in times[end:])
    assert times[end:] == sorted(times[end:])


def ours(release: Release) -> Callable[[Seat], None]:
    return lambda seat: seat.start_ours(release)


def jvm(release: Release) -> Callable[[Seat], None]:
    return lambda seat: seat.start_jvm(release)


PINNED = of("0.10.2", "0.8.2", "0.8.2")
NEW_PROTOCOL = of("0.10.2", "0.10.2", "0.8.2")
NEW_FORMAT = of("0.10.2")


def test_our_brokers_go_from_0_8_2_to_0_10_2(tmp_path: Path) -> None:
    """First the level rises with the protocol pinned to 0.8.2, then the protocol, then the message
    format. Old messages keep their format."""
    with mixed_cluster(tmp_path, SEATS) as cluster:
        numbers = change(
            cluster,
            ours(of("0.8.2")),
            ours(PINNED),
            ours(NEW_PROTOCOL),
            ours(NEW_FORMAT),
            group=tmp_path / "group",
        )
        assert {0, 1} == magics(cluster)
        check_times(cluster, numbers)


def test_our_brokers_go_from_0_10_2_to_0_11_0(tmp_path: Path) -> None:
    """By the same three rounds. A producer that is idempotent where it can be goes on."""
    with mixed_cluster(tmp_path, SEATS) as cluster:
        numbers = change(
            cluster,
            ours(NEW_FORMAT),
            ours(of("0.11.0", "0.10.2", "0.10.2")),
            ours(of("0.11.0", "0.11.0", "0.10.2")),
            ours(of("0.11.0")),
            group=tmp_path / "group",
        )
        assert {1, 2} == magics(cluster)
        assert numbers.failures() == []


def test_a_jvm_cluster_goes_from_0_8_2_2_to_0_10_2_2_by_way_of_ours(tmp_path: Path) -> None:
    """JVM 0.8.2.2, ours, JVM 0.10.2.2 pinned like ours, and JVM 0.10.2.2 with the new keys follow
    one another on the same directories."""
    with mixed_cluster(tmp_path, SEATS) as cluster:
        numbers = change(
            cluster,
            jvm(of("0.8.2", pom=POM)),
            ours(PINNED),
            jvm(PINNED),
            jvm(NEW_PROTOCOL),
            jvm(NEW_FORMAT),
            group=tmp_path / "group",
        )
        assert {0, 1} == magics(cluster)
        check_times(cluster, numbers)


def test_a_producer_follows_its_broker_down_and_up(tmp_path: Path) -> None:
    """A running producer that has learned Produce 2 sends Produce 0 to the broker when that returns
    as one of 0.8.2, and timestamps once it is one of 0.10.2 with its format."""
    with mixed_cluster(tmp_path, 1) as cluster:
        [seat] = cluster.seats
        seat.start_ours(PINNED)
        cluster.admin.create_topic(NUMBERED)
        cluster.admin.await_leaders(NUMBERED)
        with Numbers(cluster.bootstrap) as numbers:
            for release in (of("0.8.2"), PINNED, NEW_FORMAT):
                seat.stop()
                seat.start_ours(release)
                numbers.mark()
        check_times(cluster, numbers)


@pytest.mark.parametrize(
    ("level", "pin"), [("0.8.2", "0.8.2"), ("0.10.2", "0.10.2")], ids=["0.8.2", "0.10.2"]
)
def test_our_brokers_are_replaced_by_apache_kafka_3_9(tmp_path: Path, level: str, pin: str) -> None:
    """Kafka 3.9, the last release with ZooKeeper, replaces our brokers, pinned to our protocol and
    then with its own defaults. In that last round replicas differ in their bytes, since pinned
    brokers still fetch the others' new messages in the old format."""
    pinned = of("", pin, pin, POM_3_9)
    with mixed_cluster(tmp_path, SEATS) as cluster:
        unpinned = of("", pom=POM_3_9)
        change(cluster, ours(of(level)), jvm(pinned), jvm(unpinned), compares=False)
