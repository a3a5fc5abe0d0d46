"""Brokers of level 0.10.2 beside a JVM 0.10.2.2: messages with timestamps (magic 1).

magic 1 …        Produce 2: plain sets, and sets that the client compressed, which neither
                 broker packs again
up-converted     Produce 0: magic 0 for logs of magic 1
fetch 3          Fetch 3 of plain sets, which goes from the file to the socket
fetch 0 …        Fetch 0 of the same logs: converted to magic 0
offsets by time  ListOffsets 1: the first message of a time
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import load
from benchmarks.broker_cases import (
    IN_FLIGHT_BYTES,
    PARTITIONS,
    WINDOW,
    Case,
    Play,
    driven_megabytes,
    driven_requests,
    request_rate,
    throughput,
)
from benchmarks.rounds import run_case
from benchmarks.subjects import JvmSubject, OurSubject, Subject
from kafka08.protocol import codec, compression, message_set
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.offsets import OffsetsPartition, OffsetsRequest, OffsetsTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.types import Request
from tests.interop.jvm import POM_0_10_2

VALUE_BYTES: Final = 100
SET_BYTES: Final = 200_000
FETCH_BYTES: Final = 1 << 20
LOG_BYTES: Final = 40_000_000
"""Of the log that is fetched, before compression."""
TIMES: Final = 512
"""Times that are asked for, in a fixed random order."""
FETCH_PARTITION: Final = 0
Prepare = Callable[[Subject, str], Play]


def new_set(set_bytes: int, codec_id: int = 0, magic: int = 1) -> bytes:
    """A set whose messages have about `set_bytes`, with the time of now: retention is by it."""
    entry_bytes = load.ENTRY_OVERHEAD + VALUE_BYTES + 8 * magic
    count = set_bytes // entry_bytes
    values = [b"%08d " % (n * 2654435761 % 10**8) * (VALUE_BYTES // 9 + 1) for n in range(count)]
    now_ms = time.time_ns() // 1_000_000
    return message_set.encode(
        [(None, value[:VALUE_BYTES]) for value in values],
        codec_id,
        magic=magic,
        timestamps=[now_ms + n for n in range(count)] if magic else None,
    )


def produce_frame(topic: str, partition: int, data: bytes, version: int) -> bytes:
    topics = [ProduceTopic(topic, [ProducePartition(partition, data)])]
    return _frame(ProduceRequest(1, 10_000, topics, version=version))


def fetch_frame(topic: str, offset: int, version: int) -> bytes:
    topics = [FetchTopic(topic, [FetchPartition(FETCH_PARTITION, offset, FETCH_BYTES)])]
    return _frame(FetchRequest(-1, 0, 1, topics, version=version))


def time_frame(topic: str, time_ms: int) -> bytes:
    topics = [OffsetsTopic(topic, [OffsetsPartition(FETCH_PARTITION, time_ms, 1)])]
    return _frame(OffsetsRequest(-1, topics, version=1))


def _frame(request: Request) -> bytes:
    return codec.encode_request(request, 1, load.CLIENT_ID)


def check(request: type[Request], response_frame: bytes, version: int) -> None:
    """Raise unless every partition is without error."""
    _, response = codec.decode_response(request, memoryview(response_frame)[4:], version)
    codes = {p.error_code for topic in response.topics for p in topic.partitions}
    assert codes == {0}, f"the broker answered with the errors {codes}"


def produce(codec_id: int = 0, set_bytes: int = SET_BYTES, magic: int = 1) -> Prepare:
    """Four connections, a partition each; MB are those of the messages, before compression."""
    version = 2 if magic else 0

    def prepare(subject: Subject, topic: str) -> Play:
        data = new_set(set_bytes, codec_id, magic)
        frames = [produce_frame(topic, p, data, version) for p in range(PARTITIONS)]
        with load.connect(subject.address) as connection:
            responses = [load.exchange(connection, frame) for frame in frames]
        for response in responses:
            check(ProduceRequest, response, version)
        window = max(2, min(WINDOW, IN_FLIGHT_BYTES // len(data)))
        streams = [
            load.Stream(subject.address, [frame], len(response), window)
            for frame, response in zip(frames, responses, strict=True)
        ]
        return partial(driven_megabytes, subject, streams, set_bytes)

    return prepare


def fetch(version: int, codec_id: int = 0) -> Prepare:
    """One connection reads a log in fetches of 1 MB, two ahead, round and round. MB are those that
    are sent."""

    def prepare(subject: Subject, topic: str) -> Play:
        end = fill(subject, topic, codec_id)
        with load.connect(subject.address) as connection:
            first = load.exchange(connection, fetch_frame(topic, 0, version))
            check(FetchRequest, first, version)
            # Responses must have one size to be counted: of what is compressed, that of one fetch.
            step = end // (LOG_BYTES // FETCH_BYTES)
            offsets = [0] if codec_id else range(0, end - 2 * step, step)
            frames = [fetch_frame(topic, offset, version) for offset in offsets]
        stream = load.Stream(subject.address, frames, len(first), 2)
        return partial(driven_megabytes, subject, [stream], len(first))

    return prepare


def fill(subject: Subject, topic: str, codec_id: int) -> int:
    """Write the log that is fetched; returns its end."""
    data = new_set(SET_BYTES, codec_id)
    frame = produce_frame(topic, FETCH_PARTITION, data, 2)
    sets = LOG_BYTES // SET_BYTES
    with load.connect(subject.address) as connection:
        for _ in range(sets):
            check(ProduceRequest, load.exchange(connection, frame), 2)
    return sets * len(list(message_set.decode(data)))


def offsets_by_time(subject: Subject, topic: str) -> Play:
    """Four connections ask for times all over a log."""
    now_ms, sets = time.time_ns() // 1_000_000, LOG_BYTES // SET_BYTES
    values = [(None, bytes(VALUE_BYTES))] * (SET_BYTES // (VALUE_BYTES + load.ENTRY_OVERHEAD + 8))
    with load.connect(subject.address) as connection:
        for number in range(sets):
            first = now_ms + number * len(values)
            times = range(first, first + len(values))
            data = message_set.encode(values, magic=1, timestamps=list(times))
            frame = produce_frame(topic, FETCH_PARTITION, data, 2)
            check(ProduceRequest, load.exchange(connection, frame), 2)
        draw = random.Random(1)
        total = sets * len(values)
        frames = [time_frame(topic, now_ms + draw.randrange(total)) for _ in range(TIMES)]
        response = load.exchange(connection, frames[0])
    check(OffsetsRequest, response, 1)
    streams = [load.Stream(subject.address, frames, len(response), WINDOW) for _ in range(4)]
    return partial(driven_requests, subject, streams)


CASES: Final = (
    Case("magic 1, 16 KB sets", throughput(2, 0.4), produce(set_bytes=16_384)),
    Case("magic 1, 200 KB sets", throughput(2, 0.4), produce()),
    Case("magic 1, snappy", throughput(3, 0.2), produce(compression.SNAPPY)),
    Case("magic 1, lz4", throughput(3, 0.2), produce(compression.LZ4)),
    Case("magic 1, gzip", throughput(3, 0.2), produce(compression.GZIP)),
    Case("up-converted", throughput(2, 0.4), produce(magic=0)),
    Case("fetch 3", throughput(1.5, 0.5), fetch(3)),
    Case("fetch 0", throughput(3, 0.5), fetch(0)),
    Case("fetch 0, snappy", throughput(3, 0.5), fetch(0, compression.SNAPPY)),
    Case("offsets by time", request_rate(2, 0.5), offsets_by_time),
)


def level_cases(
    directory: Path, zookeeper: str, only: str, rounds: int, seconds: float
) -> list[dict[str, object]]:
    """Medians of the cases whose name contains `only`."""
    wanted = [case for case in CASES if only in case.name]
    if not wanted:
        return []
    root = f"{zookeeper}/levels"
    keys = {"api.level": "0.10.2"}
    subjects: list[Subject] = [
        JvmSubject(directory / "jvm-levels", f"{root}/jvm", pom=POM_0_10_2),
        OurSubject(directory / "our-levels", f"{root}/ours", keys),
    ]
    rows: list[dict[str, object]] = []
    with ExitStack() as stack:
        for subject in subjects:
            stack.callback(subject.kill)
            subject.start()
        for case in wanted:
            rows += run_case(
                case, subjects, root, directory=directory, rounds=rounds, seconds=seconds
            )
    return rows
