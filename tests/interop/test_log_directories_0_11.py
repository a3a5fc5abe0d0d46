"""One log directory, used in turn by a JVM 0.11.0.3 broker and by ours of level 0.11.0, and two
brokers, one of each, that follow each other."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import pytest

from kafka08.errors import ConnectionFailed
from kafka08.format import Batch, Message
from kafka08.format.v2 import V2
from kafka08.log.check import check_log
from kafka08.log.dump import LogDump
from kafka08.network.connection import Connection
from kafka08.protocol import message_set
from kafka08.protocol.compression import CODECS
from kafka08.protocol.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.record_batches import compress
from kafka08.structs import ORDINARY_CONSUMER
from tests.interop.jvm import POM_0_11, run_tool
from tests.interop.seats import HOST, Release, Seat, mixed_cluster
from tests.waiting import until

TOPIC = "shared-log"
KEYS = {
    "log.segment.bytes": "4000",
    "log.index.interval.bytes": "200",
    "log.retention.hours": "-1",
    "offsets.topic.replication.factor": "1",
}
PRODUCER = 4711
SIZE = 5
"""Records of a batch."""
START_MS: Final = time.time_ns() // 1_000_000
"""The JVM forgets producers of old records."""


def ask(seat: Seat, request: Any) -> Any:
    with Connection(HOST, seat.port) as connection:
        response: Any = connection.send(request)
    return response.topics[0].partitions[0]


def sent(sequence: int) -> bytes:
    """The batch of the producer with this sequence, in one of the codecs; values are sequences."""
    codec = sequence // SIZE % len(CODECS)
    records = [
        Message(n, None, memoryview(b"%d" % (sequence + n)), START_MS + sequence + n, 0)
        for n in range(SIZE)
    ]
    newest_ms = START_MS + sequence + SIZE - 1
    like = Batch(
        *(2, 0, 0, 0, SIZE - 1, codec, 0, newest_ms, 0),
        producer_id=PRODUCER,
        producer_epoch=0,
        base_sequence=sequence,
    )
    return V2().build(records, codec, compress, like=like)


def produce(seat: Seat, sequence: int, acks: int = -1) -> tuple[int, int]:
    topics = [ProduceTopic(TOPIC, [ProducePartition(0, sent(sequence))])]
    response = ask(seat, ProduceRequest(acks, 5000, topics, version=3))
    return response.error_code, response.base_offset


def leads(seat: Seat) -> bool:
    """False also while it does not listen: the registration may be its killed predecessor's."""
    try:
        return bool(fetch(seat, 0).error_code == 0)
    except ConnectionFailed:
        return False


def fetch(seat: Seat, offset: int) -> Any:
    topics = [FetchTopic(TOPIC, [FetchPartition(0, offset, 100_000)])]
    return ask(seat, FetchRequest(ORDINARY_CONSUMER, 0, 0, topics, version=5))


def read_all(seat: Seat, end: int) -> list[tuple[bytes | None, int]]:
    found: list[tuple[bytes | None, int]] = []
    while len(found) < end:
        batch = list(message_set.decode(bytes(fetch(seat, len(found)).message_set), len(found)))
        assert batch, f"nothing at offset {len(found)}"
        found += [(message.value, message.timestamp) for message in batch]
    return found


@pytest.mark.parametrize("jvm_first", [True, False], ids=["jvm", "ours"])
def test_a_log_directory_changes_hands(tmp_path: Path, jvm_first: bool) -> None:
    """The JVM and our broker take over a directory of record batches, in every codec, from each
    other. After each clean stop or kill the producer's last batch is recognized, its next one is
    taken, and all messages are there; its files are dumped alike by both, and ours reports
    nothing."""
    release = Release(POM_0_11, "0.11.0", KEYS)
    with mixed_cluster(tmp_path, 1, release) as cluster:
        (seat,) = cluster.seats
        starts = [seat.start_jvm, seat.start_ours]
        if not jvm_first:
            starts.reverse()
        starts[0]()
        cluster.admin.create_topic(TOPIC)
        until(lambda: leads(seat), "the leader")
        end = 0
        for turn, stop in enumerate((seat.stop, seat.kill, seat.stop, seat.kill), 1):
            for _ in range(20):
                assert (0, end) == produce(seat, end)
                end += SIZE
            stop()
            if stop == seat.stop:
                check_files(seat.logs / f"{TOPIC}-0", end)
            starts[turn % 2]()
            until(lambda: leads(seat), "the leader")
            assert (0, end - SIZE) == produce(seat, end - SIZE)
            assert 45 == produce(seat, end + 1)[0]
            expected = [(b"%d" % n, START_MS + n) for n in range(end)]
            assert expected == read_all(seat, end)


