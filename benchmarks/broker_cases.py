"""The cases that measure a broker. Each case runs on both brokers in turn, several rounds, and
gives figures by name; `__main__` takes medians and ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from benchmarks import load
from benchmarks.report import GENERATOR, Goal
from benchmarks.subjects import Subject, cpu_seconds, resident_megabytes
from kafka08.protocol import codec, message_set
from kafka08.protocol.fetch import FetchRequest
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.produce import ProduceRequest

PARTITIONS = 4
WIDE = 200
"""Partitions of one request where requests are wide."""
WIDE_CONNECTIONS = 4
WIDE_WINDOW = 4
WINDOW = 64
"""Requests that a connection keeps on their way, unless that is more than IN_FLIGHT_BYTES."""
IN_FLIGHT_BYTES = 1 << 20
"""Five sets of 200 KB, the max.in.flight.requests.per.connection of 0.8.2's own producer."""
DEEP_BYTES = 4 << 20
"""So much on each connection waits in sockets until it has left the processor's caches, and what is
timed is the machine's memory: a loop of C that only receives, checks and writes loses a third."""

PIECE_BYTES = 64 << 10
FETCH_BYTES = 1 << 20
FETCHED_BYTES = 100_000_000


Figures: TypeAlias = dict[str, float]
Play: TypeAlias = Callable[[float], Figures]
"""About so many seconds of load → its figures; `done` has the number of requests. Repeatable."""


@dataclass(frozen=True, slots=True)
class Case:
    """`prepare(subject, topic)` fills the topic and returns the load; `topic` is new and has
    `partitions` partitions, or is empty if the case needs none."""

    name: str
    goals: tuple[Goal, ...]
    prepare: Callable[[Subject, str], Play]
    needs_topic: bool = True
    partitions: int = PARTITIONS


def throughput(speed: float, cpu: float) -> tuple[Goal, ...]:
    return (Goal("rate", "MB/s", speed, True), Goal("cpu", "s/GB", cpu, False))


def request_rate(speed: float, cpu: float) -> tuple[Goal, ...]:
    return (Goal("requests", "/s", speed, True), Goal("cpu", "ms/rq", cpu, False))


def driven_megabytes(
    subject: Subject, streams: Sequence[load.Stream], size: int, seconds: float
) -> Figures:
    """The figures of `throughput`, a request counted as `size` bytes, and those of `driven`."""
    figures = driven(subject, streams, seconds)
    figures["rate"] = figures["requests"] * size / 1e6
    figures["cpu"] = figures["broker"] / figures["done"] / size * 1e9
    return figures


def driven_requests(subject: Subject, streams: Sequence[load.Stream], seconds: float) -> Figures:
    """The figures of `request_rate`, and those of `driven`."""
    figures = driven(subject, streams, seconds)
    figures["cpu"] = figures["broker"] / figures["done"] * 1000
    return figures


def driven(subject: Subject, streams: Sequence[load.Stream], seconds: float) -> Figures:
    """`requests` a second and `done` in all; CPU seconds of the `broker`; and GENERATOR, the part
    of one core that this process took to send them."""
    broker, generator = cpu_seconds(subject.pid), time.process_time()
    requests, elapsed = load.drive(streams, seconds)
    return {
        "requests": requests / elapsed,
        "done": requests,
        "broker": cpu_seconds(subject.pid) - broker,
        GENERATOR: (time.process_time() - generator) / elapsed,
    }


