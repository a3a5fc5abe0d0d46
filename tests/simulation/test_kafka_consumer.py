"""A KafkaConsumer and its brokers on simulated time: minutes pass in a moment, and what is found in
the background is found before the consumer looks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pytest

from kafka08.admin.client import AdminClient
from kafka08.consumer import KafkaConsumer
from kafka08.consumer.group.assignors import MemberSubscription, RangeAssignor
from kafka08.consumer.group.partitions import Start
from kafka08.consumer.group.poller import LASTING_S
from kafka08.consumer.group.position_searches import PositionSearches
from kafka08.errors import (
    CommitFailed,
    FetchFailed,
    KafkaError,
    LeaderNotAvailable,
    NoBrokersAvailable,
    NoOffsetForPartition,
    PollIntervalExceeded,
    RequestTimeout,
    StorageError,
    UnknownTopicOrPartition,
    WokenUp,
)
from kafka08.network.connection import Connection
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.profile import CLASSIC, SAFE
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest
from kafka08.protocol.describe_groups import DescribeGroupsRequest
from kafka08.protocol.leave_group import LeaveGroupRequest
from kafka08.protocol.metadata import MetadataResponse, TopicMetadata
from kafka08.simulation.cluster import BROKER_PORT, Hosts, SimBroker
from kafka08.simulation.network import Network, NetworkSettings
from kafka08.simulation.runtime import World
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.trace import Trace
from kafka08.simulation.zookeeper import ADDRESS, HOST, SimZooKeeper
from kafka08.structs import OffsetAndMetadata, TopicPartition
from kafka08.zk.model.server import Server

STEPS = 2_000_000
MESSAGES = 5
A, B = TopicPartition("t", 0), TopicPartition("t", 1)
BROKER = {
    "zookeeper.connect": ADDRESS,
    "zookeeper.session.timeout.ms": "4000",
    "api.level": "0.10.2",
    "offsets.topic.num.partitions": "1",
    "log.index.size.max.bytes": "4096",
    "log.cleaner.dedupe.buffer.size": "4194304",
}


class Simulated:
    """The brokers, and a client process in which a test runs. The topic `t` has two partitions on
    all of them, the first with MESSAGES messages."""

    def __init__(self, brokers: int = 1, profile: str = CLASSIC) -> None:
        self.scheduler = Scheduler(Random(1), Trace(), disorder=0.0)
        network = Network(self.scheduler, Random(1), NetworkSettings())
        self.zookeeper = SimZooKeeper(network, Server())
        self.hosts = Hosts("test", World(network, self.zookeeper, 0.001), lambda: (0, 0.0))
        self.brokers = [
            SimBroker(
                self.hosts, number, {**BROKER, "kafka08.profile": profile}, loses_writes=False
            )
            for number in range(1, brokers + 1)
        ]
        self.broker = self.brokers[0]
        self.bootstrap = ",".join(f"{broker.host}:{BROKER_PORT}" for broker in self.brokers)
        self.client = self.hosts.client("client")

    def run(self, test: Callable[[], object]) -> None:
        """Raises what `test` raises; no other task may end with an error."""
        failed: list[BaseException] = []

        def main() -> None:
            try:
                self._set_up()
                test()
            except BaseException as error:  # noqa: BLE001 - also pytest's; raised in its own thread
                failed.append(error)
            finally:
                self.scheduler.is_over = True

        self.client.spawn(main, name="test")
        assert self.scheduler.run(STEPS), "the test came to a standstill"
        if failed:
            raise failed[0]
        assert [] == self.hosts.uncaught

    def consumer(self, **keys: Any) -> KafkaConsumer:
        defaults = {
            "bootstrap_servers": self.bootstrap,
            "group_id": "g",
            "auto_offset_reset": "earliest",
            "session_timeout_ms": 6000,
            "heartbeat_interval_ms": 1000,
        }
        return KafkaConsumer(**{"runtime": self.client, **defaults, **keys})

    def cut_off(self, host: str, *others: str) -> None:
        """Cut a broker's host off from ZooKeeper, the other brokers and `others`."""
        network = self.zookeeper.network
        for other in {HOST, *others, *(broker.host for broker in self.brokers)} - {host}:
            network.cut(host, other)
            network.cut(other, host)

    def kill_broker(self, *, silently: bool = False) -> None:
        assert self.broker.process is not None
        self.hosts.kill(self.broker.process, silently=silently)

    def _set_up(self) -> None:
        for broker in self.brokers:
            broker.start()
        while not self._are_registered():
            self.client.sleep(0.1)
        with AdminClient(ADDRESS, runtime=self.client) as admin:
            admin.create_topic("t", 2, len(self.brokers))
            admin.await_leaders("t")
        config = KafkaProducerConfig(bootstrap_servers=self.bootstrap, acks="all", retries=100)
        with KafkaProducer(config, runtime=self.client) as producer:
            for _ in range(MESSAGES):
                producer.send(ProducerRecord("t", b"v", partition=0))

    def _are_registered(self) -> bool:
        ids = self.zookeeper.server.find("/brokers/ids")
        return ids is not None and len(ids.children) == len(self.brokers)


