"""RangeReader: exactly the messages of its range, each once, whatever the brokers do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08 import kernel
from kafka08.arrow.data_loss import DataLost
from kafka08.arrow.range_reader import RangeReader, _undamaged
from kafka08.arrow.ranges import OffsetRange
from kafka08.client.cluster import ClusterClient
from kafka08.client.pool import ConnectionPool
from kafka08.consumer.fetching.fetched import FetchedSet
from kafka08.errors import (
    InvalidMessage,
    LeaderNotAvailable,
    MessageTooLarge,
    NoBrokersAvailable,
    NotLeaderForPartition,
    UnknownError,
    UnknownTopicOrPartition,
)
from kafka08.kernel.types import ENTRY_HEADER
from kafka08.network.connection import Connection
from kafka08.protocol import codec
from kafka08.protocol.fetch import FetchRequest, FetchResponse
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.types import Request, Response
from kafka08.structs import NO_LEADER, Broker
from tests.arrow.logs import SETTINGS, T0, LogCluster, Pair, Row, rows
from tests.client.epoch_cluster import EpochCluster
from tests.client.fake_cluster import PORT, position_of
from tests.format.captures import LOGS
from tests.network.scripted import Hangup

LENIENT = replace(SETTINGS, fail_on_data_loss=False)


def numbered(start: int, until: int) -> list[Pair]:
    return [(None if o % 3 else b"k%d" % o, b"value %d" % o) for o in range(start, until)]


def expected(start: int, until: int) -> list[Row]:
    pairs = numbered(start, until)
    return [(start + at, key, value) for at, (key, value) in enumerate(pairs)]


@pytest.fixture
def cluster() -> LogCluster:
    """Offsets 0 to 99 of [t,0], led by broker 1, in sets of 10 of every codec in turn."""
    made = LogCluster({"t": {0: 1}})
    for at in range(10):
        made.write(T0, numbered(at * 10, at * 10 + 10), codec=at % 4)
    return made


@given(st.integers(0, 100), st.integers(0, 100), st.integers(50, 3000))
def test_every_cut_of_compressed_sets(start: int, until: int, fetch_bytes: int) -> None:
    """A read has the messages of its range and no others, whatever the range and the fetch size:
    both ends of the range cut sets, also inside wrappers."""
    made = LogCluster({"t": {0: 1}})
    for at in range(10):
        made.write(T0, numbered(at * 10, at * 10 + 10), codec=at % 4)
    start, until = sorted((start, until))
    settings = replace(SETTINGS, fetch_bytes=fetch_bytes)
    assert rows(made.reader(OffsetRange("t", 0, start, until), settings)) == expected(start, until)


def test_sets_know_whether_they_have_wrappers(cluster: LogCluster) -> None:
    """CRCs inside wrappers are checked there, and no other is checked twice."""
    settings = replace(SETTINGS, fetch_bytes=400)
    sets = list(cluster.reader(OffsetRange("t", 0, 0, 100), settings))
    compressed = [any(entry.attributes for entry in kernel.entries(s.data)) for s in sets]
    assert [fetched.has_wrappers for fetched in sets] == compressed
    assert set(compressed) == {True, False}


def test_empty_range_opens_no_connection(cluster: LogCluster) -> None:
    """An empty range is read without a request."""
    assert rows(cluster.reader(OffsetRange("t", 0, 7, 7), leader=1)) == []
    assert cluster.network.opened == []


def test_the_planned_leader_is_asked_without_metadata(cluster: LogCluster) -> None:
    """A task connects to the leader in its partition object, without a Metadata request."""
    assert rows(cluster.reader(OffsetRange("t", 0, 0, 100), leader=1)) == expected(0, 100)
    assert cluster.network.requests(MetadataRequest) == []


def test_the_next_fetch_is_sent_before_a_set_is_handed_out(cluster: LogCluster) -> None:
    """The broker works while Spark copies; but no fetch goes beyond the range."""
    reader = cluster.reader(OffsetRange("t", 0, 0, 100), replace(SETTINGS, fetch_bytes=1000))
    sets = iter(reader)
    first = next(sets)
    fetches = cluster.network.requests(FetchRequest)
    assert len(fetches) == 2
    assert isinstance(fetches[1], FetchRequest)
    assert fetches[1].topics[0].partitions[0].offset == list(first)[-1].offset + 1
    list(sets)
    wanted = [
        request.topics[0].partitions[0].offset
        for request in cluster.network.requests(FetchRequest)
        if isinstance(request, FetchRequest)
    ]
    assert len(set(wanted)) == len(wanted), "an offset was fetched twice"
    assert max(wanted) < 100


def test_an_abandoned_read_leaves_no_response_behind(cluster: LogCluster) -> None:
    """A connection with a fetch in flight is closed; one without is used again."""
    sets = iter(cluster.reader(OffsetRange("t", 0, 0, 100)))
    next(sets)
    sets.close()  # type: ignore[attr-defined]  # it is a generator
    fetching = cluster.network.sockets[1:]
    assert fetching
    assert all(sock.closed for sock in fetching)
    assert rows(cluster.reader(OffsetRange("t", 0, 0, 100))) == expected(0, 100)
    used = len(cluster.network.sockets)
    assert rows(cluster.reader(OffsetRange("t", 0, 0, 100))) == expected(0, 100)
    assert len(cluster.network.sockets) == used


@pytest.mark.parametrize(
    "error",
    [NotLeaderForPartition, LeaderNotAvailable, UnknownTopicOrPartition, UnknownError],
)
def test_passing_errors_are_tried_again(cluster: LogCluster, error: type[UnknownError]) -> None:
    """The leader is looked up after each retriable error, and no row comes twice."""
    cluster.refuse(T0, 0, error.code, error.code, 0, error.code)
    assert rows(cluster.reader(OffsetRange("t", 0, 5, 95))) == expected(5, 95)
    assert cluster.clock.slept == [0.1] * 3


def test_the_leader_moves_between_sets(cluster: LogCluster) -> None:
    """The read continues at the new leader."""
    read: list[Row] = []
    for fetched in cluster.reader(OffsetRange("t", 0, 0, 100), leader=1):
        read += [(m.offset, m.key, m.value) for m in fetched.decoded(until_offset=100)]
        cluster.leaders[T0] = 2
    assert read == expected(0, 100)
    assert ("b2", PORT) in cluster.network.opened


def test_after_a_leader_died_a_worker_asks_once(cluster: LogCluster) -> None:
    """The first read finds the new leader; later ones of the process connect to it at once, though
    the plan names the dead one."""
    cluster.down(1)
    cluster.leaders[T0] = 2
    lost: set[Broker] = set()
    assert rows(cluster.reader(OffsetRange("t", 0, 0, 50), leader=1, lost=lost)) == expected(0, 50)
    asked, waited = len(cluster.network.requests(MetadataRequest)), len(cluster.clock.slept)
    for start in (50, 70):
        wanted = OffsetRange("t", 0, start, 100)
        assert rows(cluster.reader(wanted, leader=1, lost=lost)) == expected(start, 100)
    assert (asked, waited) == (1, 1)
    assert len(cluster.network.requests(MetadataRequest)) == asked
    assert len(cluster.clock.slept) == waited


def test_a_partition_without_a_leader_is_waited_for(cluster: LogCluster) -> None:
    """A read continues if the partition gets a leader within poll_timeout_ms."""
    cluster.leaders[T0] = NO_LEADER
    reader = cluster.reader(OffsetRange("t", 0, 0, 100))
    sleep = cluster.clock.sleep

    def sleep_until_elected(seconds: float) -> None:
        sleep(seconds)
        if len(cluster.clock.slept) == 5:
            cluster.leaders[T0] = 2

    cluster.clock.sleep = sleep_until_elected  # type: ignore[method-assign]
    assert rows(reader) == expected(0, 100)


def test_no_progress_ends_with_the_last_error(cluster: LogCluster) -> None:
    """After poll_timeout_ms the last error is raised, with partition and offset."""
    cluster.leaders[T0] = NO_LEADER
    with pytest.raises(LeaderNotAvailable, match=r"\[t,0\]: no progress in 3000 ms at offset 5"):
        rows(cluster.reader(OffsetRange("t", 0, 5, 100)))
    assert 3.0 <= sum(cluster.clock.slept) <= 3.3


def test_all_brokers_gone(cluster: LogCluster) -> None:
    """A read without any broker fails after poll_timeout_ms, not at once."""
    cluster.down(1)
    cluster.down(2)
    with pytest.raises(NoBrokersAvailable, match="no progress"):
        rows(cluster.reader(OffsetRange("t", 0, 5, 100), leader=1))


@pytest.mark.parametrize("cut_every", [1, 7, 50])
def test_connections_lost_at_each_byte(cluster: LogCluster, cut_every: int) -> None:
    """Wherever in a response the connection breaks, each row comes once."""
    respond, cuts = cluster.respond, iter(range(0, 1200, cut_every))

    def cut(request: Request) -> Response | None:
        response = respond(1, request)
        assert response is not None
        at = next(cuts, None) if isinstance(request, FetchRequest) else None
        if at is None:
            return response
        raise Hangup(codec.encode_response(response, 0)[:at])

    cluster.network.broker("b1", PORT, cut)
    settings = replace(SETTINGS, poll_timeout_ms=10_000_000)
    assert rows(cluster.reader(OffsetRange("t", 0, 0, 100), settings)) == expected(0, 100)
    assert next(cuts, 1200) > 200, "connections were cut"


# ------------------------------------------------------------------------------ sizes and damage


def test_large_messages_make_the_fetch_grow(cluster: LogCluster) -> None:
    """A message larger than the fetch size is fetched again with its size, which later fetches
    keep."""
    cluster.write(T0, [(None, b"x" * 50_000), (None, b"y" * 50_000), (None, b"z")])
    read = rows(cluster.reader(OffsetRange("t", 0, 95, 103)))
    assert [value for _, _, value in read][5:] == [b"x" * 50_000, b"y" * 50_000, b"z"]
    sizes = [
        request.topics[0].partitions[0].max_bytes
        for request in cluster.network.requests(FetchRequest)
        if isinstance(request, FetchRequest)
    ]
    assert sizes == sorted(sizes)
    assert sizes.count(50_026) >= 1


def test_too_large_a_message_is_named(cluster: LogCluster) -> None:
    """A message above max_fetch_bytes fails the read; the error has its offset and size."""
    cluster.write(T0, [(None, b"x" * 50_000)])
    with pytest.raises(MessageTooLarge, match="offset 100 has 50026 bytes, more than the 20000"):
        rows(
            cluster.reader(OffsetRange("t", 0, 95, 101), replace(SETTINGS, max_fetch_bytes=20_000))
        )


def test_rows_before_damage_are_read(cluster: LogCluster) -> None:
    """A wrong CRC fails the read with topic, partition and offset, after the rows in front of
    it."""
    cluster.logs[T0][: 10 * 30] = _flipped(bytes(cluster.logs[T0][: 10 * 30]), offset=4)
    sets = iter(cluster.reader(OffsetRange("t", 0, 0, 100)))
    assert [message.offset for message in next(sets)] == [0, 1, 2, 3]
    with pytest.raises(InvalidMessage, match=r"\[t,0\] at b1:9092, offset 4: "):
        next(sets)


def test_damage_behind_the_range_does_not_matter(cluster: LogCluster) -> None:
    """A damaged message behind the range's end is no error."""
    cluster.logs[T0][: 10 * 30] = _flipped(bytes(cluster.logs[T0][: 10 * 30]), offset=4)
    assert rows(cluster.reader(OffsetRange("t", 0, 0, 4))) == expected(0, 4)


