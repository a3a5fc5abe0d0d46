"""A native thread numbers large compressed sets, and the order of their partition is kept."""

from __future__ import annotations

import errno
import os
import random
import struct
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from kafka08.broker.appends.inline_appends import NATIVE_MIN_BYTES
from kafka08.broker.purgatory.delayed_produce import AppendErrors, AppendResults
from kafka08.errors import (
    FileRefused,
    InvalidMessage,
    NotCoordinatorForConsumer,
    NotLeaderForPartition,
)
from kafka08.log.unsynced import UnsyncedChanges
from kafka08.protocol import message_set
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from kafka08.protocol.offset_records import OffsetKey, encode_key, encode_value
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.types import Buffer
from kafka08.structs import OFFSETS_TOPIC, OffsetAndMetadata, TopicPartition
from tests.broker.fake_runtime import Halted
from tests.broker.world import Client, World
from tests.log.refusing_disk import RefusingDisk

if TYPE_CHECKING:
    from kafka08.runtime.disk import Disk

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


def append(world: World, data: bytearray, results: list[AppendResults], acks: int = 1) -> None:
    world.appender.append({TP: data}, required_acks=acks, timeout_ms=1000, done=results.append)


def copy(world: World, topic: str, data: Buffer, offset: int, high_watermark: int) -> None:
    """This broker follows broker 2, and copies a message from there, which `topic` has at that
    offset."""
    world.lead(topic, leader=2, isr=(1, 2), replicas=(1, 2))
    partition = world.partition(topic)
    world.log_manager.truncate_to({partition.topic_partition: offset})
    copied = bytearray(data)
    struct.pack_into(">q", copied, 0, offset)
    partition.append_as_follower(copied, high_watermark)


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
    assert not world.partition("t").is_queued
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
    assert InvalidMessage.code == results[0][TP].error_code
    assert 0 == results[1][TP].base_offset


def test_a_callback_that_fails_stops_no_later_append(tmp_path: Path) -> None:
    """An error in the callback of one append does not stop the appends behind it, after a native
    job and after an inline append."""
    world, results = start(tmp_path)

    def fail(_results: AppendResults) -> None:
        raise RuntimeError("a bug in answering")

    for data in (large(), small(b"a")):
        world.appender.append({TP: data}, required_acks=1, timeout_ms=1000, done=fail)
    append(world, small(b"b"), results)
    world.runtime.run_native_jobs()
    assert 101 == results[0][TP].base_offset
    assert not world.partition("t").is_queued


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
    assert [NotLeaderForPartition.code] * 2 == [result[TP].error_code for result in results]
    assert 0 == world.partition("t").log.log_end_offset


def test_a_leadership_that_ends_during_the_job_of_another_partition(tmp_path: Path) -> None:
    """A request waits for all its partitions. If another broker led the first one meanwhile, the
    log may have another message at its offset: the HW does not acknowledge it."""
    world, results = start(tmp_path)
    world.lead("large")
    sets = {TP: small(b"a"), TopicPartition("large", 0): large()}
    world.appender.append(sets, required_acks=-1, timeout_ms=1000, done=results.append)
    copy(world, "t", small(b"of the other leader"), 0, high_watermark=1)
    world.lead("t", replicas=(1, 2))
    world.runtime.run_native_jobs()
    errors = {tp.topic: result.error_code for tp, result in results[0].items()}
    assert {"t": NotLeaderForPartition.code, "large": 0} == errors


def test_a_job_that_comes_back_after_the_end_appends_nothing(tmp_path: Path) -> None:
    """After a shutdown the logs are closed. The job's set gets 6, as after any loss of leadership,
    and the broker does not halt."""
    world, results = start(tmp_path)
    append(world, large(), results)
    world.replica_manager.shutdown()
    world.log_manager.shutdown()
    world.runtime.run_native_jobs()
    assert NotLeaderForPartition.code == results[0][TP].error_code


