"""Brokers of level 0.11 beside a JVM 0.11.0.3: record batches (magic 2). `--only 0.11` runs these.

0.11 16 KB, plain …        Produce 3 of idempotent producers: each request has the next sequence
0.11 16 KB, headers        the same with two headers in each record
0.11 idempotence …         ours alone: the same beside batches without a producer
0.11 fetch 5               Fetch 5 of plain batches, which goes from the file to the socket
0.11 read_committed        ours alone: Fetch 5 of committed transactions beside read_uncommitted
0.11 transactions          100 messages over 4 partitions each, by four producers
0.11 rf 3 …                three brokers, three replicas, acks=-1, idempotent producers
"""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, overload

from benchmarks import load
from benchmarks.broker_cases import (
    IN_FLIGHT_BYTES,
    PARTITIONS,
    WINDOW,
    Case,
    Figures,
    Play,
    driven_megabytes,
    throughput,
)
from benchmarks.clusters import Cluster
from benchmarks.replicated import SETTINGS as REPLICATED
from benchmarks.replicated import measure
from benchmarks.report import Goal
from benchmarks.rounds import run_case, turn
from benchmarks.subjects import JvmSubject, OurSubject, Subject, cpu_seconds
from benchmarks.warm import fair_rounds, report_case
from kafka08 import kernel
from kafka08.errors import ConcurrentTransactions
from kafka08.format import Batch, Message
from kafka08.format.v2 import V2
from kafka08.kernel.types import CREATE_TIME
from kafka08.protocol import codec, compression
from kafka08.protocol.add_partitions_to_txn import AddPartitionsToTxnRequest, TxnTopic
from kafka08.protocol.consumer_metadata import TRANSACTION, ConsumerMetadataRequest
from kafka08.protocol.end_txn import EndTxnRequest
from kafka08.protocol.fetch import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from kafka08.protocol.init_producer_id import InitProducerIdRequest
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.record_batches import compress
from kafka08.protocol.types import Request
from tests.interop.jvm import POM_0_11