def test_an_unknown_codec_is_named(cluster: LogCluster) -> None:
    """A set with an unknown codec fails the read with its offset; it is not skipped."""
    entry = kernel.wrap(b"whatever", 104, 5)
    cluster.logs[T0] += entry
    cluster.shapes[T0].end = 105
    with pytest.raises(InvalidMessage, match="offset 104: 5 is an unknown compression codec"):
        rows(cluster.reader(OffsetRange("t", 0, 90, 105)))


def _flipped(data: bytes, offset: int) -> bytes:
    """`data` with one bit of the value of the entry at `offset` changed."""
    entry = next(e for e in kernel.entries(data) if e.offset == offset)
    changed = bytearray(data)
    changed[entry.position + entry.size + 11] ^= 1
    return bytes(changed)


# -------------------------------------------------------------------------------- holes and loss


def test_holes_are_no_loss() -> None:
    """Offsets that compaction removed, also across the range's end, are not data loss."""
    cluster = LogCluster({"t": {0: 1}})
    cluster.write(T0, numbered(0, 10))
    cluster.leave_hole(T0, 20)
    cluster.write(T0, numbered(30, 40))
    cluster.leave_hole(T0, 10)
    assert rows(cluster.reader(OffsetRange("t", 0, 5, 35))) == expected(5, 10) + expected(30, 35)
    assert rows(cluster.reader(OffsetRange("t", 0, 12, 28))) == []
    assert rows(cluster.reader(OffsetRange("t", 0, 38, 50))) == expected(38, 40)
    assert cluster.clock.slept == []