def test_a_new_epoch_during_a_job_appends_nothing(tmp_path: Path) -> None:
    """If the leader epoch changed during the job, nothing is appended, and the producer retries."""
    world, results = start(tmp_path)
    append(world, large(), results)
    world.lead("t", replicas=(1, 2))
    world.runtime.run_native_jobs()
    assert NotLeaderForPartition.code == results[0][TP].error_code


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
        assert not partition.is_queued

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

    @pytest.mark.parametrize("acks", [-1, 1])
    def test_an_append_does_not_survive_its_leadership(self, world: World, acks: int) -> None:
        """If another broker led during the fsync, the log may have another message at its offset,
        so the HW does not acknowledge it. Those behind it may be of clients that went on at that
        broker: they are not appended. (Both were acknowledged when this broker led again.)"""
        results: list[AppendResults] = []
        append(world, small(b"a") * 3, results, acks)
        append(world, small(b"b"), results, acks)
        copy(world, "t", small(b"of the other leader"), 0, high_watermark=1)
        world.lead("t", replicas=(1, 2))
        world.runtime.run_native_jobs()
        assert [NotLeaderForPartition.code] * 2 == [result[TP].error_code for result in results]
        partition = world.partition("t")
        assert (1, 1) == (partition.log.log_end_offset, partition.high_watermark)

    def test_a_confirmed_leadership_keeps_its_appends(self, world: World) -> None:
        """The next epoch of the same leader, as after another broker has died, fails no append."""
        results: list[AppendResults] = []
        append(world, small(b"a") * 3, results, -1)
        append(world, small(b"b"), results, -1)
        world.lead("t", replicas=(1, 2))
        world.runtime.run_native_jobs()
        assert [0, 3] == self.offsets(results)
        assert [None] * 2 == [result[TP].error for result in results]

    def test_the_end_of_a_failed_one_completes_those_of_the_next_leadership(
        self, world: World
    ) -> None:
        """The fsync of an append that its leadership has left behind holds the HW of the next
        leadership. When it ends, an append that waits for the HW is acknowledged."""
        results: list[AppendResults] = []
        append(world, small(b"a") * 3, results)
        copy(world, "t", small(b"of the other leader"), 0, high_watermark=0)
        world.lead("t", isr=(1, 2), replicas=(1, 2))
        errors: list[AppendErrors] = []
        world.appender.await_acks(-1, {TP: 1}, 60_000, errors.append, None)
        world.replica_manager.record_follower_fetches([world.partition("t")], [1], 2)
        assert [] == errors
        world.runtime.run_native_jobs()
        assert [{}] == errors


