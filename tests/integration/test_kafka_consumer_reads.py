"""A KafkaConsumer reads without a group: order, limits, seeks, pauses, lag, interceptors. On
brokers of ours at each level that has groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafka08.embedded import EmbeddedCluster
from kafka08.errors import UnknownTopicOrPartition
from kafka08.structs import OffsetAndMetadata, TopicPartition
from tests.integration.polling_cluster import (
    Message,
    consumer_of,
    fill,
    numbers,
    partitions_of,
    read,
)


def test_assigned_partitions_are_read_in_order(cluster: EmbeddedCluster, topic: str) -> None:
    """Without a group, each partition is read in order from its earliest offset."""
    fill(cluster, topic, 100)
    with consumer_of(cluster, max_poll_records=7) as consumer:
        consumer.assign(partitions_of(topic))
        found = read(consumer, 100)
    assert numbers(found) == list(range(100))
    for tp in partitions_of(topic):
        offsets = [message.offset for message in found if message.partition == tp.partition]
        assert offsets == list(range(25))


def test_a_poll_has_no_more_than_max_poll_records(cluster: EmbeddedCluster, topic: str) -> None:
    """The next poll returns the rest."""
    fill(cluster, topic, 40)
    with consumer_of(cluster, max_poll_records=7) as consumer:
        consumer.assign(partitions_of(topic))
        sizes = set()
        left = 40
        while left:
            got = consumer.poll(5.0)
            sizes.add(len(got))
            left -= len(got)
    assert max(sizes) == 7


def test_positions_follow_seeks_and_resets(cluster: EmbeddedCluster, topic: str) -> None:
    """After a seek to an offset, to the start or to the end, fetched messages are dropped."""
    fill(cluster, topic, 40)
    tp = TopicPartition(topic, 0)
    with consumer_of(cluster) as consumer:
        consumer.assign([tp])
        assert len(read(consumer, 10)) == 10
        assert consumer.position(tp) == 10
        consumer.seek(tp, 4)
        assert [message.offset for message in read(consumer, 6)] == [4, 5, 6, 7, 8, 9]
        consumer.seek_to_beginning(tp)
        assert consumer.position(tp) == 0
        consumer.seek_to_end()
        assert consumer.position(tp) == 10
        assert consumer.beginning_offsets([tp]) == {tp: 0}
        assert consumer.end_offsets([tp]) == {tp: 10}


def test_a_seek_in_an_iteration_takes_effect_at_once(cluster: EmbeddedCluster, topic: str) -> None:
    """The rest of the fetched set does not come first."""
    fill(cluster, topic, 40)
    tp = TopicPartition(topic, 0)
    with consumer_of(cluster) as consumer:
        consumer.assign([tp])
        offsets = []
        for message in consumer:
            offsets.append(message.offset)
            if offsets == [0, 1]:
                consumer.seek(tp, 7)
            if message.offset == 9:
                break
    assert offsets == [0, 1, 7, 8, 9]


def test_a_paused_partition_waits(cluster: EmbeddedCluster, topic: str) -> None:
    """The other partitions continue; after `resume` no message of the paused one is missing."""
    fill(cluster, topic, 40)
    first = TopicPartition(topic, 0)
    with consumer_of(cluster) as consumer:
        consumer.assign(partitions_of(topic))
        consumer.pause(first)
        found = read(consumer, 30)
        assert {message.partition for message in found} == {1, 2, 3}
        assert consumer.paused() == {first}
        assert consumer.poll(0.3) == []
        consumer.resume(first)
        assert numbers(found + read(consumer, 10)) == list(range(40))


def test_metadata_of_a_new_topic_waits_for_its_leaders(cluster: EmbeddedCluster) -> None:
    """Brokers list a topic that was just created a moment before its leaders are elected. The
    request does not create it."""
    name = "asked-for"
    with consumer_of(cluster) as consumer:
        with pytest.raises(UnknownTopicOrPartition):
            consumer.partitions_for(name)
        cluster.create_topic(name, partitions=2, replication_factor=1)
        found = consumer.partitions_for(name)
    assert [one.partition for one in found] == list(range(len(found)))
    assert all(one.leader >= 0 for one in found)


def test_lag_is_known_after_a_fetch(cluster: EmbeddedCluster, topic: str) -> None:
    """Lag follows from the high watermark of the Fetch response."""
    fill(cluster, topic, 40)
    tp = TopicPartition(topic, 0)
    with consumer_of(cluster, max_poll_records=3) as consumer:
        consumer.assign([tp])
        assert consumer.lag(tp) is None
        assert len(read(consumer, 3)) == 3
        assert consumer.lag(tp) == 7


def test_by_message_and_in_batches(cluster: EmbeddedCluster, topic: str) -> None:
    """Reading by message and in batches, alternately, skips and repeats nothing."""
    fill(cluster, topic, 400)
    with consumer_of(cluster) as consumer:
        consumer.assign(partitions_of(topic))
        found = set()
        for message in consumer:
            found.add(int(message.value or b""))
            if len(found) == 130:
                break
        batches = consumer.batches(max_messages=50)
        while len(found) < 330:
            batch = next(batches)
            assert 1 <= len(batch) <= 50
            values = {int(value or b"") for value in batch.values()}
            assert found.isdisjoint(values)
            found |= values
        found.update(numbers(read(consumer, 400 - len(found))))
    assert found == set(range(400))


@pytest.mark.parametrize("in_batches", [False, True])
def test_an_interrupted_poll_is_read_again(
    cluster: EmbeddedCluster, topic: str, monkeypatch: pytest.MonkeyPatch, in_batches: bool
) -> None:
    """A signal handler may raise when a poll has its messages and its caller has not: the next poll
    returns them. Those of the poll before are finished."""
    fill(cluster, topic, 40)
    tp = TopicPartition(topic, 0)
    with consumer_of(cluster, max_poll_records=4) as consumer:

        def poll() -> list[int]:
            if not in_batches:
                return [message.offset for message in consumer.poll(5.0)]
            batch = consumer.poll_batch(5.0, max_messages=4)
            return [] if batch is None else list(batch.offsets)

        ready = consumer._poller.next

        def interrupted(*arguments: Any) -> None:
            assert ready(*arguments)
            raise KeyboardInterrupt

        consumer.assign([tp])
        assert poll() == [0, 1, 2, 3]
        monkeypatch.setattr(consumer._poller, "next", interrupted)
        with pytest.raises(KeyboardInterrupt):
            poll()
        monkeypatch.undo()
        assert consumer.position(tp) == 4
        assert poll() == [4, 5, 6, 7]


class Interceptor:
    """Drops every third message."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, int] = {}

    def on_consume(self, messages: list[Message]) -> list[Message]:
        return [one for one in messages if int(one.value or b"") % 3]

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.committed.update((tp, one.offset) for tp, one in offsets.items())

    def close(self) -> None:
        """Nothing to close."""


def test_interceptors_and_an_iteration_that_ends(cluster: EmbeddedCluster, topic: str) -> None:
    """Interceptors may drop messages. If an iteration ends and another begins, no message is
    skipped: all messages that the interceptors have returned count as delivered."""
    fill(cluster, topic, 40)
    interceptor = Interceptor()
    found: list[Message] = []
    with consumer_of(cluster, f"g-{topic}", interceptors=[interceptor]) as consumer:
        consumer.subscribe([topic])
        while len(found) < 15:
            for message in consumer:
                found.append(message)
                if len(found) % 5 == 0:
                    break
            consumer.commit()
        assert sum(interceptor.committed.values()) < 30
        kept = [number for number in range(40) if number % 3]
        found += read(consumer, len(kept) - len(found))
    assert numbers(found) == kept