@pytest.mark.parametrize("fail", [True, False])
def test_retention_overtakes_the_read(cluster: LogCluster, fail: bool) -> None:
    """Offsets that retention deletes during a read are one error that lists them, or are
    skipped."""
    cluster.trim(T0, 40)
    reader = cluster.reader(OffsetRange("t", 0, 10, 90), SETTINGS if fail else LENIENT)
    if fail:
        with pytest.raises(DataLost, match=r"\[t,0\] \[10, 90\): only \[40, 100\) is there"):
            rows(reader)
    else:
        assert rows(reader) == expected(40, 90)


@pytest.mark.parametrize("fail", [True, False])
def test_everything_is_gone(cluster: LogCluster, fail: bool) -> None:
    """A range below the earliest offset is an error, or empty if loss is accepted."""
    cluster.trim(T0, 40)
    reader = cluster.reader(OffsetRange("t", 0, 10, 30), SETTINGS if fail else LENIENT)
    if fail:
        with pytest.raises(DataLost):
            rows(reader)
    else:
        assert rows(reader) == []


@pytest.mark.parametrize("fail", [True, False])
def test_the_log_was_truncated(cluster: LogCluster, fail: bool) -> None:
    """A log that ends inside the range, after an unclean election, is data loss after
    poll_timeout_ms."""
    reader = cluster.reader(OffsetRange("t", 0, 90, 120), SETTINGS if fail else LENIENT)
    respond = cluster.respond

    def slow(request: Request) -> Response | None:
        cluster.clock.advance(0.5)
        return respond(1, request)

    cluster.network.broker("b1", PORT, slow)
    if fail:
        with pytest.raises(DataLost, match=r"\[100, 120\): only \[100, 100\) is there"):
            rows(reader)
    else:
        assert rows(reader) == expected(90, 100)


