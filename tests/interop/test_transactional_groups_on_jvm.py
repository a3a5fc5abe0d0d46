"""Offsets of a group in transactions, on JVM brokers from 2.5 on: those of a member without which
the group continues are refused, and who begins at the offsets waits for open transactions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from kafka08.consumer import AsyncKafkaConsumer, KafkaConsumer
from kafka08.errors import CommitFailed, UnstableOffsetCommit
from kafka08.producer import KafkaProducer
from kafka08.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from tests.integration.transactional import producer_on
from tests.interop.releases import TODAYS, Running, broker_of
from tests.waiting import until

pytest.importorskip("pyarrow")
from kafka08.arrow import scan
from kafka08.arrow.settings import ReadSettings

_names = count()


@pytest.fixture(scope="module", params=TODAYS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with broker_of(request.param, tmp_path_factory.mktemp("jvm")) as running:
        yield running


@pytest.fixture
def topic(broker: Running) -> str:
    """With ten messages in its one partition."""
    name = f"t{next(_names)}"
    with KafkaProducer(bootstrap_servers=broker.address, retries=20) as producer:
        producer.send_many(name, [b"%d" % n for n in range(10)], partition=0).result(30)
    return name


@pytest.fixture
def producer(broker: Running, topic: str) -> Iterator[KafkaProducer]:
    with producer_on(broker.address, topic) as found:
        found.init_transactions()
        yield found


def member(broker: Running, topic: str, **keys: Any) -> KafkaConsumer:
    """Of a group with the name of the topic."""
    found = KafkaConsumer(
        bootstrap_servers=broker.address,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **keys,
    )
    found.subscribe([topic])
    return found


def read_some(consumer: KafkaConsumer) -> dict[TopicPartition, OffsetAndMetadata]:
    """Its positions behind the first messages."""
    until(lambda: consumer.poll(0.1), "messages")
    return consumer.positions()


def commit(
    producer: KafkaProducer,
    offsets: dict[TopicPartition, OffsetAndMetadata] | dict[TopicPartition, int],
    group: str | ConsumerGroupMetadata,
) -> None:
    with producer.transaction():
        producer.send_offsets_to_transaction(offsets, group)


def test_a_member_commits_with_its_generation(
    broker: Running, topic: str, producer: KafkaProducer
) -> None:
    """Its offsets are committed, with their leader epochs."""
    tp = TopicPartition(topic, 0)
    with member(broker, topic) as consumer:
        read = read_some(consumer)
        assert consumer.group_metadata().generation_id > 0
        commit(producer, read, consumer.group_metadata())
        (found,) = consumer.committed(tp).values()
        assert found is not None
        assert (found.offset, found.leader_epoch) == (read[tp].offset, 0)


def await_generation(after: ConsumerGroupMetadata, *members: KafkaConsumer) -> None:
    """Until all of these are in one later generation."""

    def are_together() -> bool:
        for one in members:
            one.poll(0.05)
        numbers = {one.group_metadata().generation_id for one in members}
        return len(numbers) == 1 and numbers.pop() > after.generation_id

    until(are_together, "the generation")


def committed_offset(consumer: KafkaConsumer, topic: str) -> int | None:
    """Of its one partition."""
    (found,) = consumer.committed(TopicPartition(topic, 0)).values()
    return None if found is None else found.offset


def test_offsets_of_a_former_generation_are_refused(
    broker: Running, topic: str, producer: KafkaProducer
) -> None:
    """Another member has joined: the transaction can only be aborted, and commits nothing; the next
    one with the present generation is as any other."""
    with member(broker, topic) as consumer, member(broker, topic) as other:
        read, former = read_some(consumer), consumer.group_metadata()
        await_generation(former, consumer, other)
        with pytest.raises(CommitFailed, match=r"IllegalGeneration \(22\)"):
            commit(producer, read, former)
        assert committed_offset(consumer, topic) is None
        commit(producer, {TopicPartition(topic, 0): 4}, consumer.group_metadata())
        assert committed_offset(consumer, topic) == 4


def test_offsets_of_a_member_that_left_are_refused(
    broker: Running, topic: str, producer: KafkaProducer
) -> None:
    """While the group goes on, and when it has no members."""
    with member(broker, topic) as consumer:
        with member(broker, topic) as zombie:
            await_generation(consumer.group_metadata(), consumer, zombie)
            left = zombie.group_metadata()
        with pytest.raises(CommitFailed, match=r"UnknownMemberId \(25\)"):
            commit(producer, {TopicPartition(topic, 0): 4}, left)
        await_generation(left, consumer)
        left = consumer.group_metadata()
    with pytest.raises(CommitFailed, match=r"UnknownMemberId \(25\)"):
        commit(producer, {TopicPartition(topic, 0): 4}, left)


def test_a_static_member_that_was_replaced_is_fenced(
    broker: Running, topic: str, producer: KafkaProducer
) -> None:
    """The one with its name took its place without a new generation."""
    with member(broker, topic, group_instance_id="a") as zombie:
        read, former = read_some(zombie), zombie.group_metadata()
        assert former.group_instance_id == "a"
        with member(broker, topic, group_instance_id="a") as successor:
            until(lambda: successor.poll(0.1), "messages")
            with pytest.raises(CommitFailed, match=r"FencedInstanceId \(82\)"):
                commit(producer, read, former)
            commit(producer, successor.positions(), successor.group_metadata())


def test_a_removed_member_does_not_pass_as_none(
    broker: Running, topic: str, producer: KafkaProducer
) -> None:
    """A consumer that did not poll for max.poll.interval.ms, so that another one reads its
    partition, has its last generation still: without one its offsets would not be compared."""
    with member(broker, topic, max_poll_interval_ms=300, session_timeout_ms=6000) as zombie:
        read, former = read_some(zombie), zombie.group_metadata()
        with member(broker, topic) as successor:
            until(lambda: successor.poll(0.1), "messages")
            assert zombie.group_metadata() == former
            with pytest.raises(CommitFailed, match=r"UnknownMemberId \(25\)"):
                commit(producer, read, zombie.group_metadata())


def test_a_new_member_waits_for_an_open_transaction(
    broker: Running, topic: str, producer: KafkaProducer
) -> None:
    """It begins behind the offsets that the transaction commits, not at those before. `committed`
    waits too, up to its timeout."""
    commit(producer, {TopicPartition(topic, 0): 2}, topic)
    producer.begin_transaction()
    producer.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, topic)
    with member(broker, topic) as consumer:
        until(lambda: consumer.poll(0.05) or consumer.stall_cause, "the wait")
        assert isinstance(consumer.stall_cause, UnstableOffsetCommit)
        with pytest.raises(UnstableOffsetCommit, match="transaction that has not ended"):
            consumer.committed(TopicPartition(topic, 0), timeout=0.3)
        producer.commit_transaction(30)
        first = until(lambda: consumer.poll(0.1), "messages")[0]
        assert first.offset == 7
        assert consumer.stall_cause is None


def test_a_new_member_begins_where_an_aborted_transaction_began(
    broker: Running, topic: str, producer: KafkaProducer
) -> None:
    """Its offsets do not count."""
    commit(producer, {TopicPartition(topic, 0): 2}, topic)
    producer.begin_transaction()
    producer.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, topic)
    with member(broker, topic) as consumer:
        until(lambda: consumer.poll(0.05) or consumer.stall_cause, "the wait")
        producer.abort_transaction(30)
        assert until(lambda: consumer.poll(0.1), "messages")[0].offset == 2


def test_an_async_member_waits(broker: Running, topic: str, producer: KafkaProducer) -> None:
    """As the other one, and its offsets are those of its generation."""
    producer.begin_transaction()
    producer.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, topic)

    async def read() -> tuple[int, ConsumerGroupMetadata]:
        async with AsyncKafkaConsumer(
            bootstrap_servers=broker.address, group_id=topic, auto_offset_reset="earliest"
        ) as consumer:
            await consumer.subscribe([topic])
            while consumer.stall_cause is None:
                assert await consumer.poll(0.05) == []
            await asyncio.to_thread(producer.commit_transaction, 30)
            while not (found := await consumer.poll(1)):
                pass
            return found[0].offset, await consumer.group_metadata()

    offset, metadata = asyncio.run(read())
    assert offset == 7
    assert (metadata.group_id, metadata.generation_id > 0) == (topic, True)


def test_a_scan_waits(broker: Running, topic: str, producer: KafkaProducer) -> None:
    """One that begins at a group's offsets, as Spark's source does; it ends with its timeout."""
    commit(producer, {TopicPartition(topic, 0): 2}, topic)
    producer.begin_transaction()
    producer.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, topic)
    hasty = ReadSettings(poll_timeout_ms=500)
    with pytest.raises(UnstableOffsetCommit):
        scan(broker.address, topic, group=topic, storage="kafka", settings=hasty)
    ends = threading.Timer(0.5, producer.commit_transaction, [30])
    ends.start()
    with scan(broker.address, topic, group=topic, storage="kafka") as found:
        assert [(r.from_offset, r.until_offset) for r in found.ranges] == [(7, 10)]
    ends.join()
