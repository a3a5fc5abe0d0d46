"""Produce and Fetch requests drawn from a random source: what clients and followers send, and also
what they must not send. Nothing here depends on what the broker does with them, except a Fetch's
offsets, which are near the ends of its logs."""

from __future__ import annotations

import random

from kafka08.format.v2 import encoded_headers, record, sent_batch, stamp
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
PRODUCE_MAGIC_2 = 3
FETCH_ISOLATION = 4
FETCH_LOG_START = 5
PRODUCER_IDS = (100, 101)
TRANSACTIONAL_ID, TRANSACTIONAL = "x", 102
"""A producer whose batches belong to a transaction; its coordinator is another broker."""


class Sequences:
    """What idempotent producers have sent, as if all of it had been taken."""

    def __init__(self) -> None:
        self.epochs = dict.fromkeys((*PRODUCER_IDS, TRANSACTIONAL), 0)
        self._next: dict[tuple[int, int, str, int], int] = {}

    def stamp(
        self, draw: random.Random, batch: bytearray, producer_id: int, place: tuple[str, int]
    ) -> None:
        """Mostly as the next batch of that partition; else as the last one again, behind a gap, or
        as the first of a new epoch."""
        kind, count = draw.random(), int.from_bytes(batch[57:61], "big")
        if kind > 0.97:
            self.epochs[producer_id] += 1
        epoch = self.epochs[producer_id]
        sequence = self._next.get((producer_id, epoch, *place), 0)
        if kind < 0.1:
            sequence = max(0, sequence - count)
        elif kind < 0.14:
            sequence += 5
        self._next[producer_id, epoch, *place] = sequence + count
        is_transactional = producer_id == TRANSACTIONAL
        stamp(batch, producer_id, epoch, sequence, is_transactional=is_transactional)


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


def draw_batch(
    draw: random.Random, now_ms: int, producer_id: int | None, place: tuple[str, int],
    sequences: Sequences,
) -> bytes:  # fmt: skip
    """Mostly one plain record batch; else compressed, empty, cut, too large, broken, several, or a
    set of an earlier format."""
    kind = draw.random()
    if kind > 0.98:
        return b""
    if kind > 0.96:
        return draw_set(draw, draw.randint(0, 1), now_ms)
    size = MESSAGE_BYTES_MAX if kind > 0.94 else draw.randint(0, 200)
    count = draw.randint(1, 4)
    records = b"".join(
        record(
            number,
            number,
            draw.choice((None, b"k%d" % draw.randrange(3))),
            draw.randbytes(size),
            encoded_headers([("h", draw.choice((None, b"v")))] * draw.choice((0, 0, 1, 2))),
        )
        for number in range(count)
    )
    late_ms = draw.choice((0, 0, 0, 5, 20_000, 90_000_000))
    data = sent_batch(records, count, now_ms - late_ms, now_ms - late_ms + count - 1)
    if kind < 0.12:
        data = message_set.pack(data, SNAPPY, 0, 2)
    if producer_id is not None:
        sequences.stamp(draw, data, producer_id, place)
    if kind > 0.92:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif kind > 0.9:
        del data[-3:]
    elif kind > 0.88:
        data = data + data
    return bytes(data)


def draw_batches(draw: random.Random, now_ms: int, sequences: Sequences) -> ProduceRequest:
    """Produce 3, of one producer or of none."""
    producer_id = draw.choice((None, *PRODUCER_IDS, TRANSACTIONAL))
    topics = [
        ProduceTopic(
            name,
            [
                ProducePartition(n, draw_batch(draw, now_ms, producer_id, (name, n), sequences))
                for n in numbers
            ],
        )
        for name, numbers in draw_partitions(draw).items()
    ]
    acks = draw.choice((0, 1, 1, -1, -1, -1, -1, 2))
    is_named = producer_id == TRANSACTIONAL and draw.random() < 0.95
    return ProduceRequest(
        acks, draw.choice((0, 100, 2000)), topics, TRANSACTIONAL_ID if is_named else None,
        version=PRODUCE_MAGIC_2,
    )  # fmt: skip


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
    if version >= FETCH_ISOLATION:
        request.isolation_level = draw.randint(0, 1)
    if version >= FETCH_LOG_START and from_follower:
        for partition in (one for topic in topics for one in topic.partitions):
            partition.log_start_offset = draw.choice((0, 0, 1, 3, partition.offset))
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