def test_a_lagging_high_watermark_is_waited_for(cluster: LogCluster) -> None:
    """An empty response below the range's end is fetched again."""
    cluster.shapes[T0].visible = 60
    asked = 0
    respond = cluster.respond

    def catching_up(request: Request) -> Response | None:
        nonlocal asked
        asked += isinstance(request, FetchRequest)
        if asked == 9:
            cluster.shapes[T0].visible = None
        return respond(1, request)

    cluster.network.broker("b1", PORT, catching_up)
    assert rows(cluster.reader(OffsetRange("t", 0, 50, 100))) == expected(50, 100)


def test_a_high_watermark_that_moves_during_a_fetch_is_no_hole(cluster: LogCluster) -> None:
    """The leader reads up to the old high watermark and responds with the new one: an empty set,
    and a high watermark behind the range. The messages exist."""
    cluster.shapes[T0].visible = 60
    respond = cluster.respond

    def moving(request: Request) -> Response | None:
        response = respond(1, request)
        if isinstance(response, FetchResponse):
            (part,) = response.topics[0].partitions
            if not part.message_set:
                cluster.shapes[T0].visible = None
                part.high_watermark = 100
        return response

    cluster.network.broker("b1", PORT, moving)
    assert rows(cluster.reader(OffsetRange("t", 0, 50, 100))) == expected(50, 100)
    assert cluster.clock.slept == []


@pytest.mark.parametrize("marker", [5, 9])
def test_an_offset_that_a_later_broker_withholds_is_passed(marker: int) -> None:
    """A broker from 1.0 on sends the header of an impossible message in place of a transaction's
    marker: the reader goes on behind it, also at the end of its range."""
    made = LogCluster({"t": {0: 1}})
    made.write(T0, numbered(0, marker))
    made.leave_hole(T0, 1)
    made.write(T0, numbered(marker + 1, 12))

    def withholding(request: Request) -> Response | None:
        response = made.respond(1, request)
        if isinstance(request, FetchRequest) and isinstance(response, FetchResponse):
            (asked,), (part,) = request.topics[0].partitions, response.topics[0].partitions
            if asked.offset == marker:
                part.message_set = ENTRY_HEADER.pack(-1, 73) + bytes(49)
            elif asked.offset < marker:
                before = position_of(bytes(part.message_set), marker)
                part.message_set = part.message_set[:before]
        return response

    made.network.broker("b1", PORT, withholding)
    found = rows(made.reader(OffsetRange("t", 0, 3, 10)))
    assert found == expected(3, marker) + expected(marker + 1, 10)