def check_files(directory: Path, end: int) -> None:
    """DumpLogSegments of 0.11.0.3 and ours print the same messages; it reads the producer in the
    last snapshot."""
    assert [] == check_log(directory)
    segments = sorted(directory.glob("*.log"))
    dump = LogDump(deep_iteration=True)
    ours = [line for path in segments for line in dump.lines(path)]
    assert ours == dumped_by_the_jvm(*segments)
    *_, newest = sorted(directory.glob("*.snapshot"))
    (_, line) = dumped_by_the_jvm(newest)
    last = f"lastSequence: {end - 1} lastOffset: {end - 1} offsetDelta: {SIZE - 1} "
    assert line.startswith(f"producerId: {PRODUCER} producerEpoch: 0 {last}")
    assert line == [*dump.lines(newest)][-1]


def dumped_by_the_jvm(*paths: Path) -> list[str]:
    files = ",".join(map(str, paths))
    tool = "kafka.tools.DumpLogSegments"
    done = run_tool(tool, "--files", files, "--deep-iteration", pom=POM_0_11)
    assert done.rc == 0
    return done.stdout.splitlines()


def test_a_jvm_broker_and_ours_follow_each_other(tmp_path: Path) -> None:
    """Each is killed while it leads. The other one knows the producer's last batch, continues, and
    has the same leader epochs; the killed one comes back as its follower. In the end both logs are
    equal, byte for byte."""
    release = Release(POM_0_11, "0.11.0", KEYS | {"default.replication.factor": "2"})
    with mixed_cluster(tmp_path, 2, release) as cluster:
        jvm, ours = cluster.seats
        jvm.start_jvm()
        ours.start_ours()
        cluster.admin.create_topic(TOPIC, assignment={0: [1, 2]})
        cluster.await_isr(TOPIC, 1, 2)
        end = 0
        for leader, follower, restart in (
            (jvm, ours, jvm.start_jvm),
            (ours, jvm, ours.start_ours),
            (jvm, ours, jvm.start_jvm),
        ):
            until(lambda: leads(leader), "the leader")  # noqa: B023
            for _ in range(20):
                assert (0, end) == produce(leader, end)
                end += SIZE
            leader.kill()
            until(lambda: leads(follower), "the follower to lead")  # noqa: B023
            assert (0, end - SIZE) == produce(follower, end - SIZE)
            assert (0, end) == produce(follower, end)
            end += SIZE
            restart()
            cluster.await_isr(TOPIC, 1, 2)
        cluster.await_equal_logs(TOPIC, 1)
        epochs = [
            (seat.logs / f"{TOPIC}-0" / "leader-epoch-checkpoint").read_text()
            for seat in cluster.seats
        ]
        assert epochs[0] == epochs[1]
        assert [(b"%d" % n, START_MS + n) for n in range(end)] == read_all(ours, end)


def delete_before(seat: Seat, offset: int) -> tuple[int, int]:
    """The code and the lowest log start of all replicas."""
    topics = [DeleteRecordsTopic(TOPIC, [DeleteRecordsPartition(0, offset)])]
    response = ask(seat, DeleteRecordsRequest(topics, 20_000))
    return response.error_code, response.low_watermark


def codes(seat: Seat, *offsets: int) -> list[int]:
    """Of fetches; none while it does not listen."""
    try:
        return [fetch(seat, offset).error_code for offset in offsets]
    except ConnectionFailed:
        return []


