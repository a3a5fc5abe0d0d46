"""FastPath gives the responses of the handlers to any request."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafka08.broker.replica.traffic import traffic_of
from kafka08.broker.requests.fallback import Fallback
from kafka08.broker.requests.fast_path import Method, api_number
from kafka08.errors import ProtocolError, UnknownMemberId
from kafka08.levels import Level
from kafka08.network.server_connection import RequestConnection, ResponseFrame
from kafka08.protocol import message_set
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.heartbeat import HeartbeatRequest
from kafka08.protocol.join_group import JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse
from kafka08.protocol.leave_group import LeaveGroupRequest
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.served import SERVED
from kafka08.protocol.sync_group import SyncGroupAssignment, SyncGroupRequest
from kafka08.protocol.types import Request
from kafka08.structs import OFFSETS_TOPIC
from tests.broker.world import Client, World

LEVELS = sorted({Level.V0_8_2, Level.V0_9_0, Level.V0_10_2})
TOPICS = {"t": 6, "u": 2, "followed": 1, OFFSETS_TOPIC: 1, "unknown": 2}
FOLLOWER = 2
REQUESTS = 150
FETCH_3 = api_number(1, 3)


def make_world(directory: Path, level: Level) -> World:
    world = World(directory, api_level=str(level), log_segment_bytes=2000)
    world.lead("t", TOPICS["t"], isr=(1, FOLLOWER), replicas=(1, FOLLOWER))
    world.lead("u", TOPICS["u"])
    world.lead("followed", leader=FOLLOWER, isr=(1, FOLLOWER), replicas=(1, FOLLOWER))
    world.lead(OFFSETS_TOPIC)
    return world


def draw_set(draw: random.Random, magic: int, *, odd: bool) -> bytes:
    """A set that is plain, or else compressed, empty, cut, too large or broken."""
    values = [(None, draw.randbytes(draw.randint(0, 200))) for _ in range(draw.randint(1, 4))]
    kind = draw.random() if odd else 0.5
    if kind < 0.05:
        return b""
    data = bytearray(message_set.encode(values, 2 if kind < 0.2 else 0, magic=magic))
    if kind > 0.95:
        data[-1] ^= 1
    elif kind > 0.9:
        del data[-3:]
    elif kind > 0.87:
        return message_set.encode([(None, bytes(3000))])
    return bytes(data)


def draw_partitions(draw: random.Random) -> dict[str, list[int]]:
    """Partitions, with an unknown topic or partition, or one that this broker does not lead, now
    and then."""
    odd = draw.random() < 0.15
    names = list(TOPICS) if odd else ["t", "u"]
    chosen = draw.sample(names, draw.randint(1, len(names)))
    extra = draw.random() < 0.05
    return {
        name: draw.sample(range(TOPICS[name] + extra), draw.randint(1, TOPICS[name]))
        for name in chosen
    }


def draw_produce(draw: random.Random, version: int) -> ProduceRequest:
    magic, odd = int(version == 2), draw.random() < 0.4
    topics = [
        ProduceTopic(name, [ProducePartition(n, draw_set(draw, magic, odd=odd)) for n in numbers])
        for name, numbers in draw_partitions(draw).items()
    ]
    acks = draw.choice((0, 1, 1, 1, -1, -1, 2))
    return ProduceRequest(acks, 100, topics, version=version)


def draw_fetch(draw: random.Random, world: World, version: int) -> FetchRequest:
    topics = []
    for name, numbers in draw_partitions(draw).items():
        parts = []
        for number in numbers:
            known = world.replica_manager.by_topic_name.get(name.encode(), {}).get(number)
            end = known.log.log_end_offset if known is not None and known.log is not None else 0
            mark = known.high_watermark if known is not None else 0
            offset = draw.choice((end, mark, mark, mark, max(0, mark - 2), 0, end + (number == 3)))
            parts.append(FetchPartition(number, offset, draw.choice((0, 100, 1000, 1 << 20))))
        topics.append(FetchTopic(name, parts))
    request = FetchRequest(
        draw.choice((-1, -1, -1, FOLLOWER, FOLLOWER, FOLLOWER, -2, 7)),
        draw.choice((0, 50)),
        draw.choice((0, 1, 1, 400)),
        topics,
        version=version,
    )
    if version >= 3:
        request.max_bytes = draw.choice((0, 300, 5000, (1 << 31) - 1))
    return request


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", range(4))
def test_both_ways_give_the_same_responses(tmp_path: Path, level: Level, seed: int) -> None:
    """Two brokers, one without a fast path, get the same requests on several connections. Their
    responses, HWs, ISRs, counts and logs stay equal, and the fast path answered many of them."""
    fast, slow = make_world(tmp_path / "fast", level), make_world(tmp_path / "slow", level)
    slow.handle._fast_path.clear()
    ways = fast.handle._fast_path
    ways |= {number: Counted(handle) for number, handle in ways.items()}
    draw = random.Random(seed)
    rows = SERVED[level].rows
    links: list[tuple[Client, Client]] = []
    for number in range(REQUESTS):
        kind = draw.randint(0, 1)
        version = draw.choice([v for v in range(4) if (kind, v) in rows])
        request = draw_fetch(draw, fast, version) if kind else draw_produce(draw, version)
        frame = encode_request(request, number, draw.choice(("c", None)))
        free = [pair for pair in links if not pair[0].parked]
        if not free:
            free = [(Client(fast), Client(slow))]
            links += free
        pair = draw.choice(free)
        for client in pair:
            client.send(frame)
        for world in (fast, slow):
            world.runtime.advance(0)  # to the end of the turn
        if draw.random() < 0.2:
            fast.runtime.advance(0.06)
            slow.runtime.advance(0.06)
        for left, right in links:
            assert (left.parked, left.ending) == (right.parked, right.ending), request
            assert left.frames() == right.frames(), request
        assert states(fast) == states(slow), request
        links = [pair for pair in links if not pair[0].ending]
    for key in (0, 1):
        taken = [way.taken for n, way in ways.items() if n >> 16 == key]  # type: ignore[attr-defined]
        assert sum(taken) > REQUESTS / 25


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


def states(world: World) -> list[tuple[object, ...]]:
    return [
        (
            partition.topic_partition,
            partition.high_watermark,
            partition.isr,
            traffic_of([partition]),
            partition.log.log_end if partition.log is not None else None,
            [(f.log_end_offset, f.last_caught_up) for f in partition.followers.values()],
        )
        for partition in world.replica_manager
    ]


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


@pytest.mark.parametrize("path", ["fast", "handlers"])
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


def test_a_fetch_that_its_limit_cuts_is_left_only_without_a_whole_message(tmp_path: Path) -> None:
    """A consumer that is behind gets a set as large as its limit with each Fetch 3. The handler is
    needed if the first message alone exceeds it, which is then whole."""
    world = World(tmp_path, api_level="0.10.2")
    world.lead("t")
    data = message_set.encode([(None, bytes(100))] * 3, magic=1)
    produced = ProduceRequest(1, 1, [ProduceTopic("t", [ProducePartition(0, data)])], version=2)
    assert 0 == Client(world).call(produced).topics[0].partitions[0].error_code
    world.handle._fast_path[FETCH_3] = way = Counted(world.handle._fast_path[FETCH_3])
    message_bytes = len(data) // 3
    for limit, size, taken in ((250, 250, 1), (message_bytes, message_bytes, 2), (90, 134, 2)):
        parts = [FetchPartition(0, 0, limit)]
        request = FetchRequest(-1, 0, 1, [FetchTopic("t", parts)], version=3)
        response = Client(world).call(request)
        assert size == len(response.topics[0].partitions[0].message_set)
        assert taken == way.taken