@pytest.fixture
def simulated() -> Iterator[Simulated]:
    simulated = Simulated()
    yield simulated
    simulated.hosts.discard()


@pytest.fixture
def three_brokers() -> Iterator[Simulated]:
    simulated = Simulated(3)
    yield simulated
    simulated.hosts.discard()


def read(consumer: KafkaConsumer) -> list[int]:
    """The offsets of MESSAGES messages."""
    offsets: list[int] = []
    while len(offsets) < MESSAGES:
        offsets += [message.offset for message in consumer.poll(1.0)]
    return offsets


def test_a_member_that_the_group_removed_commits_nothing(
    simulated: Simulated, caplog: pytest.LogCaptureFixture
) -> None:
    """A removed member commits neither by itself nor in on_revoked: its successor may have
    committed a later offset. The coordinator would store such a commit while the group has no
    members."""
    revoked: list[TopicPartition] = []

    def test() -> None:
        with simulated.consumer(auto_commit_interval_ms=3_600_000) as consumer:

            def on_revoked(partitions: list[TopicPartition]) -> None:
                revoked.extend(partitions)
                with pytest.raises(CommitFailed):
                    consumer.commit()

            consumer.subscribe(["t"], on_revoked=on_revoked)
            assert read(consumer) == [0, 1, 2, 3, 4]
            remove_member(consumer)
            simulated.client.sleep(2.0)
            assert read(consumer) == [0, 1, 2, 3, 4], "nothing was committed"

    simulated.run(test)
    assert revoked == [A, B]
    assert "Commit before a rebalance" not in caplog.text


def remove_member(consumer: KafkaConsumer) -> None:
    """As the end of its session does."""
    member_id = consumer._poller._member.generation.member_id
    request = LeaveGroupRequest("g", member_id)
    consumer._poller.cluster.ask_coordinator("g", lambda connection: connection.send(request))


def test_guarantee_8_an_iteration_ends_when_its_member_has_left(simulated: Simulated) -> None:
    """After a message that took longer than max.poll.interval.ms the next step raises why: others
    have the partitions, with the rest of the fetched set."""

    def test() -> None:
        keys = {"enable_auto_commit": False, "max_poll_interval_ms": 2000}
        with simulated.consumer(**keys) as consumer:
            consumer.subscribe(["t"])
            messages = iter(consumer)
            assert [next(messages).offset, next(messages).offset] == [0, 1]
            simulated.client.sleep(3.0)
            with pytest.raises(PollIntervalExceeded):
                next(messages)
            assert read(consumer) == [0, 1, 2, 3, 4]

    simulated.run(test)


@pytest.mark.parametrize("committed_before", [1, None])
def test_a_position_found_for_an_earlier_assignment_is_not_used(
    simulated: Simulated, committed_before: int | None
) -> None:
    """A consumer ignores the result and the error of a search that began before the partition was
    given up and assigned again: meanwhile its owner may have committed a later offset."""

    def test() -> None:
        keys = {"enable_auto_commit": False, "auto_offset_reset": "none"}
        with simulated.consumer(**keys) as consumer:
            if committed_before is not None:
                consumer.commit({A: committed_before})
            consumer.assign([A])
            assert consumer.poll(0.0) == []
            simulated.client.sleep(1.0)
            consumer.assign([B])
            consumer.commit({A: 3})
            consumer.assign([A])
            assert consumer.position(A) == 3

    simulated.run(test)


@pytest.mark.parametrize("commits", ["assign", "commit_async"])
def test_a_partition_that_is_assigned_again_starts_behind_its_last_commit(
    simulated: Simulated, commits: str
) -> None:
    """Also while that commit is on its way. The search for the committed offset overtook it, and
    the partition started from the commit before. Java sends both on one connection, in order."""

    def test() -> None:
        keys = {"enable_auto_commit": commits == "assign", "auto_commit_interval_ms": 3_600_000}
        with simulated.consumer(**keys) as consumer:
            consumer.assign([A, B])
            for offset in range(MESSAGES):
                consumer.seek(A, offset)
                if commits == "commit_async":
                    consumer.commit_async()
                consumer.assign([B])
                consumer.assign([A, B])
                assert consumer.position(A) == offset

    simulated.run(test)


def test_committed_has_the_commits_before(simulated: Simulated) -> None:
    """Also those that have not ended: as in Java, which sends both on one connection."""

    def test() -> None:
        with simulated.consumer() as consumer:
            for offset in range(MESSAGES):
                consumer.commit_async({A: offset})
                found = consumer.committed(A)[A]
                assert found is not None
                assert found.offset == offset

    simulated.run(test)