@pytest.mark.parametrize("jvm_first", [True, False], ids=["jvm", "ours"])
def test_deleted_records_stay_deleted_when_a_directory_changes_hands(
    tmp_path: Path, jvm_first: bool
) -> None:
    """The JVM and our broker read each other's log starts after a clean stop; ours has its own
    after a kill, too. Both delete further."""
    release = Release(POM_0_11, "0.11.0", KEYS)
    with mixed_cluster(tmp_path, 1, release) as cluster:
        (seat,) = cluster.seats
        starts = [seat.start_jvm, seat.start_ours]
        if not jvm_first:
            starts.reverse()
        starts[0]()
        cluster.admin.create_topic(TOPIC)
        until(lambda: leads(seat), "the leader")
        end = start = 0
        for turn in range(1, 5):
            for _ in range(8):
                assert (0, end) == produce(seat, end)
                end += SIZE
            start += 33
            assert (0, start) == delete_before(seat, start)
            is_ours = starts[(turn - 1) % 2] == seat.start_ours
            if is_ours and turn > 2:
                seat.kill()
                seat.start_ours()
                until(lambda: [1, 0] == codes(seat, start - 1, start), "the start")  # noqa: B023
            seat.stop()
            file = seat.logs / "log-start-offset-checkpoint"
            assert file.read_text() == f"0\n1\n{TOPIC} 0 {start}\n"
            starts[turn % 2]()
            until(lambda: [1, 0] == codes(seat, start - 1, start), "the start")  # noqa: B023


def test_records_are_deleted_on_both_replicas(tmp_path: Path) -> None:
    """A JVM follows ours, and ours a JVM: the leader answers once the follower has the new start,
    which still holds when the follower leads."""
    release = Release(POM_0_11, "0.11.0", KEYS | {"default.replication.factor": "2"})
    with mixed_cluster(tmp_path, 2, release) as cluster:
        jvm, ours = cluster.seats
        jvm.start_jvm()
        ours.start_ours()
        cluster.admin.create_topic(TOPIC, assignment={0: [1, 2]})
        cluster.await_isr(TOPIC, 1, 2)
        end = start = 0
        for leader, follower, restart in ((jvm, ours, jvm.start_jvm), (ours, jvm, ours.start_ours)):
            until(lambda: [0] == codes(leader, start), "the leader")  # noqa: B023
            for _ in range(20):
                assert (0, end) == produce(leader, end)
                end += SIZE
            start += 42
            assert (0, start) == delete_before(leader, start)
            leader.kill()
            until(lambda: [1, 0] == codes(follower, start - 1, start), "its turn")  # noqa: B023
            restart()
            cluster.await_isr(TOPIC, 1, 2)


@pytest.mark.parametrize("jvm_returns", [True, False], ids=["jvm", "ours"])
def test_a_former_leader_cuts_what_was_never_replicated(tmp_path: Path, jvm_returns: bool) -> None:
    """It has records of its epoch that no other broker has: the follower stood still, and is
    elected. When it is back it asks where its epoch ends, truncates there, and has the records of
    the next leader, at the same offsets, byte for byte."""
    release = Release(POM_0_11, "0.11.0", KEYS | {"default.replication.factor": "2"})
    with mixed_cluster(tmp_path, 2, release) as cluster:
        jvm, ours = cluster.seats
        jvm.start_jvm()
        ours.start_ours()
        leader, follower = (jvm, ours) if jvm_returns else (ours, jvm)
        restart = jvm.start_jvm if jvm_returns else ours.start_ours
        order = [1, 2] if jvm_returns else [2, 1]
        cluster.admin.create_topic(TOPIC, assignment={0: order})
        cluster.await_isr(TOPIC, 1, 2)
        until(lambda: leads(leader), "the leader")
        for end in range(0, 4 * SIZE, SIZE):
            assert (0, end) == produce(leader, end)
        follower.pause()
        assert (0, 4 * SIZE) == produce(leader, 4 * SIZE, acks=1)
        assert (0, 5 * SIZE) == produce(leader, 5 * SIZE, acks=1)
        leader.kill()
        follower.resume()
        until(lambda: leads(follower), "the follower to lead")
        until(lambda: fetch(follower, 0).high_watermark >= 4 * SIZE, "its HW")
        assert (0, 4 * SIZE) == produce(follower, 4 * SIZE, acks=1)
        restart()
        cluster.await_isr(TOPIC, 1, 2)
        assert (0, 5 * SIZE) == produce(follower, 5 * SIZE)
        cluster.await_equal_logs(TOPIC, 1)
        epochs = [
            (seat.logs / f"{TOPIC}-0" / "leader-epoch-checkpoint").read_text()
            for seat in cluster.seats
        ]
        assert epochs[0] == epochs[1]
