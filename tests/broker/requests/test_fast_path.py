"""FastPath gives the responses of the handlers to any request. For Produce and Fetch see also
test_recorded_requests."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.requests import fetch_call
from kafka08.broker.requests.fallback import Fallback
from kafka08.broker.requests.fast_path import Method, api_number
from kafka08.broker.requests.fetch_call import FetchCall
from kafka08.errors import MessageSetSizeTooLarge, ProtocolError, UnknownMemberId
from kafka08.levels import Level
from kafka08.log.coordinator_batches import transactional_batch
from kafka08.log.producers import TransactionEnd
from kafka08.network.server_connection import RequestConnection, ResponseFrame
from kafka08.protocol import message_set
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.compression import SNAPPY
from kafka08.protocol.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from kafka08.protocol.heartbeat import HeartbeatRequest
from kafka08.protocol.join_group import JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse
from kafka08.protocol.leave_group import LeaveGroupRequest
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.served import SERVED
from kafka08.protocol.sync_group import SyncGroupAssignment, SyncGroupRequest
from kafka08.protocol.types import Request
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from tests.broker.world import Client, World

FOLLOWER = 2
REQUESTS = 150
FETCH_3 = api_number(1, 3)
PATHS = pytest.mark.parametrize("path", ["fast", "handlers"])


@pytest.mark.parametrize("level", [Level.V0_9_0, Level.V0_10_2])
@pytest.mark.parametrize("seed", range(4))
def test_both_ways_decide_the_same_of_groups(tmp_path: Path, level: Level, seed: int) -> None:
    """Members of two groups join, sync, send heartbeats, leave and are forgotten; some requests are
    of strangers or cut. Two brokers, one without the fast path, send the same bytes and log the
    same records."""
    fast = World(tmp_path / "fast", api_level=str(level), offsets_topic_num_partitions=1)
    slow = World(tmp_path / "slow", api_level=str(level), offsets_topic_num_partitions=1)
    slow.handle._group_path.clear()
    ways = fast.handle._group_path
    ways |= {number: Counted(handle) for number, handle in ways.items()}
    for world in (fast, slow):
        world.lead(OFFSETS_TOPIC)
    draw = random.Random(seed)
    version = max(v for key, v in SERVED[level].rows if key == 11)
    seats = [Seat(fast, slow, group) for group in ("g", "h") for _ in range(2)]
    for number in range(REQUESTS * 2):
        free = [seat for seat in seats if not seat.pair[0].parked]
        if not free or draw.random() < 0.1:
            seconds = draw.choice((0.1, 4))
            for world in (fast, slow):
                world.runtime.advance(seconds)
            if not free:
                continue
        seat = draw.choice(free)
        frame = bytearray(encode_request(seat.draw(draw, version), number, "c"))
        if draw.random() < 0.02:
            frame[-1 - draw.randrange(20)] ^= 0xFF
        for client in seat.pair:
            try:
                client.send(bytes(frame))
            except ProtocolError:
                client.finish()
        for one in seats:
            left, right = one.pair
            assert (left.parked, left.ending) == (right.parked, right.ending)
            responses = left.frames()
            assert responses == right.frames()
            for response in responses:
                one.note(response)
            if left.ending:
                one.pair = (Client(fast), Client(slow))
        assert group_log(fast) == group_log(slow)
    assert all(way.taken > REQUESTS / 10 for way in ways.values())  # type: ignore[attr-defined]


class Seat:
    """A member of a group: the same connection to two brokers, and what it knows of itself."""

    def __init__(self, fast: World, slow: World, group: str) -> None:
        self.pair = (Client(fast), Client(slow))
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.members: list[str] = []
        self.asked: type[Request] = HeartbeatRequest
        self.version = 0

    def draw(self, draw: random.Random, version: int) -> Request:
        """Its next request: mostly the one that it needs."""
        member_id = draw.choice((self.member_id,) * 15 + ("stranger",))
        kind = 0 if not self.member_id else draw.choice((0, 0, 1, 1, 1, 2, 2, 2, 3))
        request: Request
        if kind == 0:
            name = draw.choice(("range", "range", "range", "roundrobin"))
            protocols = [JoinGroupProtocol(name, draw.randbytes(draw.randint(0, 1)))]
            session_ms = draw.choice((10_000,) * 10 + (1,))
            request = JoinGroupRequest(
                self.group, session_ms, 3_000, member_id, "consumer", protocols, version=version
            )
        elif kind == 1:
            plan = [SyncGroupAssignment(one, one.encode()) for one in self.members]
            request = SyncGroupRequest(self.group, self.generation, member_id, plan)
        elif kind == 2:
            generation = self.generation + draw.choice((0, 0, 0, 1))
            request = HeartbeatRequest(self.group, generation, member_id)
        else:
            request = LeaveGroupRequest(self.group, member_id)
        self.asked, self.version = type(request), request.version
        return request

    def note(self, payload: bytes) -> None:
        _, response = decode_response(self.asked, payload, self.version)
        if response.error_code == UnknownMemberId.code:
            self.member_id = ""
        elif isinstance(response, JoinGroupResponse) and not response.error_code:
            self.member_id, self.generation = response.member_id, response.generation
            self.members = [member.member_id for member in response.members]


def group_log(world: World) -> bytes:
    log = world.partition(OFFSETS_TOPIC).log
    return bytes(log.read(log.log_start_offset, 1 << 20).bytes())


class Counted:
    """A fast path that counts the requests it answers."""

    def __init__(self, handle: Method) -> None:
        self.taken = 0
        self._handle = handle

    def __call__(
        self, payload: memoryview, link: RequestConnection
    ) -> ResponseFrame | Fallback | None:
        response = self._handle(payload, link)
        self.taken += not isinstance(response, Fallback)
        return response


@PATHS
def test_a_response_that_does_not_fit_ends_the_connection_alone(tmp_path: Path, path: str) -> None:
    """A protocol's name of bytes that are no UTF-8 is three times as long as text, and then too
    long for the response. Either way the connection ends, and the group goes on."""
    world = World(tmp_path, api_level="0.10.2", offsets_topic_num_partitions=1)
    world.lead(OFFSETS_TOPIC)
    if path == "handlers":
        world.handle._group_path.clear()

    def join(member_id: str, *names: str) -> JoinGroupRequest:
        protocols = [JoinGroupProtocol(name, b"") for name in names]
        return JoinGroupRequest("g", 10_000, 10_000, member_id, "consumer", protocols, version=1)

    member_id = Client(world).call(join("", "range")).member_id
    client, name = Client(world), "n" * 20_000
    frame = encode_request(join(member_id, name, "range"), 1, "c")
    client.send(frame.replace(name.encode(), b"\xff" * len(name)))
    assert client.ending
    assert not client.outbox
    joined = Client(world).call(join(member_id, "range"))
    assert (0, 3) == (joined.error_code, joined.generation)


def test_a_fetch_that_its_limit_cuts_has_a_whole_message(tmp_path: Path) -> None:
    """A consumer that is behind gets a set as large as its limit with each Fetch 3, but the first
    message is whole. The fast path answers both."""
    world = World(tmp_path, api_level="0.10.2")
    world.lead("t")
    data = message_set.encode([(None, bytes(100))] * 3, magic=1)
    produced = ProduceRequest(1, 1, [ProduceTopic("t", [ProducePartition(0, data)])], version=2)
    assert 0 == Client(world).call(produced).topics[0].partitions[0].error_code
    world.handle._fast_path[FETCH_3] = way = Counted(world.handle._fast_path[FETCH_3])
    message_bytes = len(data) // 3
    for limit, size, taken in ((250, 250, 1), (message_bytes, message_bytes, 2), (90, 134, 3)):
        parts = [FetchPartition(0, 0, limit)]
        request = FetchRequest(-1, 0, 1, [FetchTopic("t", parts)], version=3)
        response = Client(world).call(request)
        assert size == len(response.topics[0].partitions[0].message_set)
        assert taken == way.taken


def world_on(path: str, directory: Path, level: str) -> World:
    world = World(directory, api_level=level, log_segment_bytes=2000)
    if path == "handlers":
        world.handle._fast_path.clear()
    return world


def produce(world: World, sets: dict[str, bytes], version: int = 0) -> list[tuple[str, int]]:
    """The topics of the response, with their error codes."""
    topics = [ProduceTopic(topic, [ProducePartition(0, data)]) for topic, data in sets.items()]
    response = Client(world).call(ProduceRequest(1, 1, topics, version=version))
    return [(topic.topic, topic.partitions[0].error_code) for topic in response.topics]


def fetch(world: World, offsets: dict[str, int], **fields: Any) -> Client:
    """A client that has sent a request with these fetch offsets."""
    topics = [FetchTopic(t, [FetchPartition(0, at, 1 << 20)]) for t, at in offsets.items()]
    request = FetchRequest(
        **{"replica_id": -1, "max_wait_ms": 500, "min_bytes": 1} | fields, topics=topics
    )
    client = Client(world)
    client.send(encode_request(request, 1, "test"))
    return client


def fetched(client: Client, version: int = 0) -> list[tuple[str, int, int]]:
    """Topic, HW and size of each set of the response."""
    (frame,) = client.frames()
    _, response = decode_response(FetchRequest, frame, version)
    return [
        (topic.topic, topic.partitions[0].high_watermark, len(topic.partitions[0].message_set))
        for topic in response.topics
    ]


@PATHS
def test_a_refused_set_is_not_appended_again(tmp_path: Path, path: str) -> None:
    """A set may get its timestamps before it is refused. Appended again, it had the error of a
    client that sets LogAppendTime itself (32), instead of its own."""
    world = world_on(path, tmp_path, "0.10.2")
    world.lead("t", config={"message.timestamp.type": "LogAppendTime"})
    data = message_set.encode([(None, bytes(600))] * 4, magic=1)
    assert [("t", MessageSetSizeTooLarge.code)] == produce(world, {"t": data}, version=2)
    assert 1 == world.partition("t").produce_requests


@PATHS
def test_a_fetch_meets_all_sets_of_a_request(tmp_path: Path, path: str) -> None:
    """A waiting fetch is completed after all sets of a request were appended, those too that need
    an fsync."""
    world = world_on(path, tmp_path, "0.8.2")
    world.lead("t")
    world.lead("flushed", config={"flush.messages": "1"})
    client = fetch(world, {"t": 0, "flushed": 0})
    data = message_set.encode([(None, b"v")])
    assert [("t", 0), ("flushed", 0)] == produce(world, {"t": data, "flushed": data})
    assert [("t", 1, len(data)), ("flushed", 1, len(data))] == fetched(client)


@PATHS
def test_a_rolled_segment_ends_the_wait_for_more_bytes(tmp_path: Path, path: str) -> None:
    """A fetch from the log's end waits for 400 bytes. It gets fewer once they are in another
    segment than that end was."""
    world = world_on(path, tmp_path, "0.8.2")
    world.lead("t")
    data = message_set.encode([(None, bytes(900))])
    assert [("t", 0)] == produce(world, {"t": data}) == produce(world, {"t": data})
    client = fetch(world, {"t": 2}, min_bytes=400)
    small = message_set.encode([(None, bytes(200))])
    assert [("t", 0)] == produce(world, {"t": small})
    assert [("t", 3, len(small))] == fetched(client)


@PATHS
def test_a_follower_gets_the_hw_from_before_its_fetch(tmp_path: Path, path: str) -> None:
    """So it does where the handler must convert the sets, for a follower of an earlier release."""
    world = world_on(path, tmp_path, "0.10.2")
    isr = (1, FOLLOWER)
    for topic in ("t", "u"):
        world.lead(topic, isr=isr, replicas=isr)
    plain = message_set.encode([(None, b"v")], magic=1)
    packed = message_set.encode([(None, b"v" * 100)] * 3, SNAPPY, magic=1)
    produce(world, {"t": plain, "u": packed}, version=2)
    marks = fetched(fetch(world, {"t": 1, "u": 0}, replica_id=FOLLOWER, version=1), 1)
    assert [("t", 0), ("u", 0)] == [mark[:2] for mark in marks]
    assert 1 == world.partition("t").high_watermark


def append_transactional(world: World, topic: str, producer_id: int, count: int) -> None:
    partition = world.partition(topic)
    log = partition.leader_log()
    records = [(b"k", b"v" * 50)] * count
    place = log.log_end_offset, partition.leader_epoch, world.runtime.time_ms()
    log.append_prepared(*transactional_batch(records, producer_id, 0, *place))
    partition.maybe_raise_high_watermark()


def end_transaction(world: World, topic: str, producer_id: int, *, commits: bool) -> None:
    """Its marker may wait for a follower."""
    end = TransactionEnd(producer_id, 0, commits, 0)
    world.context.marker_writer.write(end, [TopicPartition(topic, 0)], lambda *_: None)


@pytest.mark.parametrize("seed", range(6))
def test_both_ways_read_transactions_alike(tmp_path: Path, seed: int) -> None:
    """Transactions of three producers on two partitions are open, committed and aborted, in many
    segments; consumers of both isolation levels and a follower fetch from anywhere, and some wait.
    Two brokers, one without the fast path, send the same bytes."""
    replicas = (1, FOLLOWER)
    fast, slow = (world_on(path, tmp_path / path, "0.11.0") for path in ("fast", "handlers"))
    ways = fast.handle._fast_path
    ways |= {number: Counted(handle) for number, handle in ways.items()}
    for world in (fast, slow):
        for topic in ("t", "u"):
            world.lead(topic, isr=(1,), replicas=replicas, config={"segment.bytes": "1000"})
    draw = random.Random(seed)
    is_open: dict[tuple[str, int], bool] = {}
    read = aborted = 0
    for number in range(REQUESTS):
        offsets = {}
        for topic in draw.choice(("t", "u", "tu", "ut")):
            end = fast.partition(topic).leader_log().log_end_offset
            stable = fast.partition(topic).last_stable_offset
            anywhere = draw.randint(0, end), draw.randint(0, stable)
            offsets[topic] = draw.choice((stable, stable, end, *anywhere, *anywhere, end + 1))
        request = {
            "replica_id": draw.choice((-1, -1, -1, -1, -2, FOLLOWER)),
            "max_wait_ms": draw.choice((0, 500)),
            "isolation_level": draw.choice((0, 1, 1)),
            "max_bytes": draw.choice((100, 500, 1 << 20)),
            "version": draw.choice((4, 5)),
        }
        clients = [fetch(world, offsets, **request) for world in (fast, slow)]
        topic, producer_id = draw.choice("tu"), draw.randrange(3)
        ends = is_open.get((topic, producer_id), False) and draw.random() < 0.6
        is_open[topic, producer_id] = not ends
        count, commits = draw.randint(1, 4), draw.random() < 0.6
        for world in (fast, slow):
            if ends:
                end_transaction(world, topic, producer_id, commits=commits)
            else:
                append_transactional(world, topic, producer_id, count)
            world.runtime.advance(1)
        (ours,), (theirs,) = (client.frames() for client in clients)
        assert ours == theirs
        _, response = decode_response(FetchRequest, ours, request["version"])
        parts = [topic.partitions[0] for topic in response.topics]
        read += any(one.message_set and one.aborted == [] for one in parts)
        aborted += any(one.aborted for one in parts)
        assert number + 1 == sum(way.taken for way in ways.values())  # type: ignore[attr-defined]
    assert read
    assert aborted


@pytest.mark.parametrize("version", [4, 5])
def test_a_reader_of_committed_messages_needs_no_codec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Unless transactions were aborted where it reads: a set ends at the last stable offset, which
    is in the response, with an empty list."""
    world = World(tmp_path, api_level="0.11.0")
    for topic in ("t", "u"):
        world.lead(topic)
    append_transactional(world, "t", 7, 2)
    end_transaction(world, "t", 7, commits=True)
    committed_bytes = world.partition("t").leader_log().size
    append_transactional(world, "t", 7, 1)
    append_transactional(world, "u", 7, 1)
    end_transaction(world, "u", 7, commits=False)

    def by_codec(*_: object) -> None:
        raise AssertionError

    def read(offsets: dict[str, int]) -> list[tuple[int, int, int, Any]]:
        client = fetch(world, offsets, isolation_level=1, version=version, max_wait_ms=0)
        _, response = decode_response(FetchRequest, client.frames()[0], version)
        parts = [topic.partitions[0] for topic in response.topics]
        return [
            (one.high_watermark, one.last_stable_offset, len(one.message_set), one.aborted)
            for one in parts
        ]

    with monkeypatch.context() as patched:
        patched.setattr(fetch_call, "encode_by_codec", by_codec)
        patched.setattr(FetchCall, "decoded", by_codec)
        assert [(4, 3, committed_bytes, []), (2, 2, 0, [])] == read({"t": 0, "u": 2})
    assert [(2, 2, 0, []), (4, 3, 0, [])] == read({"u": 2, "t": 3})
    (of_u,) = read({"u": 0})
    assert [AbortedTransaction(7, 0)] == of_u[3]