def test_a_leader_that_is_silent_holds_up_no_partition_of_others(three_brokers: Simulated) -> None:
    """The consumer finds the positions of other partitions meanwhile, and returns their messages.
    The partition without a response is found at its next leader; until then `stall_cause` has
    why."""
    simulated = three_brokers

    def test() -> None:
        with simulated.consumer(group_id="", request_timeout_ms=15_000) as consumer:
            leaders = {info.partition: info.leader for info in consumer.partitions_for("t")}
            assert leaders[0] != leaders[1]
            silent = simulated.brokers[leaders[1] - 1].process
            assert silent is not None
            consumer.assign([B, A])
            simulated.hosts.kill(silent, silently=True)
            began = simulated.client.monotonic()
            assert consumer.position(A) == 0
            assert read(consumer) == [0, 1, 2, 3, 4]
            assert simulated.client.monotonic() - began < 1.0
            with pytest.raises(RequestTimeout):
                consumer.position(B, timeout=5.0)
            assert consumer.position(B, timeout=60.0) == 0

    simulated.run(test)


def test_a_partition_without_a_leader_is_found_when_it_has_one(three_brokers: Simulated) -> None:
    """A search for a position asks for new metadata as long as a partition has no leader there."""
    simulated = three_brokers
    alone = TopicPartition("u", 0)

    def test() -> None:
        with AdminClient(ADDRESS, runtime=simulated.client) as admin:
            admin.create_topic("u", assignment={0: (1,)})
            admin.await_leaders("u")
        simulated.kill_broker()
        simulated.client.sleep(10.0)
        with simulated.consumer(group_id="") as consumer:
            consumer.assign([alone])
            consumer.poll(1.0)
            is_stalled_by(consumer, LeaderNotAvailable)
            simulated.broker.start()
            simulated.client.sleep(10.0)
            assert 0 == consumer.position(alone, timeout=2.0)

    simulated.run(test)


@pytest.mark.parametrize(("offset", "error"), [(-1, ValueError), ("3", TypeError)])
def test_a_commit_takes_offsets_alone(
    simulated: Simulated, offset: Any, error: type[Exception]
) -> None:
    """A commit of something else than an offset raises an error that names the partition."""
    consumer = simulated.consumer()
    with pytest.raises(error, match=re.escape(str(A))):
        consumer.commit({A: offset})


@pytest.mark.parametrize("has_joined", [False, True])
def test_close_without_a_broker_ends(simulated: Simulated, has_joined: bool) -> None:
    """`close` returns at once if there is no group to leave; it waited 10 s for the search for a
    coordinator. A member tries to leave, within its timeout."""

    def test() -> None:
        consumer = simulated.consumer(enable_auto_commit=False)
        consumer.subscribe(["t"])
        if has_joined:
            read(consumer)
        simulated.kill_broker()
        consumer.poll(2.0)
        began = simulated.client.monotonic()
        consumer.close(timeout=5.0)
        assert simulated.client.monotonic() - began < (8.0 if has_joined else 1.0)
        simulated.client.sleep(1.0)
        assert simulated.hosts.leftovers(simulated.client.process) == ["task test"]

    simulated.run(test)


def subscribe(consumer: KafkaConsumer) -> None:
    consumer.subscribe(["t"])


def assign(consumer: KafkaConsumer) -> None:
    consumer.assign([A])


@pytest.mark.parametrize(
    ("begin", "reads_first", "silently", "expected"),
    [
        (subscribe, False, False, NoBrokersAvailable),
        (subscribe, False, True, NoBrokersAvailable),
        (assign, False, False, NoBrokersAvailable),
        (assign, False, True, NoBrokersAvailable),
        (assign, True, False, FetchFailed),
    ],
    ids=[
        "no coordinator",
        "no way to a coordinator",
        "no position",
        "no way to a position",
        "no leader",
    ],
)
def test_guarantee_6_a_failure_that_lasts_30_seconds_is_raised_by_each_poll(
    simulated: Simulated,
    begin: Callable[[KafkaConsumer], None],
    reads_first: bool,
    silently: bool,
    expected: type[KafkaError],
) -> None:
    """After 30 s each poll raises the failure until the broker is back; before that a poll returns
    nothing, and `stall_cause` has it. This holds for connections that are not refused too: an
    attempt to open one takes 10 s, and a search tries more than once."""

    def test() -> None:
        with simulated.consumer() as consumer:
            begin(consumer)
            if reads_first:
                read(consumer)
            is_stalled_by(consumer, None)
            simulated.kill_broker(silently=silently)
            began = simulated.client.monotonic()
            with pytest.raises(expected):
                poll_in_vain(consumer)
            assert LASTING_S <= simulated.client.monotonic() - began <= LASTING_S + 2
            is_stalled_by(consumer, expected)
            with pytest.raises(expected):
                consumer.poll(1.0)
            simulated.broker.start()
            if reads_first:
                consumer.seek(A, 0)
            found = [message for _ in range(60) for message in poll_patiently(consumer)]
            assert found[0].offset == 0
            is_stalled_by(consumer, None)

    simulated.run(test)


def poll_for(consumer: KafkaConsumer, seconds: float) -> None:
    for _ in range(int(seconds)):
        consumer.poll(1.0)