@pytest.mark.parametrize("level", ["0.8.2", "0.9.0", "0.10.2"])
class TestRecordsOfGroups:
    """With flush.messages=1 every record of the offsets topic waits for its fsync, and for those
    before it."""

    @pytest.fixture
    def world(self, tmp_path: Path, level: str) -> World:
        world = World(
            tmp_path,
            native_inline=False,
            api_level=level,
            offsets_topic_num_partitions=1,
            offsets_retention_check_interval_ms=600_000,
            log_flush_interval_messages=1,
        )
        world.lead("t")
        world.lead(OFFSETS_TOPIC, replicas=(1, 2))
        world.runtime.run_native_jobs()
        return world

    def commit(self, world: World, group: str, offset: int, timestamp_ms: int = -1) -> Client:
        topics = [OffsetCommitTopic("t", [OffsetCommitPartition(0, offset, "", timestamp_ms)])]
        client = Client(world)
        client.send(encode_request(OffsetCommitRequest(group, topics, version=1), 1, "test"))
        return client

    def committed(self, world: World, group: str) -> int:
        request = OffsetFetchRequest(group, [OffsetFetchTopic("t", [0])], version=1)
        offset: int = Client(world).call(request).topics[0].partitions[0].offset
        return offset

    def commit_elsewhere(self, world: World, group: str, offset: int, level: str) -> None:
        """The group commits at broker 2, which dies, so that this broker leads again."""
        version = int(level != "0.8.2")
        now_ms = world.runtime.time_ms()
        value = encode_value(OffsetAndMetadata(offset, "", now_ms), expire_ms=now_ms + 86_400_000)
        record = encode_key(OffsetKey(group, "t", 0), version), value
        magic = int(level == "0.10.2")
        timestamps = [now_ms] if magic else None
        data = message_set.encode([record], magic=magic, timestamps=timestamps)
        end = world.partition(OFFSETS_TOPIC).log.log_end_offset
        copy(world, OFFSETS_TOPIC, data, end, high_watermark=end + 1)
        world.lead(OFFSETS_TOPIC, replicas=(1, 2))

    def test_a_commit_does_not_follow_one_at_another_broker(self, world: World, level: str) -> None:
        """A commit that waits while the group goes on at another broker gets 16, and the group's
        newer offset stays. (It was appended when this broker led again, and was acknowledged.)"""
        self.commit(world, "other", 1)
        commit = self.commit(world, "g", 50)
        self.commit_elsewhere(world, "g", 100, level)
        world.runtime.run_native_jobs()
        (frame,) = commit.frames()
        response = decode_response(OffsetCommitRequest, frame, 1)[1]
        assert NotCoordinatorForConsumer.code == response.topics[0].partitions[0].error_code
        assert 100 == self.committed(world, "g")

    def test_a_tombstone_does_not_follow_a_commit_at_another_broker(
        self, world: World, level: str
    ) -> None:
        """The tombstone of an old offset does not delete a newer one that the group has committed
        at another broker."""
        day_ms = 86_400_000
        self.commit(world, "g", 50, world.runtime.time_ms() - day_ms + 1000)
        world.runtime.run_native_jobs()
        assert 50 == self.committed(world, "g")
        world.runtime.advance(599)
        self.commit(world, "other", 1)
        world.runtime.advance(2)
        self.commit_elsewhere(world, "g", 100, level)
        world.runtime.run_native_jobs()
        assert 100 == self.committed(world, "g")


@pytest.mark.parametrize("step", ["before the fsync", "behind it"])
def test_an_fsync_that_is_refused_is_the_answer_of_its_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """With no descriptor left, say. The append was never answered, and its client waited for
    ever."""

    def refuse(*_: object) -> bool:
        raise FileRefused("cannot delete a mark: Operation not permitted")

    disk = RefusingDisk()
    world = World(tmp_path, native_inline=False, disk=cast("Disk", disk))
    world.lead("t", config={"flush.messages": "1"})
    results: list[AppendResults] = []
    append(world, large(), results)
    append(world, small(b"behind it"), results)
    if step == "before the fsync":
        disk.refuses = lambda path: path.name == "t-0"
    else:
        monkeypatch.setattr(UnsyncedChanges, "complete", refuse)
    world.runtime.run_native_jobs()
    refused = [result[TP].error_code for result in results]
    assert [FileRefused.code] * 2 == refused
    assert not world.partition("t").is_queued


def test_what_an_fsync_did_not_bring_to_the_disk_stays_above_the_hw(tmp_path: Path) -> None:
    """Also when followers have it: consumers read it, and a power failure of this broker took it
    away. The next fsync, of a later append, brings all of it to the disk."""
    disk = RefusingDisk()
    world = World(tmp_path, native_inline=False, disk=cast("Disk", disk))
    world.lead("t", config={"flush.messages": "1"})
    partition, results = world.partition("t"), list[AppendResults]()
    for refuses in (lambda path: path.name == "t-0", lambda _: False):
        disk.refuses = refuses
        append(world, large(), results)
        world.runtime.run_native_jobs()
        partition.maybe_raise_high_watermark()  # as after the fetch of a follower
        is_refused = results[-1][TP].error_code != 0
        assert partition.high_watermark == (0 if is_refused else partition.log.log_end_offset)
    assert [result[TP].error_code for result in results] == [FileRefused.code, 0]
