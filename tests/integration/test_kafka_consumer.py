"""Guarantees 1 to 8 of docs/kafka-consumer.md, on brokers of ours at each level that has groups.
For reads without a group see test_kafka_consumer_reads.py."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.metadata import ClusterMetadata
from kafka08.consumer import KafkaConsumer, MemberAssignment, MemberSubscription
from kafka08.consumer.group.assignors import RangeAssignor
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import (
    CommitFailed,
    ConfigError,
    ConsumerRebalanceFailed,
    InvalidSessionTimeout,
    NoOffsetForPartition,
    OffsetOutOfRange,
    PollIntervalExceeded,
    WokenUp,
)
from kafka08.groups import GroupReader
from kafka08.observe.coordinated import CoordinatedMember
from kafka08.protocol.leave_group import LeaveGroupRequest
from kafka08.structs import OffsetAndMetadata, TopicPartition
from tests.integration.polling_cluster import (
    Message,
    consumer_of,
    fill,
    numbers,
    partitions_of,
    read,
)
from tests.waiting import TIMEOUT_S, until


def members_of(reader: GroupReader, group: str) -> tuple[CoordinatedMember, ...]:
    facts = reader.coordinated_facts(group)
    return () if facts is None else facts.group.members


def test_guarantee_1_current_messages_are_not_committed(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """After an exception in the program, the next run gets the messages of the last poll again, and
    none before them."""
    fill(cluster, topic, 40)
    group = f"g-{topic}"
    with suppress(ZeroDivisionError), consumer_of(cluster, group, max_poll_records=5) as consumer:
        consumer.subscribe([topic])
        done = read(consumer, 20)
        in_hand = read(consumer, 1)
        raise ZeroDivisionError
    with consumer_of(cluster, group) as consumer:
        consumer.subscribe([topic])
        assert numbers(read(consumer, 20)) == sorted(set(range(40)) - set(numbers(done)))
        assert in_hand


def test_guarantee_1_a_block_that_ends_well_has_finished(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """The next run starts after the messages of a `with` block that ended without an exception."""
    fill(cluster, topic, 40)
    group = f"g-{topic}"
    with consumer_of(cluster, group, max_poll_records=5) as consumer:
        consumer.subscribe([topic])
        done = read(consumer, 20)
    with consumer_of(cluster, group) as consumer:
        consumer.subscribe([topic])
        assert numbers(done + read(consumer, 20)) == list(range(40))


def test_guarantee_1_an_iteration_commits_only_in_front_of_its_message(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """However short auto.commit.interval.ms is, the current message is not committed."""
    fill(cluster, topic, 40)
    tp, group = TopicPartition(topic, 0), f"g-{topic}"
    with consumer_of(cluster, group, auto_commit_interval_ms=1) as consumer:
        consumer.assign([tp])
        for message in consumer:
            time.sleep(0.02)
            if message.offset == 5:
                break
        committed = consumer.committed(tp)[tp]
        assert committed is not None
        assert committed.offset <= 5


def test_guarantee_1_an_iteration_that_fails_after_a_commit(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """The message at which the program failed is delivered again, though it had committed the one
    before it."""
    fill(cluster, topic, 40)
    tp, group = TopicPartition(topic, 0), f"g-{topic}"
    with suppress(ZeroDivisionError), consumer_of(cluster, group) as consumer:
        consumer.assign([tp])
        for message in consumer:
            if message.offset == 3:
                raise ZeroDivisionError
            consumer.commit()
    with consumer_of(cluster, group) as consumer:
        consumer.assign([tp])
        assert next(iter(consumer)).offset == 3


def test_guarantee_1_close_does_not_commit_less_than_the_program(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """Offsets that it has committed by itself finish the messages before them."""
    fill(cluster, topic, 40)
    tp, group = TopicPartition(topic, 0), f"g-{topic}"
    with suppress(ZeroDivisionError), consumer_of(cluster, group) as consumer:
        consumer.assign([tp])
        assert len(consumer.poll(20.0)) == 10
        consumer.commit({tp: 6})
        raise ZeroDivisionError
    with consumer_of(cluster, group) as consumer:
        assert consumer.committed(tp)[tp] == OffsetAndMetadata(6)


def test_guarantee_1_dropped_partitions_are_committed(cluster: EmbeddedCluster, topic: str) -> None:
    """`assign` commits the positions of partitions that it drops, since no later rebalance or
    interval does."""
    fill(cluster, topic, 40)
    first, second, *_ = partitions_of(topic)
    keys: dict[str, Any] = {"auto_commit_interval_ms": 600_000}
    with consumer_of(cluster, f"g-{topic}", **keys) as consumer:
        consumer.assign([first])
        assert len(read(consumer, 10)) == 10
        consumer.assign([second])
        until(lambda: consumer.committed(first)[first], "the commit")
        committed = consumer.committed(first)[first]
    assert committed is not None
    assert committed.offset == 10


def test_guarantee_1_kill_9_loses_nothing(cluster: EmbeddedCluster, topic: str) -> None:
    """A member prints messages and is killed repeatedly: every message is printed."""
    fill(cluster, topic, 500)
    program = (
        "import sys, time\n"
        "from kafka08.consumer import KafkaConsumer\n"
        f"consumer = KafkaConsumer(bootstrap_servers={cluster.bootstrap!r}, group_id='k-{topic}',"
        "auto_offset_reset='earliest', session_timeout_ms=1000, heartbeat_interval_ms=100,"
        "auto_commit_interval_ms=20, max_poll_records=20)\n"
        f"consumer.subscribe(['{topic}'])\n"
        "for message in consumer:\n"
        "    sys.stdout.write(message.value.decode() + '\\n'); sys.stdout.flush()\n"
        "    time.sleep(0.0005)\n"
    )
    printed: set[int] = set()
    lives = 0
    while len(printed) < 500:
        lives += 1
        assert lives < 15, f"{len(printed)} of 500 were printed"
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as member:
            assert member.stdout is not None
            # Killed in any case: a member that has nothing left to print would be waited for.
            killing = threading.Timer(20, member.kill)
            killing.start()
            for _ in range(120):
                line = member.stdout.readline()
                if not line.endswith(b"\n"):
                    break  # it was killed
                printed.add(int(line))
                if len(printed) == 500:
                    break
            member.kill()
            killing.cancel()
            printed.update(map(int, member.stdout.read().split(b"\n")[:-1]))
    assert printed == set(range(500))


def test_guarantee_2_commits_in_on_revoked_count(cluster: EmbeddedCluster, topic: str) -> None:
    """When partitions move between members, no message is repeated or missing."""
    fill(cluster, topic, 200)
    group = f"g-{topic}"
    order: list[str] = []
    with consumer_of(cluster, group, enable_auto_commit=False, max_poll_records=10) as first:

        def revoked(partitions: list[TopicPartition]) -> None:
            order.append("first revoked")
            assert first.assignment() == set(partitions)
            first.commit()

        first.subscribe([topic], on_revoked=revoked, on_assigned=lambda _: order.append("first"))
        found = read(first, 50)
        with consumer_of(cluster, group, enable_auto_commit=False) as second:
            second.subscribe([topic], on_assigned=lambda _: order.append("second"))

            def both_have_some() -> bool:
                found.extend(first.poll(0.05) + second.poll(0.05))
                return len(second.assignment()) == 2

            def all_is_read() -> bool:
                return both_have_some() and len(found) >= 200

            until(both_have_some, "both have two partitions")
            until(all_is_read, "all is read")
    assert order[0] == "first"
    assert order.index("first revoked") < order.index("second")
    assert numbers(found) == list(range(200))


def test_guarantee_3_a_fenced_member_cannot_commit(cluster: EmbeddedCluster, topic: str) -> None:
    """It exceeded max.poll.interval.ms; another member owns its partitions and has committed."""
    fill(cluster, topic, 40)
    group = f"g-{topic}"
    keys: dict[str, Any] = {"enable_auto_commit": False, "max_poll_interval_ms": 700}
    with consumer_of(cluster, group, **keys) as first:
        first.subscribe([topic])
        assert len(read(first, 10)) >= 10
        with consumer_of(cluster, group, enable_auto_commit=False) as second:
            second.subscribe([topic])
            assert len(read(second, 40)) == 40
            second.commit()
            with pytest.raises(CommitFailed):
                first.commit()
            committed = second.committed()
            assert {one and one.offset for one in committed.values()} == {10}


def test_guarantee_3_a_member_learns_from_its_commit_that_it_is_fenced(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """It joins again at once, without waiting for its next heartbeat."""
    fill(cluster, topic, 40)
    group = f"g-{topic}"
    assigned: list[int] = []
    keys: dict[str, Any] = {"session_timeout_ms": 30_000, "heartbeat_interval_ms": 25_000}
    with consumer_of(cluster, group, enable_auto_commit=False, **keys) as consumer:
        consumer.subscribe([topic], on_assigned=lambda found: assigned.append(len(found)))
        read(consumer, 40)
        with GroupReader(bootstrap=cluster.bootstrap) as reader:
            [member] = members_of(reader, group)
        client = ClusterClient(parse_bootstrap(cluster.bootstrap))
        leave = LeaveGroupRequest(group, member.member_id)
        client.ask_coordinator(group, lambda connection: connection.send(leave))
        client.close()
        with pytest.raises(CommitFailed):
            consumer.commit()
        until(lambda: consumer.poll(0.1) and len(assigned) == 2, "it joins again", 20)


def test_guarantee_4_nothing_after_a_revocation(cluster: EmbeddedCluster, topic: str) -> None:
    """While members join and leave, one that reads by message gets messages only of partitions that
    it owns."""
    fill(cluster, topic, 4000)
    group = f"g-{topic}"
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            with consumer_of(cluster, group, enable_auto_commit=False) as other:
                other.subscribe([topic])
                end = time.monotonic() + 0.6
                while time.monotonic() < end and not stop.is_set():
                    other.poll(0.1)

    held: set[TopicPartition] = set()
    revocations = 0

    def revoked(partitions: list[TopicPartition]) -> None:
        nonlocal revocations
        revocations += 1
        held.clear()

    thread = threading.Thread(target=come_and_go)
    with consumer_of(cluster, group, enable_auto_commit=False, max_poll_records=3) as consumer:
        consumer.subscribe([topic], on_assigned=held.update, on_revoked=revoked)
        thread.start()
        try:
            # A member that leaves in its first join is waited for, for its whole session.
            end = time.monotonic() + TIMEOUT_S
            while revocations < 3 and time.monotonic() < end:
                for message in consumer.poll(0.2):
                    assert TopicPartition(message.topic, message.partition) in held
                    time.sleep(0.002)
        finally:
            stop.set()
            thread.join()
    assert revocations >= 3


def test_guarantee_5_positions_do_not_go_back(cluster: EmbeddedCluster, topic: str) -> None:
    """Positions survive commits, pauses, and assignments that keep a partition."""
    fill(cluster, topic, 400)
    tp, other = partitions_of(topic)[:2]
    with consumer_of(cluster, f"g-{topic}", max_poll_records=3) as consumer:
        last = 0
        for step in range(30):
            consumer.assign([tp, other] if step % 3 else [tp])
            consumer.poll(0.2)
            position = consumer.position(tp)
            assert position >= last
            last = position
            if step % 5 == 0:
                consumer.commit()
                consumer.pause(tp)
                consumer.resume(tp)
    assert last > 0


def test_guarantee_6_no_offset_is_raised_by_each_poll(cluster: EmbeddedCluster, topic: str) -> None:
    """With auto.offset.reset=none each poll raises until the program seeks, for a missing offset
    and for one out of range."""
    fill(cluster, topic, 40)
    tp = TopicPartition(topic, 0)
    with consumer_of(cluster, f"g-{topic}", auto_offset_reset="none") as consumer:
        consumer.assign([tp])
        for _ in range(2):
            with pytest.raises(NoOffsetForPartition, match=re.escape(str(tp))):
                consumer.poll(30.0)
        consumer.seek(tp, 1000)
        for _ in range(2):
            with pytest.raises(OffsetOutOfRange, match="1000"):
                consumer.poll(30.0)
        consumer.seek(tp, 7)
        assert [message.offset for message in read(consumer, 3)] == [7, 8, 9]


def test_guarantee_6_a_refused_member_says_so_at_each_poll(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """Its session timeout is below the broker's minimum."""
    with consumer_of(
        cluster, f"g-{topic}", session_timeout_ms=400, heartbeat_interval_ms=100
    ) as consumer:
        consumer.subscribe([topic])
        for _ in range(2):
            with pytest.raises(InvalidSessionTimeout):
                consumer.poll(10.0)