def is_stalled_by(consumer: KafkaConsumer, expected: type[KafkaError] | None) -> None:
    cause = consumer.stall_cause
    assert (None if cause is None else type(cause)) is expected


def test_a_failure_ends_with_the_assignment_that_it_concerns(simulated: Simulated) -> None:
    """A consumer that was given another assignment raises no error about a position that it no
    longer needs."""

    def test() -> None:
        with simulated.consumer() as consumer:
            consumer.assign([A])
            read(consumer)
            consumer.assign([A, TopicPartition("t", 2)])
            consumer.poll(1.0)
            is_stalled_by(consumer, UnknownTopicOrPartition)
            consumer.assign([A])
            for _ in range(40):
                consumer.poll(1.0)
            is_stalled_by(consumer, None)

    simulated.run(test)


def test_a_failure_lasts_from_the_first_of_its_own_partition(simulated: Simulated) -> None:
    """A partition that is not found raises no error because another one, which is no longer
    assigned, was not found before it."""

    def test() -> None:
        with simulated.consumer() as consumer:
            for number in (2, 3):
                consumer.assign([A, TopicPartition("t", number)])
                for _ in range(2 * int(LASTING_S) // 3):
                    for message in consumer.poll(1.0):
                        assert message.partition == A.partition
            with pytest.raises(UnknownTopicOrPartition, match=r"\[t,3\]"):
                poll_for(consumer, LASTING_S)

    simulated.run(test)


def test_each_outage_of_a_search_is_logged_once(
    simulated: Simulated, caplog: pytest.LogCaptureFixture
) -> None:
    """A partition that is not found for long is one warning; after it was found, or is not looked
    for any more, the next failure is another."""
    unknown = TopicPartition("t", 2)

    def test() -> None:
        with simulated.consumer() as consumer:
            for _ in range(2):
                consumer.assign([A, unknown])
                poll_for(consumer, 5.0)
                consumer.assign([A])
                poll_for(consumer, 5.0)

    simulated.run(test)
    assert 2 == caplog.text.count("Cannot find the position yet")


def test_a_commit_without_an_end_is_told(simulated: Simulated) -> None:
    """A partition whose position waits for a commit that does not end raises an error in the end,
    although nothing asks for the position."""

    def test() -> None:
        with simulated.consumer(enable_auto_commit=False) as consumer:
            consumer.assign([A])
            read(consumer)
            simulated.kill_broker(silently=True)
            with pytest.raises(KafkaError):
                consumer.commit(timeout=1.0)
            consumer.commit_async()
            consumer.assign([])
            consumer.assign([A])
            with pytest.raises(RequestTimeout, match=r"the position of \[t,0\] waits for a commit"):
                poll_for(consumer, 2 * LASTING_S)

    simulated.run(test)


def test_position_waits_for_no_search_that_has_not_begun(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that ends between the two looks of `position` at it leaves the search to the next
    round: it is not waited for without having begun."""
    searchable = PositionSearches._searchable

    def look(searches: PositionSearches) -> dict[TopicPartition, Start]:
        found = searchable(searches)
        while searches._committing():
            simulated.client.sleep(0.01)
        return found

    def test() -> None:
        with simulated.consumer(enable_auto_commit=False) as consumer:
            consumer.assign([A])
            read(consumer)
            consumer.commit_async()
            consumer.assign([])
            consumer.assign([A])
            monkeypatch.setattr(PositionSearches, "_searchable", look)
            assert MESSAGES == consumer.position(A, timeout=5.0)

    simulated.run(test)


def test_position_raises_for_its_own_partition_alone(simulated: Simulated) -> None:
    """With auto.offset.reset=none the position of a partition that was committed is found beside
    one that was not: a caller that resets on NoOffsetForPartition would lose its place."""

    def test() -> None:
        keys = {"enable_auto_commit": False, "auto_offset_reset": "none"}
        with simulated.consumer(**keys) as consumer:
            consumer.commit({A: OffsetAndMetadata(2)})
            consumer.assign([B, A])
            assert 2 == consumer.position(A)
            with pytest.raises(NoOffsetForPartition, match=r"\[t,1\]"):
                consumer.position(B)
            with pytest.raises(NoOffsetForPartition, match=r"\[t,1\]"):
                poll_for(consumer, 5.0)

    simulated.run(test)


def test_each_seek_to_the_end_is_looked_up(simulated: Simulated) -> None:
    """The end that an earlier seek_to_end found, and that nobody has taken, does not serve the next
    one: messages may have come between them."""

    def test() -> None:
        with simulated.consumer(enable_auto_commit=False) as consumer:
            consumer.assign([A])
            consumer.seek_to_end(A)
            consumer.poll(0.0)
            simulated.client.sleep(1.0)
            keys = KafkaProducerConfig(bootstrap_servers=simulated.bootstrap)
            with KafkaProducer(keys, runtime=simulated.client) as producer:
                producer.send(ProducerRecord("t", b"later", partition=0)).result()
            consumer.seek_to_end(A)
            assert MESSAGES + 1 == consumer.position(A)

    simulated.run(test)


def test_a_broker_that_does_not_know_the_topic_yet_moves_nothing(simulated: Simulated) -> None:
    """A member keeps its partitions when a broker that has just started does not know the topic,
    and asks again after a second."""
    assigned: list[list[TopicPartition]] = []

    def test() -> None:
        with simulated.consumer() as consumer:
            consumer.subscribe(["t"], on_assigned=assigned.append)
            read(consumer)
            cluster = consumer._poller.cluster
            knows_nothing = MetadataResponse(
                [], [TopicMetadata(UnknownTopicOrPartition.code, "t", [])]
            )
            cluster._metadata = cluster.metadata.updated(knows_nothing)
            for _ in range(5):
                consumer.poll(1.0)
            assert cluster.metadata.knows("t"), "it has asked again"

    simulated.run(test)
    assert assigned == [[A, B]]


def test_a_seek_during_the_search_for_a_position_is_enough(simulated: Simulated) -> None:
    """With auto.offset.reset=none, a consumer that seeks before the search has found that nothing
    is committed reads on. The search's error was raised all the same."""

    def test() -> None:
        keys = {"enable_auto_commit": False, "auto_offset_reset": "none"}
        with simulated.consumer(**keys) as consumer:
            consumer.assign([A])
            assert consumer.poll(0.0) == []
            consumer.seek(A, 1)
            simulated.client.sleep(1.0)
            assert consumer.poll(1.0)[0].offset == 1
            consumer.seek_to_beginning(A)
            assert consumer.poll(1.0)[0].offset == 0

    simulated.run(test)


def test_a_member_that_unsubscribes_while_it_looks_for_its_coordinator_does_not_join(
    simulated: Simulated,
) -> None:
    """Its JoinGroup was still sent: the group had a member that nobody knew, and gave it
    partitions until its session ended."""

    def test() -> None:
        with simulated.consumer() as other, simulated.consumer() as consumer:
            other.commit({A: 0})
            consumer.subscribe(["t"])
            consumer.poll(0.0)
            await_search(simulated, consumer)
            consumer.unsubscribe()
            simulated.client.sleep(1.0)
            assert members(other) == []
            consumer.subscribe(["t"])
            assert read(consumer) == [0, 1, 2, 3, 4]

    simulated.run(test)


def test_guarantee_7_close_does_not_join_again(simulated: Simulated) -> None:
    """A member that is closed while it looks for its coordinator, in order to join again, leaves
    the group at once. It joined first, and so waited for a member that does not poll."""

    def test() -> None:
        with simulated.consumer() as slow:
            slow.subscribe(["t"])
            read(slow)
            consumer = simulated.consumer(enable_auto_commit=False)
            consumer.subscribe(["t"])
            while not consumer.assignment():
                consumer.poll(0.1)
                slow.poll(0.1)
            assert len(members(slow)) == 2
            consumer.subscribe(["t", "u"])
            consumer._poller.cluster.forget_coordinator("g")
            consumer.poll(0.0)
            await_search(simulated, consumer)
            began = simulated.client.monotonic()
            consumer.close()
            assert simulated.client.monotonic() - began < 1.0
            assert len(members(slow)) == 1

    simulated.run(test)


def await_search(simulated: Simulated, consumer: KafkaConsumer) -> None:
    """Until the consumer asks a broker for its coordinator."""
    lent = consumer._poller.cluster._pool._lent
    for _ in range(1000):
        asked = [sent.request for one in lent.values() for sent in one._session.in_flight]
        if ConsumerMetadataRequest in asked:
            return
        simulated.client.sleep(0.0001)
    raise AssertionError("it looks for no coordinator")


def members(consumer: KafkaConsumer) -> list[str]:
    """The ids of the group's members."""
    response: Any = consumer._poller.cluster.ask_coordinator(
        "g", lambda connection: connection.send(DescribeGroupsRequest(["g"]))
    )
    return [member.member_id for member in response.groups[0].members]


class SlowAssignor(RangeAssignor):
    """Takes half a second to describe a subscription."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep

    def subscription(self, topics: Sequence[str]) -> MemberSubscription:
        self._sleep(0.5)
        return super().subscription(topics)


def test_a_disk_that_fails_halts_a_broker_and_breaks_no_rule(simulated: Simulated) -> None:
    """Also where its error reaches the root of a callback, not of a task (seed 696705661)."""

    def test() -> None:
        process = simulated.broker.process
        assert process is not None
        process.on_uncaught("the event loop", StorageError("cannot sync /logs/t-3"))
        assert process.is_dead

    simulated.run(test)


def test_a_subscription_that_changes_while_the_member_joins(simulated: Simulated) -> None:
    """The member joins with the subscription of now, also if its assignor or a broker was slow to
    prepare the JoinGroup with the one before. It kept that one until a topic changed."""

    def test() -> None:
        with AdminClient(ADDRESS, runtime=simulated.client) as admin:
            admin.create_topic("u", assignment={0: (1,)})
            admin.await_leaders("u")
        with simulated.consumer(assignors=[SlowAssignor(simulated.client.sleep)]) as consumer:
            consumer.commit({A: 0})
            consumer.subscribe(["t"])
            consumer.poll(0.2)
            consumer.subscribe(["u"])
            for _ in range(20):
                consumer.poll(0.5)
            assert consumer.assignment() == {TopicPartition("u", 0)}

    simulated.run(test)


@pytest.mark.parametrize("seed", range(8))
def test_a_coordinator_that_vanishes_costs_no_rebalance(
    three_brokers: Simulated, seed: int
) -> None:
    """A member keeps its partitions when the coordinator's machine is gone without a word: the
    member asks another broker for the next coordinator. It asked the same one again in 12 of 30
    runs, waited for its timeout once more, and had lost its session at the next one."""
    revoked: list[TopicPartition] = []

    def test() -> None:
        three_brokers.client.random.seed(seed)
        keys = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 3000}
        with three_brokers.consumer(enable_auto_commit=False, **keys) as consumer:
            consumer.subscribe(["t"], on_revoked=revoked.extend)
            while not consumer.assignment():
                consumer.poll(0.5)
            vanishing = consumer._poller.cluster.coordinator("g").host
            for broker in three_brokers.brokers:
                if broker.host == vanishing:
                    assert broker.process is not None
                    three_brokers.hosts.kill(broker.process, silently=True)
            for _ in range(60):
                poll_patiently(consumer)
            assert consumer.assignment() == {A, B}

    three_brokers.run(test)
    assert revoked == []


def test_a_commit_reaches_the_coordinator_that_was_elected(three_brokers: Simulated) -> None:
    """A coordinator that only clients reach does not know that it was replaced. It stores a commit,
    and no replica has it in time (7): the consumer looks for the coordinator again. It committed
    there again and again, and nothing counted."""

    def test() -> None:
        with three_brokers.consumer() as consumer:
            consumer.commit({A: 1})
            former = consumer._poller.cluster.coordinator("g").host
            three_brokers.cut_off(former)
            three_brokers.client.sleep(10.0)
            consumer.commit({A: 2})
            assert consumer._poller.cluster.coordinator("g").host != former
            committed = consumer.committed(A)[A]
            assert committed is not None
            assert committed.offset == 2

    three_brokers.run(test)


def test_a_member_leaves_a_coordinator_that_is_cut_off() -> None:
    """Under the safe profile. It stayed, with all partitions, while the next coordinator gave them
    to a member that reached only that one: it commits nothing, so it noticed nothing."""
    simulated = Simulated(3, SAFE)
    other = simulated.hosts.client("other")
    shares: list[set[TopicPartition]] = [set(), set()]
    is_ending = False

    def follow(number: int, consumer: KafkaConsumer) -> None:
        consumer.poll(0.5)
        shares[number] = set(consumer.assignment())

    def second() -> None:
        with simulated.consumer(enable_auto_commit=False, runtime=other) as consumer:
            consumer.subscribe(["t"])
            while not is_ending:
                follow(1, consumer)

    def test() -> None:
        nonlocal is_ending
        with simulated.consumer(enable_auto_commit=False) as consumer:
            consumer.subscribe(["t"])
            while not consumer.assignment():
                consumer.poll(0.5)
            simulated.cut_off(consumer._poller.cluster.coordinator("g").host, other.host_name())
            other.spawn(second, name="second")
            began = simulated.client.monotonic()
            while not (len(shares[0]) == len(shares[1]) == 1 and shares[0] != shares[1]):
                follow(0, consumer)
                assert simulated.client.monotonic() - began < 60.0, f"they have {shares}"
            is_ending = True

    try:
        simulated.run(test)
    finally:
        simulated.hosts.discard()


def test_a_coordinator_that_vanishes_during_a_rebalance(three_brokers: Simulated) -> None:
    """A member whose JoinGroup waits for others notices that another broker is the coordinator now.
    It waited for the response of the one that was gone, for max.poll.interval.ms (5 minutes)."""

    def test() -> None:
        with three_brokers.consumer() as slow, three_brokers.consumer() as joining:
            slow.subscribe(["t"])
            while not slow.assignment():
                slow.poll(0.5)
            joining.subscribe(["t"])
            joining.poll(2.0)
            assert not joining.assignment()
            vanishing = joining._poller.cluster.coordinator("g").host
            for broker in three_brokers.brokers:
                if broker.host == vanishing:
                    assert broker.process is not None
                    three_brokers.hosts.kill(broker.process, silently=True)
            began = three_brokers.client.monotonic()
            while not (len(slow.assignment()) == len(joining.assignment()) == 1):
                poll_patiently(slow)
                poll_patiently(joining)
                assert three_brokers.client.monotonic() - began < 60.0

    three_brokers.run(test)


def test_guarantee_1_close_commits_no_less_than_assign(simulated: Simulated) -> None:
    """`assign` commits the messages that were returned, and so finishes them. `close` committed the
    offset before those of the last poll again, also of a partition that stayed."""

    def test() -> None:
        consumer = simulated.consumer()
        consumer.assign([A])
        assert read(consumer) == [0, 1, 2, 3, 4]
        consumer.assign([A, B])
        simulated.client.sleep(1.0)
        committed = [consumer.committed(A)[A]]
        consumer.close()
        with simulated.consumer() as other:
            committed.append(other.committed(A)[A])
        assert [one and one.offset for one in committed] == [MESSAGES, MESSAGES]

    simulated.run(test)


def poll_in_vain(consumer: KafkaConsumer) -> None:
    for _ in range(60):
        assert consumer.poll(1.0) == []


def poll_patiently(consumer: KafkaConsumer) -> list[Any]:
    """The messages of a poll; none while it fails."""
    try:
        return consumer.poll(1.0)
    except KafkaError:
        return []


def test_a_wakeup_before_a_call_raises_in_it_before_it_asks_a_broker(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the request would be done before the call could wait for it. The next call
    works; a commit that raised WokenUp committed nothing."""

    def test() -> None:
        with simulated.consumer() as consumer:
            calls: list[Callable[[], object]] = [
                consumer.list_topics,
                lambda: consumer.end_offsets([A]),
                lambda: consumer.commit({A: 3}),
                lambda: consumer.position(A),
            ]
            consumer.assign([A])
            monkeypatch.setattr(simulated.client, "spawn", lambda run, *, name: run())
            for call in calls:
                consumer.wakeup()
                with pytest.raises(WokenUp):
                    call()
            assert consumer.committed(A) == {A: None}
            assert consumer.end_offsets([A]) == {A: MESSAGES}

    simulated.run(test)


def vanish(simulated: Simulated) -> None:
    """All brokers' machines are gone without a word."""
    for broker in simulated.brokers:
        assert broker.process is not None
        simulated.hosts.kill(broker.process, silently=True)


def test_a_commit_ends_while_no_broker_responds(three_brokers: Simulated) -> None:
    """A commit_async fails after request.timeout.ms and one round of the brokers: the automatic
    commits and all others wait behind it. It looked for a coordinator a hundred times, each of them
    at all three brokers: 50 minutes."""
    simulated = three_brokers
    ended: list[KafkaError | None] = []

    def test() -> None:
        consumer = simulated.consumer(request_timeout_ms=15_000, fetch_max_wait_ms=500)
        consumer.assign([A])
        read(consumer)
        consumer._poller.cluster.forget_coordinator("g")
        vanish(simulated)
        consumer.commit_async(callback=lambda _, error: ended.append(error))
        began = simulated.client.monotonic()
        while not ended:
            assert simulated.client.monotonic() - began < 15.0 + 3 * 15.0
            poll_patiently(consumer)
        consumer.close(timeout=1.0)

    simulated.run(test)
    assert [NoBrokersAvailable] == [type(error) for error in ended]


def test_a_call_that_timed_out_leaves_no_search_behind(three_brokers: Simulated) -> None:
    """`committed` that raised RequestTimeout asks for the coordinator once more at most. Its task
    went on for days, and so did that of each further call."""
    simulated = three_brokers

    def test() -> None:
        with simulated.consumer(enable_auto_commit=False) as consumer:
            consumer.list_topics()
            vanish(simulated)
            with pytest.raises(RequestTimeout):
                consumer.committed(A, timeout=5.0)
            simulated.client.sleep(60.0)
            left = simulated.hosts.leftovers(simulated.client.process)
            assert "task kafka08-query" not in left

    simulated.run(test)


def leader(consumer: KafkaConsumer) -> int:
    return consumer.partitions_for("t")[A.partition].leader


def coordinator(consumer: KafkaConsumer) -> int:
    return consumer._poller.cluster.coordinator("g").id


@pytest.mark.parametrize(
    ("find", "query"),
    [
        (leader, lambda consumer: consumer.end_offsets([A])[A]),
        (coordinator, lambda consumer: consumer.committed(A)[A].offset),
    ],
    ids=["leader", "coordinator"],
)
def test_a_query_outlasts_a_failover(
    monkeypatch: pytest.MonkeyPatch,
    find: Callable[[KafkaConsumer], int],
    query: Callable[[KafkaConsumer], int],
) -> None:
    """A query is retried until its timeout: another broker leads after the session timeout of the
    one that has died."""
    monkeypatch.setitem(BROKER, "zookeeper.session.timeout.ms", "8000")
    simulated = Simulated(3)

    def test() -> None:
        with simulated.consumer(enable_auto_commit=False) as consumer:
            consumer.commit({A: MESSAGES})
            process = simulated.brokers[find(consumer) - 1].process
            assert process is not None
            simulated.hosts.kill(process, silently=False)
            assert MESSAGES == query(consumer)

    try:
        simulated.run(test)
    finally:
        simulated.hosts.discard()


def test_a_query_for_an_unknown_partition_fails_soon(simulated: Simulated) -> None:
    """Other than a partition whose leader has died it is not waited for."""

    def test() -> None:
        with simulated.consumer() as consumer:
            began = simulated.client.monotonic()
            with pytest.raises(UnknownTopicOrPartition):
                consumer.end_offsets([A, TopicPartition("t", 2)])
            assert simulated.client.monotonic() - began < 2.0

    simulated.run(test)


def test_a_failed_commit_of_assign_is_logged(
    simulated: Simulated, caplog: pytest.LogCaptureFixture
) -> None:
    """As each other automatic commit is."""

    def test() -> None:
        consumer = simulated.consumer(auto_commit_interval_ms=3_600_000)
        consumer.assign([A])
        read(consumer)
        consumer.poll(0.0)
        vanish(simulated)
        consumer.assign([B])
        for _ in range(90):
            poll_patiently(consumer)
        consumer.close(timeout=1.0)

    simulated.run(test)
    assert "[group g] Automatic commit: " in caplog.text


def test_close_reports_commits_without_a_response(
    three_brokers: Simulated, caplog: pytest.LogCaptureFixture
) -> None:
    """`close` calls the callbacks of commits that its timeout has ended, and logs that its own
    commit failed. They ended without a word."""
    simulated = three_brokers
    ended: list[tuple[TopicPartition, KafkaError | None]] = []

    def test() -> None:
        consumer = simulated.consumer(auto_commit_interval_ms=3_600_000)
        consumer.assign([A])
        read(consumer)
        consumer.poll(0.0)
        vanish(simulated)
        for tp in (A, B):
            consumer.commit_async(
                {tp: 1}, lambda offsets, error: ended.append((min(offsets), error))
            )
        began = simulated.client.monotonic()
        consumer.close(timeout=3.0)
        assert simulated.client.monotonic() - began < 6.0

    simulated.run(test)
    assert [A, B] == [tp for tp, _ in ended]
    assert None not in [error for _, error in ended]
    assert "Commit of 1 partitions failed: " in caplog.text


def test_close_ends_the_pause_of_a_search(simulated: Simulated) -> None:
    """A search for positions that failed does not wait for retry.backoff.ms after `close`."""

    def test() -> None:
        keys = {"retry_backoff_ms": 20_000, "enable_auto_commit": False, "group_id": ""}
        consumer = simulated.consumer(**keys)
        simulated.kill_broker()
        consumer.assign([A])
        consumer.poll(1.0)
        consumer.close()
        simulated.client.sleep(1.0)
        assert simulated.hosts.leftovers(simulated.client.process) == ["task test"]

    simulated.run(test)


def test_on_revoked_is_called_although_a_commit_callback_raises(simulated: Simulated) -> None:
    """`poll` raises the error of a callback of commit_async, but the partitions that the rebalance
    has taken away are given up as always. on_revoked was not called for them."""
    revoked: list[TopicPartition] = []

    def refuse(_: object, error: KafkaError | None) -> None:
        raise ZeroDivisionError

    def test() -> None:
        with simulated.consumer(auto_commit_interval_ms=3_600_000) as consumer:
            consumer.subscribe(["t"], on_revoked=revoked.extend)
            read(consumer)
            with simulated.consumer() as other:
                other.subscribe(["t"])
                other.poll(0.0)
                simulated.client.sleep(2.0)
                consumer.commit_async(callback=refuse)
                with pytest.raises(ZeroDivisionError):
                    consumer.poll(1.0)
                assert [A, B] == revoked

    simulated.run(test)


def test_a_commit_times_out_whatever_its_backoff(simulated: Simulated) -> None:
    """`commit` waits for its timeout, not for retry.backoff.ms in addition."""

    def test() -> None:
        consumer = simulated.consumer(retry_backoff_ms=20_000, enable_auto_commit=False)
        consumer.assign([A])
        read(consumer)
        vanish(simulated)
        began = simulated.client.monotonic()
        with pytest.raises(RequestTimeout):
            consumer.commit(timeout=2.0)
        assert simulated.client.monotonic() - began < 3.0
        consumer.close(timeout=1.0)

    simulated.run(test)


def test_close_does_not_abort_the_leave_of_unsubscribe(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A LeaveGroup that `unsubscribe` has begun is sent, also if `close` follows at once: else the
    group waits for the session of the member to end."""
    write = Connection.write

    def write_slowly(connection: Connection, request: Any, **keys: Any) -> None:
        if isinstance(request, LeaveGroupRequest):
            simulated.client.sleep(0.1)
        write(connection, request, **keys)

    def test() -> None:
        with simulated.consumer() as other:
            other.subscribe(["t"])
            read(other)
            consumer = simulated.consumer(enable_auto_commit=False)
            consumer.subscribe(["t"])
            while not consumer.assignment():
                consumer.poll(0.1)
                other.poll(0.1)
            monkeypatch.setattr(Connection, "write", write_slowly)
            consumer.unsubscribe()
            simulated.client.sleep(0.05)
            consumer.close()
            assert len(members(other)) == 1

    simulated.run(test)