PREFIX: Final = "0.11"
VALUE_BYTES: Final = 100
RECORD_BYTES: Final = VALUE_BYTES + 8
HEADERS: Final = (("trace", bytes(16)), ("tenant", b"blue"))
HEADER_BYTES: Final = sum(len(key) + len(value) + 2 for key, value in HEADERS)
FETCH_BYTES: Final = 1 << 20
LOG_BYTES: Final = 40_000_000
FILL_BYTES: Final = 200_000
TRANSACTION_MESSAGES: Final = 100
PRODUCERS: Final = 4
COMPLETING_S: Final = 0.001
"""Until the next transaction is begun again, while the former one gets its markers."""
KEYS: Final = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
}
KEYS_OF_THREE: Final = {
    **KEYS,
    **REPLICATED,
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
OUR_LEVEL: Final = {
    "api.level": "0.11.0",
    "inter.broker.protocol.version": "0.11.0",
    "log.message.format.version": "0.11.0",
}
CRC_AT: Final = 17
CHECKED_FROM: Final = 21
SEQUENCE_AT: Final = 53

Prepare = Callable[[Subject, str], Play]


def batch(
    content_bytes: int,
    codec_id: int = 0,
    *,
    producer_id: int = -1,
    epoch: int = -1,
    is_transactional: bool = False,
    has_headers: bool = False,
) -> tuple[bytes, int]:
    """A record batch of about so many bytes before compression, and the number of its records."""
    headers = HEADERS if has_headers else ()
    count = max(1, content_bytes // (RECORD_BYTES + (HEADER_BYTES if has_headers else 0)))
    now_ms = time.time_ns() // 1_000_000
    messages = []
    for n in range(count):
        value = b"%08d " % (n * 2654435761 % 10**8) * (VALUE_BYTES // 9 + 1)
        content = memoryview(value[:VALUE_BYTES])
        messages.append(Message(n, None, content, now_ms + n, CREATE_TIME, headers))
    head = Batch(
        V2.magic,
        position=0,
        size=0,
        base_offset=0,
        last_offset=count - 1,
        codec=codec_id,
        timestamp_type=CREATE_TIME,
        max_timestamp_ms=0,
        crc=0,
        leader_epoch=-1,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=-1 if producer_id < 0 else 0,
        is_transactional=is_transactional,
    )
    return bytes(V2().build(messages, codec_id, compress, like=head)), count


class Sequenced(Sequence[bytes]):
    """Frames without end for a load.Stream, in order: each batch has the sequence behind the one
    before. The index is not used. Without a producer id all are alike."""

    def __init__(
        self,
        topic: str,
        batches: Sequence[tuple[int, bytes]],
        count: int,
        *,
        acks: int = 1,
        transactional_id: str | None = None,
        has_producer: bool = True,
    ) -> None:
        partitions = [ProducePartition(number, data) for number, data in batches]
        request = ProduceRequest(acks, 10_000, [ProduceTopic(topic, partitions)], version=3)
        request.transactional_id = transactional_id
        self._frame = bytearray(codec.encode_request(request, 1, load.CLIENT_ID))
        self._places = []
        start = 0
        for _, data in batches:
            start = self._frame.index(data, start)
            self._places.append((start, len(data)))
            start += len(data)
        self._count = count
        self._next = 0
        self._has_producer = has_producer

    def __len__(self) -> int:
        return 1 << 30

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if self._has_producer:
            view = memoryview(self._frame)
            for start, size in self._places:
                struct.pack_into(">i", self._frame, start + SEQUENCE_AT, self._next)
                crc = kernel.crc32c(view[start + CHECKED_FROM : start + size])
                struct.pack_into(">I", self._frame, start + CRC_AT, crc)
            self._next += self._count
        return bytes(self._frame)


def ask(connection: Any, request: Request) -> Any:
    frame = load.exchange(connection, codec.encode_request(request, 1, load.CLIENT_ID))
    return codec.decode_response(type(request), memoryview(frame)[4:], request.version)[1]


def checked(response: Any) -> None:
    codes = {p.error_code for topic in response.topics for p in topic.partitions}
    assert codes == {0}, f"the broker answered with the errors {codes}"


def new_producer(address: str) -> tuple[int, int]:
    with load.connect(address) as connection:
        found = ask(connection, InitProducerIdRequest(None, 60_000))
    assert found.error_code == 0, found
    return found.producer_id, found.producer_epoch


def stream_to(
    address: str,
    topic: str,
    number: int,
    content_bytes: int,
    codec_id: int,
    *,
    acks: int = 1,
    has_producer: bool = True,
    has_headers: bool = False,
    window: int = 0,
) -> load.Stream:
    """A connection whose producer sends to one partition. A window of 0: by the size."""
    producer = new_producer(address) if has_producer else (-1, -1)
    data, count = batch(
        content_bytes,
        codec_id,
        producer_id=producer[0],
        epoch=producer[1],
        has_headers=has_headers,
    )
    frames = Sequenced(topic, [(number, data)], count, acks=acks, has_producer=has_producer)
    with load.connect(address) as connection:
        response = load.exchange(connection, frames[0])
    checked(codec.decode_response(ProduceRequest, memoryview(response)[4:], 3)[1])
    window = window or max(2, min(WINDOW, IN_FLIGHT_BYTES // len(data)))
    return load.Stream(address, frames, len(response), window)


def produce(
    content_bytes: int,
    codec_id: int = 0,
    *,
    has_producer: bool = True,
    has_headers: bool = False,
) -> Prepare:
    """Four connections, a partition and a producer each; MB are those before compression."""

    def prepare(subject: Subject, topic: str) -> Play:
        streams = [
            stream_to(
                subject.address,
                topic,
                number,
                content_bytes,
                codec_id,
                has_producer=has_producer,
                has_headers=has_headers,
            )
            for number in range(PARTITIONS)
        ]
        return partial(driven_megabytes, subject, streams, content_bytes)

    return prepare


def fetch(isolation: int, *, in_transactions: bool = False) -> Prepare:
    """One connection reads a log in fetches of 1 MB, two ahead, round and round."""

    def frame(topic: str, offset: int) -> bytes:
        topics = [FetchTopic(topic, [FetchPartition(0, offset, FETCH_BYTES)])]
        request = FetchRequest(-1, 0, 1, topics, isolation_level=isolation, version=5)
        return codec.encode_request(request, 1, load.CLIENT_ID)

    def prepare(subject: Subject, topic: str) -> Play:
        end = fill(subject, topic, in_transactions=in_transactions)
        step = end // (LOG_BYTES // FETCH_BYTES)
        frames = [frame(topic, offset) for offset in range(0, end - 2 * step, step)]
        with load.connect(subject.address) as connection:
            first = load.exchange(connection, frames[0])
        checked(codec.decode_response(FetchRequest, memoryview(first)[4:], 5)[1])
        stream = load.Stream(subject.address, frames, len(first), 2)
        return partial(driven_megabytes, subject, [stream], len(first))

    return prepare


def fill(subject: Subject, topic: str, *, in_transactions: bool) -> int:
    """Write the log that is fetched, in transactions of one batch or in none; returns its end."""
    name = f"fill-{topic}"
    with load.connect(subject.address) as connection:
        producer = init(connection, name) if in_transactions else new_producer(subject.address)
        data, count = batch(
            FILL_BYTES,
            producer_id=producer[0],
            epoch=producer[1],
            is_transactional=in_transactions,
        )
        transactional_id = name if in_transactions else None
        frames = Sequenced(topic, [(0, data)], count, transactional_id=transactional_id)
        sets = LOG_BYTES // FILL_BYTES
        for _ in range(sets):
            if in_transactions:
                begin(connection, name, producer, topic, [0])
            response = load.exchange(connection, frames[0])
            checked(codec.decode_response(ProduceRequest, memoryview(response)[4:], 3)[1])
            if in_transactions:
                assert ask(connection, EndTxnRequest(name, *producer, True)).error_code == 0
    return sets * (count + in_transactions)


def init(connection: Any, name: str) -> tuple[int, int]:
    """The producer of a transactional id, once the broker coordinates it."""
    ask(connection, ConsumerMetadataRequest(name, TRANSACTION, version=1))  # creates the topic
    while (found := ask(connection, InitProducerIdRequest(name, 60_000))).error_code:
        time.sleep(0.05)
    return found.producer_id, found.producer_epoch


def begin(
    connection: Any, name: str, producer: tuple[int, int], topic: str, numbers: list[int]
) -> None:
    request = AddPartitionsToTxnRequest(name, *producer, [TxnTopic(topic, numbers)])
    while True:
        [found] = ask(connection, request).topics
        codes = {one.error_code for one in found.partitions}
        if codes == {0}:
            return
        assert codes == {ConcurrentTransactions.code}, codes
        time.sleep(COMPLETING_S)


def transactions(subject: Subject, topic: str) -> Play:
    """Four producers, each with a connection, one transaction after the other: figures `rate` a
    second, `cpu` ms each, `p99` ms until a commit is answered."""

    def play(seconds: float) -> Figures:
        times: list[float] = []
        done: list[int] = []

        def run(name: str) -> None:
            numbers = list(range(PARTITIONS))
            with load.connect(subject.address) as connection:
                producer = init(connection, name)
                each = TRANSACTION_MESSAGES // PARTITIONS
                data, count = batch(
                    each * RECORD_BYTES,
                    producer_id=producer[0],
                    epoch=producer[1],
                    is_transactional=True,
                )
                assert count == each
                frames = Sequenced(
                    topic, [(n, data) for n in numbers], count, acks=-1, transactional_id=name
                )
                ready.wait()
                while time.monotonic() < end[0]:
                    begin(connection, name, producer, topic, numbers)
                    response = load.exchange(connection, frames[0])
                    checked(codec.decode_response(ProduceRequest, memoryview(response)[4:], 3)[1])
                    began = time.monotonic()
                    answer = ask(connection, EndTxnRequest(name, *producer, True))
                    times.append(time.monotonic() - began)
                    assert answer.error_code == 0, answer
                    done.append(1)

        end = [time.monotonic() + 60]
        ready = threading.Barrier(PRODUCERS + 1, timeout=60)
        draw = random.Random(topic)
        names = [f"txn-{topic}-{draw.randrange(10**6)}" for _ in range(PRODUCERS)]
        threads = [threading.Thread(target=run, args=(name,)) for name in names]
        for one in threads:
            one.start()
        ready.wait()
        began, before = time.monotonic(), cpu_seconds(subject.pid)
        end[0] = began + seconds
        for one in threads:
            one.join()
        times.sort()
        return {
            "rate": len(done) / (time.monotonic() - began),
            "cpu": (cpu_seconds(subject.pid) - before) / len(done) * 1000,
            "p99": times[int(len(times) * 0.99)] * 1000,
        }

    return play


def replicated(content_bytes: int) -> Callable[[Cluster, str, float], dict[str, float]]:
    """As benchmarks.replicated, with record batches of idempotent producers."""

    def run(cluster: Cluster, topic: str, seconds: float) -> dict[str, float]:
        streams = [
            stream_to(leader.address, topic, number, content_bytes, 0, acks=-1, window=2)
            for number, leader in enumerate(cluster.leaders(topic))
            for _ in range(2)
        ]
        before = cluster.cpu_seconds()
        requests, elapsed = load.drive(streams, seconds)
        megabytes = requests * content_bytes / 1e6
        return {
            "rate": megabytes / elapsed,
            "cpu": (cluster.cpu_seconds() - before) / megabytes * 1000,
        }

    return run


CODECS: Final = (
    ("plain", 0),
    ("lz4", compression.LZ4),
    ("snappy", compression.SNAPPY),
    ("gzip", compression.GZIP),
)
SIZES: Final = (("16 KB", 16_384), ("200 KB", 200_000))
TRANSACTION_GOALS: Final = (
    Goal("rate", "/s", 2, True),
    Goal("cpu", "ms", 0.4, False),
    Goal("p99", "ms", 1, False),
)
CASES: Final = (
    *(
        Case(
            f"{PREFIX} {size}, {name}",
            throughput(1.5, 0.4) if codec_id else throughput(2, 0.35),
            produce(content_bytes, codec_id),
        )
        for name, codec_id in CODECS
        for size, content_bytes in SIZES
    ),
    Case(f"{PREFIX} 16 KB, headers", throughput(2, 0.35), produce(16_384, has_headers=True)),
    Case(f"{PREFIX} fetch 5", throughput(1.5, 0.5), fetch(READ_UNCOMMITTED)),
    Case(f"{PREFIX} transactions", TRANSACTION_GOALS, transactions),
)
OWN: Final = (
    (
        f"{PREFIX} idempotence, 16 KB",
        throughput(0.95, 1.05),
        {"without": produce(16_384, has_producer=False), "ours": produce(16_384)},
    ),
    (
        f"{PREFIX} idempotence, 200 KB",
        throughput(0.95, 1.05),
        {"without": produce(200_000, has_producer=False), "ours": produce(200_000)},
    ),
    (
        f"{PREFIX} read_committed",
        throughput(0.97, 1.03),
        {
            "uncommitted": fetch(READ_UNCOMMITTED, in_transactions=True),
            "ours": fetch(READ_COMMITTED, in_transactions=True),
        },
    ),
)
"""Ours beside ours: name, goals, side → how it is played."""
OF_THREE: Final = (
    (f"{PREFIX} rf 3, 16 KB", throughput(2, 0.4), replicated(16_384)),
    (f"{PREFIX} rf 3, 200 KB", throughput(2, 0.4), replicated(200_000)),
)


def records_cases(
    directory: Path, zookeeper: str, only: str, rounds: int, seconds: float
) -> list[dict[str, object]]:
    """Medians of the cases whose names contain `only`."""
    wanted = [case for case in CASES if only in case.name]
    own = [case for case in OWN if only in case[0]]
    rows: list[dict[str, object]] = []
    root = f"{zookeeper}/records"
    with ExitStack() as stack:
        ours = OurSubject(directory / "our-records", f"{root}/ours", KEYS | OUR_LEVEL)
        subjects: list[Subject] = [ours]
        if wanted:
            subjects.append(
                JvmSubject(directory / "jvm-records", f"{root}/jvm", KEYS, pom=POM_0_11)
            )
        for subject in subjects if wanted or own else ():
            stack.callback(subject.kill)
            subject.start()
        for case in wanted:
            rows += run_case(
                case, subjects, root, directory=directory, rounds=rounds, seconds=seconds
            )
        for name, goals, sides in own:
            rows += beside_itself(name, goals, sides, ours, root, directory, rounds, seconds)
    return rows + replicated_records(directory, zookeeper, only, rounds, seconds)


def beside_itself(
    name: str,
    goals: tuple[Goal, ...],
    sides: dict[str, Prepare],
    ours: OurSubject,
    root: str,
    directory: Path,
    rounds: int,
    seconds: float,
) -> list[dict[str, object]]:
    """One of our brokers played in two ways."""
    cases = {side: Case(f"{name} {side}", goals, prepare) for side, prepare in sides.items()}

    def play(side: str, number: int) -> Figures:
        return turn(cases[side], number, ours, root, directory, seconds)

    measured = fair_rounds(list(cases), play, goals[0], rounds, time.monotonic)
    return report_case(name, goals, measured)


def replicated_records(
    directory: Path, zookeeper: str, only: str, rounds: int, seconds: float
) -> list[dict[str, object]]:
    """Three brokers of each kind."""
    wanted = [case for case in OF_THREE if only in case[0]]
    if not wanted:
        return []
    rows: list[dict[str, object]] = []
    with ExitStack() as stack:
        clusters = []
        kinds: tuple[tuple[Literal["jvm", "ours"], dict[str, str]], ...] = (
            ("jvm", KEYS_OF_THREE),
            ("ours", KEYS_OF_THREE | OUR_LEVEL),
        )
        for name, keys in kinds:
            place = directory / "records-of-three"
            one = Cluster(name, place, f"{zookeeper}/records-{name}", keys, pom=POM_0_11)
            stack.callback(one.kill)
            one.start()
            clusters.append(one)
        for number, (case, goals, run) in enumerate(wanted):
            measured = measure(clusters, f"records-{number}", run, goals[0], rounds, seconds)
            rows += report_case(case, goals, measured)
    return rows