def test_guarantee_6_an_assignor_that_fails_says_so_at_each_poll(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """The member rejects the assignment and joins again, instead of silently reading nothing."""

    class Failing(RangeAssignor):
        def on_assignment(self, assignment: MemberAssignment) -> None:
            raise ZeroDivisionError

    fill(cluster, topic, 4)
    with consumer_of(cluster, f"g-{topic}", assignors=[Failing()]) as consumer:
        consumer.subscribe([topic])
        for _ in range(2):
            with pytest.raises(ConsumerRebalanceFailed, match="range raised ZeroDivisionError"):
                consumer.poll(20.0)


class OnlyFirst:
    """An assignor with no more methods than one needs: partition 0 for each member."""

    name = "only-first"

    def subscription(self, topics: Sequence[str]) -> MemberSubscription:
        return MemberSubscription(tuple(topics), b"user data")

    def assign(
        self, cluster: ClusterMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, MemberAssignment]:
        assert {one.user_data for one in subscriptions.values()} == {b"user data"}
        return {
            member: MemberAssignment([TopicPartition(one.topics[0], 0)])
            for member, one in subscriptions.items()
        }


def test_an_assignor_of_ones_own(cluster: EmbeddedCluster, topic: str) -> None:
    """The leader gets the members' user data; the member reads what it was assigned."""
    fill(cluster, topic, 40)
    with consumer_of(cluster, f"g-{topic}", assignors=[OnlyFirst()]) as consumer:
        consumer.subscribe([topic])
        assert {message.partition for message in read(consumer, 10)} == {0}
        assert consumer.assignment() == {TopicPartition(topic, 0)}


def test_guarantee_6_an_invalid_assignment_is_raised(cluster: EmbeddedCluster, topic: str) -> None:
    """poll raises the error, which used to be only in the log of the member's thread."""

    class Forgetful(OnlyFirst):
        def assign(self, *_: object) -> Any:
            return None

    with consumer_of(cluster, f"g-{topic}", assignors=[Forgetful()]) as consumer:
        consumer.subscribe([topic])
        with pytest.raises(ConsumerRebalanceFailed, match="only-first raised AttributeError"):
            consumer.poll(20.0)


def test_guarantee_6_calls_that_need_a_group_raise_without_one(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """Without group.id these calls raise before they send a request."""
    with consumer_of(cluster) as consumer:
        with pytest.raises(ConfigError, match=r"group\.id"):
            consumer.subscribe([topic])
        with pytest.raises(RuntimeError, match="no subscription"):
            consumer.poll()
        consumer.assign(partitions_of(topic))
        with pytest.raises(ConfigError, match=r"group\.id"):
            consumer.commit()
        with pytest.raises(RuntimeError, match="exclude each other"):
            consumer.subscribe([topic])


def test_guarantee_7_wakeup_ends_a_poll_and_a_request(cluster: EmbeddedCluster, topic: str) -> None:
    """`wakeup` interrupts the waiting call, or the next one, once."""
    with consumer_of(cluster, f"g-{topic}") as consumer:
        consumer.subscribe([topic])
        threading.Timer(0.3, consumer.wakeup).start()
        with pytest.raises(WokenUp):
            consumer.poll(60.0)
        assert consumer.poll(0.0) == []
        consumer.wakeup()
        with pytest.raises(WokenUp):
            consumer.list_topics()
        assert topic in consumer.list_topics()


def test_guarantee_7_every_call_ends_without_brokers() -> None:
    """Without a reachable broker, `poll` and `close` return within their timeouts."""
    started = time.monotonic()
    consumer = KafkaConsumer(bootstrap_servers="127.0.0.1:1", group_id="g")
    consumer.subscribe(["t"])
    assert consumer.poll(0.3) == []
    consumer.close(timeout=1.0)
    assert time.monotonic() - started < 20


def test_guarantee_7_close_leaves_the_group_at_once(cluster: EmbeddedCluster, topic: str) -> None:
    """The other member gets all partitions long before the session timeout of the first."""
    group = f"g-{topic}"
    keys = {"session_timeout_ms": 20_000}
    with consumer_of(cluster, group, **keys) as stays:
        with consumer_of(cluster, group, **keys) as goes:
            for member in (stays, goes):
                member.subscribe([topic])
            until(
                lambda: stays.poll(0.05) or goes.poll(0.05) or len(goes.assignment()) == 2,
                "both have two",
            )
        until(lambda: stays.poll(0.1) or len(stays.assignment()) == 4, "it has four", seconds=10)


def test_guarantee_7_close_does_not_wait_for_other_members(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """A rebalance waits for a member that does not poll; `close` of a joining member does not."""
    with consumer_of(cluster, f"g-{topic}") as slow, consumer_of(cluster, f"g-{topic}") as joining:
        slow.subscribe([topic])
        until(lambda: slow.poll(0.1) or slow.assignment(), "it has partitions")
        joining.subscribe([topic])
        assert joining.poll(1.0) == []
        began = time.monotonic()
        joining.close(timeout=40)
        assert time.monotonic() - began < 20


def test_guarantee_8_slow_work_keeps_its_place(cluster: EmbeddedCluster, topic: str) -> None:
    """Work that takes longer than the session timeout causes no rebalance, and the member may
    commit."""
    fill(cluster, topic, 4)
    assigned: list[int] = []
    with consumer_of(
        cluster, f"g-{topic}", session_timeout_ms=2500, heartbeat_interval_ms=100
    ) as consumer:
        consumer.subscribe([topic], on_assigned=lambda found: assigned.append(len(found)))
        found = read(consumer, 1)
        time.sleep(3)
        consumer.commit()
        found += read(consumer, 4 - len(found))
    assert assigned == [4]
    assert numbers(found) == list(range(4))


def test_guarantee_8_an_iteration_keeps_its_place(cluster: EmbeddedCluster, topic: str) -> None:
    """An iteration may exceed max.poll.interval.ms if each of its messages takes less."""
    fill(cluster, topic, 40)
    assigned: list[int] = []
    found: list[Message] = []
    with consumer_of(cluster, f"g-{topic}", max_poll_interval_ms=1500) as consumer:
        consumer.subscribe([topic], on_assigned=lambda found: assigned.append(len(found)))
        for message in consumer:
            found.append(message)
            if len(found) == 40:
                break
            time.sleep(0.06)
        consumer.commit()
    assert assigned == [4]
    assert numbers(found) == list(range(40))


def test_guarantee_8_a_consumer_that_does_not_poll_says_so(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """It leaves the group, raises the reason once, and joins again."""
    fill(cluster, topic, 40)
    group = f"g-{topic}"
    with consumer_of(
        cluster, group, enable_auto_commit=False, max_poll_interval_ms=600
    ) as consumer:
        consumer.subscribe([topic])
        assert len(read(consumer, 40)) == 40
        with GroupReader(bootstrap=cluster.bootstrap) as reader:
            until(lambda: not members_of(reader, group), "it leaves")
        with pytest.raises(PollIntervalExceeded, match=r"max\.poll\.interval\.ms"):
            consumer.poll(1.0)
        assert len(read(consumer, 40)) == 40