def test_a_silent_broker_is_an_error(cluster: LogCluster) -> None:
    """A broker that does not respond is an error even if data loss is accepted: only the leader
    knows where the log ends."""
    cluster.refuse(T0, *[NotLeaderForPartition.code] * 100)
    with pytest.raises(NotLeaderForPartition, match="no progress"):
        rows(cluster.reader(OffsetRange("t", 0, 5, 100), LENIENT))


@pytest.mark.parametrize("fail", [True, False])
def test_a_topic_that_is_deleted_during_the_read(cluster: LogCluster, fail: bool) -> None:
    """The rest of the range is one error, or is passed over if loss is accepted: the ranges of
    other topics are read then. (It used to end with UnknownTopicOrPartition in both cases.)"""
    settings = replace(SETTINGS, poll_timeout_ms=120_000, fetch_bytes=300, fail_on_data_loss=fail)
    reader = cluster.reader(OffsetRange("t", 0, 0, 100), settings)
    found = []
    sets = iter(reader)
    found.append(next(sets))
    del cluster.leaders[T0]
    if fail:
        with pytest.raises(DataLost, match=r"\[t,0\] \[\d+, 100\): the partition is gone"):
            found += sets
    else:
        found += sets
        assert [fetched.offset for fetched in found] == [0, found[-1].offset]
    assert 10 <= sum(cluster.clock.slept) < 11


def test_a_topic_that_brokers_do_not_list_for_a_moment(cluster: LogCluster) -> None:
    """Brokers that have just started know fewer partitions: nothing is lost."""
    reader = cluster.reader(OffsetRange("t", 0, 0, 100), replace(LENIENT, poll_timeout_ms=120_000))
    leader = cluster.leaders.pop(T0)
    sleep = cluster.clock.sleep

    def sleep_until_listed(seconds: float) -> None:
        sleep(seconds)
        if sum(cluster.clock.slept) > 9:
            cluster.leaders[T0] = leader

    cluster.clock.sleep = sleep_until_listed  # type: ignore[method-assign]
    assert rows(reader) == expected(0, 100)


def test_batches_of_records_are_not_read_in_place() -> None:
    """Their values do not begin where those of a message do, compressed or not."""
    data, _ = LOGS["v-plain-0/00000000000000000000.log"]
    fetched = FetchedSet(T0, 0, data, 1 << 20, "b1:9092")
    checked = _undamaged(fetched, 7)
    assert checked is not None
    assert checked[0].has_wrappers
    assert checked[1] == 7


@pytest.mark.parametrize("fail", [True, False])
def test_a_leader_without_what_was_read_is_data_loss(
    fail: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """After an unclean election within a read, although the new log is long enough for the range:
    an error, or a warning and the rest of the offsets."""
    cluster = EpochCluster(1)
    cluster.append(T0, *[b"old %d" % n for n in range(6)])
    settings = replace(SETTINGS, fail_on_data_loss=fail, fetch_bytes=100)
    client = ClusterClient(cluster.bootstrap, negotiates=True, runtime=cluster.runtime)
    pool = ConnectionPool(
        lambda host, port: Connection(host, port, negotiates=True, runtime=cluster.runtime)
    )
    client.refresh()
    reader = RangeReader(OffsetRange("t", 0, 0, 6), settings, client, pool)
    sets = iter(reader)
    found = [next(sets), next(sets), next(sets)]
    cluster.elect(T0, leader=2, keeps=2)
    cluster.append(T0, *[b"new %d" % n for n in range(2, 8)])
    if fail:
        with pytest.raises(DataLost, match="messages from offset 2 to"):
            list(sets)
        return
    found += sets
    values = [m.value for one in found for m in one.decoded(until_offset=6)]
    assert values == [b"old %d" % n for n in range(4)] + [b"new 4", b"new 5"]
    assert "reading continues at offset 4" in caplog.text
