"""A native thread numbers large compressed sets, and the order of their partition is kept."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest

from kafka08.broker.delayed_produce import AppendResults
from kafka08.broker.inline_appends import NATIVE_MIN_BYTES
from kafka08.errors import InvalidMessage, NotLeaderForPartition
from kafka08.protocol import message_set
from kafka08.protocol.codec import encode_request
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.structs import TopicPartition
from tests.broker.fake_runtime import Halted
from tests.broker.world import Client, World

TP = TopicPartition("t", 0)
GZIP = 1


def large(count: int = 100) -> bytearray:
    chance = random.Random(count)
    data = message_set.encode([(None, chance.randbytes(1000)) for _ in range(count)], GZIP)
    assert len(data) >= NATIVE_MIN_BYTES
    return bytearray(data)


def small(text: bytes) -> bytearray:
    return bytearray(message_set.encode([(None, text)]))


def compressed(text: bytes) -> bytearray:
    return bytearray(message_set.encode([(None, text)], GZIP))


def start(tmp_path: Path) -> tuple[World, list[AppendResults]]:
    world = World(tmp_path, native_inline=False)
    world.lead("t", replicas=(1, 2))
    return world, []


def append(world: World, data: bytearray, results: list[AppendResults]) -> None:
    world.replica_manager.appender.append(
        {TP: data}, required_acks=1, timeout_ms=1000, done=results.append
    )


def test_later_appends_wait_behind_a_job_in_order(tmp_path: Path) -> None:
    """Large, small, large and small sets get offsets in the order of arrival. Then the queue is
    removed."""
    world, results = start(tmp_path)
    for data in (large(100), small(b"a"), large(90), small(b"b")):
        append(world, data, results)
        data[:] = bytes(len(data))  # the buffer of the request is used for something else
    assert [] == results
    world.runtime.run_native_jobs()
    assert [0, 100, 101, 191] == [result[TP].base_offset for result in results]
    assert [None] * 4 == [result[TP].error for result in results]
    assert world.partition("t").append_queue is None
    read = world.partition("t").log.read(0, 1 << 20).bytes()
    offsets = [message.offset for message in message_set.decode(read)]
    assert list(range(192)) == offsets


def test_small_appends_take_no_lane(tmp_path: Path) -> None:
    """A small set, compressed or not, is appended at once without a queue."""
    world, results = start(tmp_path)
    append(world, bytearray(message_set.encode([(None, b"x" * 100)] * 50, GZIP)), results)
    append(world, small(b"a"), results)
    assert [0, 50] == [result[TP].base_offset for result in results]
    assert [] == world.runtime.native_jobs


def test_a_set_that_cannot_be_unpacked_fails_alone(tmp_path: Path) -> None:
    """A set that cannot be unpacked fails, and the appends behind it continue."""
    world, results = start(tmp_path)
    broken = large()
    broken[5000] ^= 1
    append(world, broken, results)
    append(world, small(b"a"), results)
    world.runtime.run_native_jobs()
    assert isinstance(results[0][TP].error, InvalidMessage)
    assert 0 == results[1][TP].base_offset


def test_a_callback_that_fails_stops_no_later_append(tmp_path: Path) -> None:
    """An error in the callback of one append does not stop the appends behind it, after a native
    job and after an inline append."""
    world, results = start(tmp_path)

    def fail(_results: AppendResults) -> None:
        raise RuntimeError("a bug in answering")

    for data in (large(), small(b"a")):
        world.replica_manager.appender.append(
            {TP: data}, required_acks=1, timeout_ms=1000, done=fail
        )
    append(world, small(b"b"), results)
    world.runtime.run_native_jobs()
    assert 101 == results[0][TP].base_offset
    assert world.partition("t").append_queue is None


def test_a_response_that_cannot_be_encoded_closes_its_connection_alone(tmp_path: Path) -> None:
    """If the response cannot be encoded, only this connection closes. A topic name of bytes that
    are no UTF-8 would be three times as long in the response."""
    world, results = start(tmp_path)
    name = b"\xff" * 15_000
    data = bytes(large())
    request = encode_request(
        ProduceRequest(
            1,
            1000,
            [
                ProduceTopic("t", [ProducePartition(0, data)]),
                ProduceTopic("x" * len(name), [ProducePartition(0, data)]),
            ],
        ),
        1,
        "test",
    ).replace(b"x" * len(name), name)
    client = Client(world)
    client.send(request)
    append(world, small(b"a"), results)
    assert client.parked
    world.runtime.run_native_jobs()
    assert client.closed
    assert 100 == results[0][TP].base_offset


def test_leadership_lost_during_a_job_appends_nothing(tmp_path: Path) -> None:
    """If this broker became a follower during the job, the set and those behind it get 6."""
    world, results = start(tmp_path)
    append(world, large(), results)
    append(world, small(b"a"), results)
    world.lead("t", leader=2, isr=(2,), replicas=(1, 2))
    world.runtime.run_native_jobs()
    assert [NotLeaderForPartition] * 2 == [type(result[TP].error) for result in results]
    assert 0 == world.partition("t").log.log_end_offset


def test_a_job_that_comes_back_after_the_end_appends_nothing(tmp_path: Path) -> None:
    """After a shutdown the logs are closed. The job's set gets 6, as after any loss of leadership,
    and the broker does not halt."""
    world, results = start(tmp_path)
    append(world, large(), results)
    world.replica_manager.shutdown()
    world.log_manager.shutdown()
    world.runtime.run_native_jobs()
    assert isinstance(results[0][TP].error, NotLeaderForPartition)


def test_a_new_epoch_during_a_job_appends_nothing(tmp_path: Path) -> None:
    """If the leader epoch changed during the job, nothing is appended, and the producer retries."""
    world, results = start(tmp_path)
    append(world, large(), results)
    world.lead("t", replicas=(1, 2))
    world.runtime.run_native_jobs()
    assert isinstance(results[0][TP].error, NotLeaderForPartition)


class TestFlushMessages:
    """With flush.messages=3 every third message is synced before its acknowledgement. The fsync is
    a native job."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        world = World(tmp_path, native_inline=False, log_flush_interval_messages=3)
        world.lead("t", replicas=(1, 2))
        return world

    def offsets(self, results: list[AppendResults]) -> list[int]:
        return [result[TP].base_offset for result in results]

    def test_sets_that_need_an_fsync_are_acknowledged_after_it(self, world: World) -> None:
        """The set that reaches the limit is acknowledged after the fsync, and so are the sets
        behind it. Earlier ones do not wait."""
        results: list[AppendResults] = []
        for text in (b"a", b"b", b"c", b"d"):
            append(world, small(text), results)
        partition = world.partition("t")
        assert [0, 1] == self.offsets(results)
        assert (3, 2) == (partition.log.log_end_offset, partition.high_watermark)
        assert 0 == partition.log.recovery_point
        world.runtime.run_native_jobs()
        assert [0, 1, 2, 3] == self.offsets(results)
        assert (3, 4) == (partition.log.recovery_point, partition.high_watermark)
        assert partition.append_queue is None

    def test_a_request_of_one_partition_is_answered_after_it(self, world: World) -> None:
        """The fast path leaves a request of one partition that needs an fsync to the queue."""
        client = Client(world)
        produce = ProduceRequest(
            1, 1000, [ProduceTopic("t", [ProducePartition(0, bytes(small(b"a") * 3))])]
        )
        client.send(encode_request(produce, 1, "test"))
        assert client.parked
        world.runtime.run_native_jobs()
        assert 1 == len(client.frames())
        assert 3 == world.partition("t").log.recovery_point

    @pytest.mark.parametrize("count", [1, 200])
    def test_compressed_sets_are_counted_by_their_messages(self, world: World, count: int) -> None:
        """A compressed set counts its messages, whether it is handled inline or in a thread. The
        fsync follows only when it is due."""
        results: list[AppendResults] = []
        append(world, large(count) if count > 1 else compressed(b"a"), results)
        while world.runtime.native_jobs:
            assert [] == results
            world.runtime.run_native_jobs()
        assert [0] == self.offsets(results)
        assert (count if count > 1 else 0) == world.partition("t").log.recovery_point

    def test_followers_do_not_raise_the_high_watermark_during_the_fsync(self, world: World) -> None:
        """A follower that has a message before the leader's fsync does not let consumers read it:
        if the leader's host lost power it would be gone there. After the fsync they can."""
        results: list[AppendResults] = []
        world.lead("t", isr=(1, 2), replicas=(1, 2))
        partition = world.partition("t")
        append(world, small(b"a"), results)
        append(world, small(b"b") * 2, results)
        assert not partition.record_follower_fetch(2, 0, 1.0)
        assert partition.record_follower_fetch(2, 3, 2.0)
        assert (1, [0]) == (partition.high_watermark, self.offsets(results))
        world.runtime.run_native_jobs()
        assert (3, [0, 1]) == (partition.high_watermark, self.offsets(results))

    def test_a_follower_that_becomes_the_leader_syncs_what_is_due(self, world: World) -> None:
        """The fsync that a follower owes for what it has just appended comes before it leads, since
        leading may raise the HW."""
        world.lead("t", leader=2, isr=(1, 2), replicas=(1, 2))
        partition = world.partition("t")
        fetched = message_set.encode([(None, b"a")] * 3)
        partition.append_as_follower(fetched, leader_high_watermark=0)
        assert (0, 3) == (partition.log.recovery_point, partition.log.log_end_offset)
        world.lead("t", isr=(1,), replicas=(1, 2))
        assert (3, 3) == (partition.log.recovery_point, partition.high_watermark)

    def test_a_disk_that_fails_then_ends_the_process(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If the fsync fails, the process ends: no response may say that the messages are on
        disk."""

        def fail(_descriptor: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        results: list[AppendResults] = []
        append(world, small(b"a") * 3, results)
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(Halted):
            world.runtime.run_native_jobs()
        assert [] == results

    def test_leadership_lost_during_the_fsync_leaves_the_high_watermark(self, world: World) -> None:
        """The new leader raises the HW. The append stays acknowledged, as in 0.8.2.2."""
        results: list[AppendResults] = []
        append(world, small(b"a") * 3, results)
        world.lead("t", leader=2, isr=(2,), replicas=(1, 2))
        world.runtime.run_native_jobs()
        assert [0] == self.offsets(results)
        assert 0 == world.partition("t").high_watermark