def produce(
    data: bytes, content_size: int, in_flight: int = IN_FLIGHT_BYTES
) -> Callable[[Subject, str], Play]:
    """Four connections, a partition each, sets of `data`; MB counts `content_size` a set."""

    def prepare(subject: Subject, topic: str) -> Play:
        frames = [load.produce_frame(topic, p, data) for p in range(PARTITIONS)]
        with load.connect(subject.address) as connection:
            responses = [load.exchange(connection, frame) for frame in frames]
        for response in responses:
            load.check_response(ProduceRequest, response)
        window = max(2, min(WINDOW, in_flight // len(data)))
        streams = [
            load.Stream(subject.address, [frame], len(response), window)
            for frame, response in zip(frames, responses, strict=True)
        ]
        return partial(driven_megabytes, subject, streams, content_size)

    return prepare


def fetch(data: bytes, connections: int = 1) -> Callable[[Subject, str], Play]:
    """Each connection reads a partition of its own in 1 MB fetches, two ahead, round and round;
    together they have 100 MB, as the broker stores sets of `data`."""

    def prepare(subject: Subject, topic: str) -> Play:
        streams = [
            load.Stream(subject.address, *fetch_frames(subject, topic, partition, data, size), 2)
            for partition in range(connections)
        ]
        return partial(driven_megabytes, subject, streams, FETCH_BYTES)

    size = FETCHED_BYTES // connections
    return prepare


def fetch_frames(
    subject: Subject, topic: str, partition: int, data: bytes, size: int
) -> tuple[list[bytes], int]:
    """Fill a partition with at least `size` bytes of sets → fetches that begin all over it, each of
    which finds FETCH_BYTES, and the size of a response."""
    produce_one = load.produce_frame(topic, partition, data)
    fetch_first = load.fetch_frame(topic, partition, 0, FETCH_BYTES)
    with load.connect(subject.address) as connection:
        load.check_response(ProduceRequest, load.exchange(connection, produce_one))
        stored = load.fetched_bytes(load.exchange(connection, fetch_first))
        sets = -(-size // stored)
        for _ in range(sets - 1):
            load.check_response(ProduceRequest, load.exchange(connection, produce_one))
        response_size = len(load.exchange(connection, fetch_first))
    messages = len(list(message_set.decode(data)))
    step = FETCH_BYTES * messages // stored
    begins = range(0, sets * messages - 2 * step, step)
    return [load.fetch_frame(topic, partition, at, FETCH_BYTES) for at in begins], response_size


def wide_produce(subject: Subject, topic: str) -> Play:
    """Requests of one small set for each of 200 partitions, as Java's new producer sends them."""
    sets = [(number, load.plain_set(100, WIDE_SET_BYTES)) for number in range(WIDE)]
    return wide(subject, load.wide_produce_frame(topic, sets), ProduceRequest)


def wide_fetch(
    set_bytes: int, value_bytes: int = 100, connections: int = WIDE_CONNECTIONS
) -> Callable[[Subject, str], Play]:
    """Requests for all that 200 partitions have, a set of about `set_bytes` each; for 0, of one
    that is at the end of all of them."""

    def prepare(subject: Subject, topic: str) -> Play:
        sets = [(number, load.plain_set(value_bytes, max(1, set_bytes))) for number in range(WIDE)]
        with load.connect(subject.address) as connection:
            response = load.exchange(connection, load.wide_produce_frame(topic, sets))
        load.check_response(ProduceRequest, response)
        frame = load.wide_fetch_frame(topic, WIDE, 0 if set_bytes else 1)
        return wide(subject, frame, FetchRequest, connections)

    return prepare


def wide(
    subject: Subject,
    frame: bytes,
    request: type[ProduceRequest | FetchRequest],
    connections: int = WIDE_CONNECTIONS,
) -> Play:
    """Connections that send one request again and again, four ahead."""
    with load.connect(subject.address) as connection:
        response = load.exchange(connection, frame)
    load.check_response(request, response)
    streams = [
        load.Stream(subject.address, [frame], len(response), WIDE_WINDOW)
        for _ in range(connections)
    ]
    return partial(driven_requests, subject, streams)


def latency(subject: Subject, topic: str) -> Play:
    frame = load.produce_frame(topic, 0, load.plain_set(100, 1))

    def play(seconds: float) -> Figures:
        return percentiles(load.round_trips(subject.address, frame, int(2000 * seconds)))

    return play


def large_request(subject: Subject, topic: str) -> Play:
    """Requests of 40 MB in pieces of 64 KB, each of which reaches the broker before the next is
    sent; p50 is what another client's produce takes between two pieces."""
    frame = memoryview(load.produce_frame(topic, 0, load.plain_set(1000, 40_000_000)))
    small = load.produce_frame(topic, 1, ONE)

    def play(seconds: float) -> Figures:
        times: list[float] = []
        sent = 0
        with load.connect(subject.address) as connection, load.connect(subject.address) as other:
            load.check_response(ProduceRequest, load.exchange(other, small))
            before, start = cpu_seconds(subject.pid), time.perf_counter()
            while time.perf_counter() < start + seconds:
                for at in range(0, len(frame), PIECE_BYTES):
                    connection.sendall(frame[at : at + PIECE_BYTES])
                    began = time.perf_counter()
                    load.exchange(other, small)
                    times.append(time.perf_counter() - began)
                load.check_response(ProduceRequest, load.receive(connection))
                sent += len(frame)
            elapsed = time.perf_counter() - start
        return {
            "rate": sent / 1e6 / elapsed,
            "cpu": (cpu_seconds(subject.pid) - before) / sent * 1e9,
            "p50": statistics.median(times) * 1e6,
            "done": len(times),
        }

    return play


def long_poll(subject: Subject, topic: str) -> Play:
    offset = 0

    def play(seconds: float) -> Figures:
        nonlocal offset
        times, offset = load.long_polls(subject.address, topic, 0, offset, int(300 * seconds))
        return percentiles(times)

    return play


def percentiles(times: list[float]) -> Figures:
    """p50 and p99 of sorted seconds, in microseconds."""
    return {
        "done": len(times),
        "p50": statistics.median(times) * 1e6,
        "p99": times[int(len(times) * 0.99)] * 1e6,
    }


def metadata(subject: Subject, topic: str) -> Play:
    frame = codec.encode_request(MetadataRequest([topic]), 1, load.CLIENT_ID)
    with load.connect(subject.address) as connection:
        response = load.exchange(connection, frame)
    streams = [load.Stream(subject.address, [frame], len(response), WINDOW) for _ in range(4)]
    return partial(driven_requests, subject, streams)


def memory(subject: Subject, topic: str) -> Play:
    return lambda seconds: {"resident": resident_megabytes(subject.pid)}


WIDE_SET_BYTES = 1260
REQUESTS = Goal("requests", "/s", 2.0, True)
SMALL = load.plain_set(100, 16_384)
LARGE = load.plain_set(100, 200_000)
LARGE_1K = load.plain_set(1000, 200_000)
SNAPPY = load.compressed_set(100, 200_000, 2)
GZIP = load.compressed_set(100, 200_000, 1)
ONE = load.plain_set(100, 1)

CASES = (
    Case("idle memory", (Goal("resident", "MB", 0.5, False),), memory, needs_topic=False),
    Case("100 B in 16 KB sets", throughput(2, 0.4), produce(SMALL, len(SMALL))),
    Case("100 B in 200 KB sets", throughput(2, 0.4), produce(LARGE, len(LARGE))),
    Case("the same, 20 in flight", throughput(2, 0.4), produce(LARGE, len(LARGE), DEEP_BYTES)),
    Case("1 KB in 200 KB sets", throughput(1.5, 0.5), produce(LARGE_1K, len(LARGE_1K))),
    Case("snappy, 200 KB sets", throughput(2, 0.5), produce(SNAPPY, 200_000)),
    Case("gzip, 200 KB sets", throughput(5, 0.2), produce(GZIP, 200_000)),
    Case("one-message requests", (REQUESTS,), produce(ONE, len(ONE))),
    Case("fetch, one connection", throughput(1, 1), fetch(LARGE)),
    Case("fetch, four connections", throughput(1.3, 1), fetch(LARGE, 4)),
    Case("fetch snappy, four connections", throughput(1.2, 1), fetch(SNAPPY, 4)),
    Case("produce to 200 partitions", request_rate(2, 0.5), wide_produce, partitions=WIDE),
    Case(
        "fetch of 200 partitions",
        request_rate(1.5, 0.6),
        wide_fetch(WIDE_SET_BYTES),
        partitions=WIDE,
    ),
    Case("fetch of 200, 20 KB each", request_rate(1.5, 0.6), wide_fetch(20_000), partitions=WIDE),
    Case(  # of one message each: the JVM looks at each message up to the high watermark
        "fetch of 200, 64 KB each",
        request_rate(1.5, 0.7),
        wide_fetch(64_000, 64_000, connections=1),
        partitions=WIDE,
    ),
    Case("poll of 200 partitions", request_rate(1.5, 0.6), wide_fetch(0), partitions=WIDE),
    Case(
        "40 MB request in small pieces",
        (*throughput(1, 1), Goal("p50", "µs", 1, False)),
        large_request,
    ),
    Case(
        "produce, one in flight",
        (Goal("p50", "µs", 1, False), Goal("p99", "µs", 1, False)),
        latency,
    ),
    Case("long poll", (Goal("p50", "µs", 0.7, False), Goal("p99", "µs", 0.7, False)), long_poll),
    Case("Metadata requests", (Goal("requests", "/s", 1, True),), metadata),
    Case("loaded memory", (Goal("resident", "MB", 0.2, False),), memory, needs_topic=False),
)
