"""Produce and Fetch requests drawn from a random source: what clients and followers send, and also
what they must not send. Nothing here depends on what the broker does with them, except a Fetch's
offsets, which are near the ends of its logs."""

from __future__ import annotations

import random

from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.protocol import message_set
from kafka08.protocol.compression import by_name
from kafka08.protocol.fetch import LIMITED_VERSION, FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.structs import OFFSETS_TOPIC
from tests.broker.world import World

MESSAGE_BYTES_MAX = 1000
SEGMENT_BYTES = 2000
SNAPPY = by_name("snappy")
"""The one codec that is drawn: the bytes of each depend on the release of its library."""
PARTITIONS = {
    "t": 4,
    "u": 2,
    "copied": 2,
    "compact": 1,
    "flushed": 1,
    "safe": 1,
    "old": 1,
    "stamped": 1,
    "strict": 1,
}
"""Topics that a broker leads, at least at first."""
REFUSED = {OFFSETS_TOPIC: 1, "followed": 1, "unknown": 2}
FOLLOWERS = (2, 3)
CONSUMERS = (-1, -1, -1, -1, -1, -1, -1, -2)
STRANGER = 7
PRODUCE_MAGIC_1 = 2


def draw_partitions(draw: random.Random) -> dict[str, list[int]]:
    """Partitions, now and then with one that is unknown, or that this broker does not lead."""
    names = draw.choices(list(PARTITIONS), k=draw.choice((1, 1, 2, 3, 5)))
    if draw.random() < 0.1:
        names.append(draw.choice(list(REFUSED)))
    counts = PARTITIONS | REFUSED
    extra = draw.random() < 0.05
    return {
        name: draw.sample(range(counts[name] + extra), draw.randint(1, counts[name]))
        for name in dict.fromkeys(names)
    }


def draw_set(draw: random.Random, magic: int, now_ms: int) -> bytes:
    """Mostly a plain set; else one that is compressed, empty, cut, too large, broken, or of two
    sizes of magic."""
    count = draw.randint(1, 4)
    has_keys = draw.random() < 0.5
    values = [
        (b"k%d" % draw.randrange(3) if has_keys else None, draw.randbytes(draw.randint(0, 200)))
        for _ in range(count)
    ]
    timestamps = None
    if magic:
        late_ms = draw.choice((0, 0, 0, 5, 20_000, 90_000_000))
        timestamps = [draw.choice((now_ms, now_ms - late_ms, NO_TIMESTAMP)) for _ in values]
    kind = draw.random()
    codec = SNAPPY if kind < 0.12 else 0
    data = bytearray(message_set.encode(values, codec, magic=magic, timestamps=timestamps))
    if kind > 0.98:
        return b""
    if kind > 0.96:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif kind > 0.94:
        del data[-3:]
    elif kind > 0.92:
        return message_set.encode([(b"k", bytes(MESSAGE_BYTES_MAX))], magic=magic)
    elif kind > 0.9:
        return message_set.encode([(b"k", bytes(MESSAGE_BYTES_MAX // 2))] * 4, magic=magic)
    elif kind > 0.88:
        data += message_set.encode(values, codec, magic=1 - magic)
    return bytes(data)


def draw_produce(draw: random.Random, version: int, now_ms: int) -> ProduceRequest:
    magic = int(version >= PRODUCE_MAGIC_1)
    if draw.random() < 0.05:
        magic = 1 - magic
    topics = [
        ProduceTopic(name, [ProducePartition(n, draw_set(draw, magic, now_ms)) for n in numbers])
        for name, numbers in draw_partitions(draw).items()
    ]
    acks = draw.choice((0, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, 2, -2))
    return ProduceRequest(acks, draw.choice((0, 100, 2000)), topics, version=version)


def draw_fetch(
    draw: random.Random, world: World, version: int, *, from_follower: bool
) -> FetchRequest:
    topics = []
    for name, numbers in draw_partitions(draw).items():
        known = world.replica_manager.by_topic_name.get(name.encode(), {})
        topics.append(FetchTopic(name, [draw_position(draw, known.get(n), n) for n in numbers]))
    replica_id = draw.choice(CONSUMERS)
    if from_follower:
        replica_id = STRANGER if draw.random() < 0.03 else draw.choice(FOLLOWERS)
    request = FetchRequest(
        replica_id, draw.choice((0, 0, 50, 500)), draw.choice((0, 1, 1, 1, 400)), topics,
        version=version,
    )  # fmt: skip
    if version >= LIMITED_VERSION:
        request.max_bytes = draw.choice((0, 300, 5000, (1 << 31) - 1, (1 << 31) - 1))
    return request


def draw_position(draw: random.Random, known: object, number: int) -> FetchPartition:
    """A place to fetch from: mostly the end or the HW, else before it, or out of range."""
    log = getattr(known, "log", None)
    start, end, mark = 0, 0, 0
    if log is not None:
        start, end = log.log_start_offset, log.log_end_offset
        mark = known.high_watermark  # type: ignore[attr-defined]
    offset = draw.choice(
        (end, end, end, end, mark, mark, mark, max(start, mark - 2), draw.randint(start, end))
    )
    if draw.random() < 0.05:
        offset = draw.choice((start - 1, end + 1, 0, -5))
    return FetchPartition(number, offset, draw.choice((0, 100, 1000, 1 << 20, 1 << 20, 1 << 20)))
