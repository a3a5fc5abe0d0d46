"""Tails: how long the slowest small produces take while the broker has other work.

One connection sends a message of 100 B every two milliseconds, acks 1, each timed from the moment
at which it was due: a broker that stands still for 50 ms is seen by 25 of them, not by one. A
process of its own meanwhile asks for the same work of both kinds of brokers: at its start

    create    creates a topic of 1,000 partitions, then deletes it (`created` is how long until the
              broker leads all of them)

and every two seconds one of

    cold      reads a partition from its start, segment by segment; on a disk its pages are dropped
              from the cache before each pass
    compact   writes the same keys again to a compacted topic, which the cleaner then has to copy
    members   100 connections ask for the metadata of all topics at once, as the members of a group
              of 0.8 do when it is rebalanced

A broker that is done with a step sooner gets no more of them.

`scripts/bench --only tails` runs it; `python -m benchmarks.tails ADDRESS ZOOKEEPER LOGS
TOPIC` is that process.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Final

from benchmarks import load
from benchmarks.report import Goal
from benchmarks.subjects import JvmSubject, OurSubject, Subject, await_leaders
from benchmarks.warm import fair_rounds, report_case
from kafka08.admin import AdminClient
from kafka08.protocol import codec, message_set
from kafka08.protocol.fetch import FetchRequest, FetchResponse
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.produce import ProduceRequest

NAME: Final = "tails"
SETTINGS: Final = {
    "log.segment.bytes": str(8 << 20),
    "log.index.size.max.bytes": str(64 << 10),
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.dedupe.buffer.size": str(64 << 20),
    "log.cleaner.min.cleanable.ratio": "0.1",
}
INTERVAL_S: Final = 0.002
ROUND_S: Final = 45.0
"""Enough for a JVM to create the topic."""
COLD_BYTES: Final = 100_000_000
COLD_SET: Final = 200_000
KEYS: Final = 20_000
KEYED_SETS: Final = 10
WIDE: Final = 1000
MEMBERS: Final = 100
CREATION_S: Final = 120.0
STEP_S: Final = 2.0
LOOK_S: Final = 0.2
GOALS: Final = (
    Goal("p99.9", "ms", 1, False),
    Goal("p99", "ms", 1, False),
    Goal("p50", "ms", 1, False),
    Goal("worst", "ms", 1, False),
    Goal("created", "s", 1, False),
)


def tail_cases(directory: Path, zookeeper: str, only: str, rounds: int) -> list[dict[str, object]]:
    """Produces under mixed load. Empty if `only` does not name them."""
    if only not in NAME:
        return []
    connect = f"{zookeeper}/{NAME}"
    subjects: dict[str, Subject] = {
        "jvm": JvmSubject(directory / "jvm-tails", f"{connect}-jvm", SETTINGS),
        "ours": OurSubject(directory / "ours-tails", f"{connect}-ours", SETTINGS),
    }
    try:
        for name, subject in subjects.items():
            subject.start()
            prepare(subject, f"{connect}-{name}")
        measured = fair_rounds(
            list(subjects),
            lambda name, number: under_load(subjects[name], f"{connect}-{name}", number),
            GOALS[0],
            rounds,
            time.monotonic,
        )
    finally:
        for subject in subjects.values():
            subject.kill()
    return report_case(f"{NAME} of small produces", GOALS, measured)


def prepare(subject: Subject, zookeeper: str) -> None:
    """The topics: one for the small messages, one with old segments, one to compact."""
    with AdminClient(zookeeper) as admin:
        admin.create_topic("small", 1, 1)
        admin.create_topic("cold", 1, 1)
        admin.create_topic("compacted", 1, 1, config={"cleanup.policy": "compact"})
    for topic in ("small", "cold", "compacted"):
        await_leaders(subject, topic, 1)
    data = load.plain_set(1000, COLD_SET)
    frame = load.produce_frame("cold", 0, data)
    with load.connect(subject.address) as connection:
        for _ in range(COLD_BYTES // len(data)):
            load.check_response(ProduceRequest, load.exchange(connection, frame))


def under_load(subject: Subject, zookeeper: str, number: int) -> dict[str, float]:
    """Milliseconds from when a message was due to its acknowledgement, and the seconds of the
    creation."""
    words = [subject.address, zookeeper, str(subject.log_dir), f"wide-{number}"]
    command = [sys.executable, "-m", __name__, *words]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        times = paced(subject.address, ROUND_S)
        if other.poll() is not None:
            raise AssertionError(f"the other work ended with {other.returncode}")
    finally:
        other.send_signal(signal.SIGTERM)
        created, _ = other.communicate()
    return {
        "created": float(created) if created else CREATION_S,
        "p50": statistics.median(times) * 1e3,
        "p99": times[int(len(times) * 0.99)] * 1e3,
        "p99.9": times[int(len(times) * 0.999)] * 1e3,
        "worst": times[-1] * 1e3,
    }


def paced(address: str, seconds: float) -> list[float]:
    """Seconds of each exchange of a message every INTERVAL_S, sorted."""
    frame = load.produce_frame("small", 0, load.plain_set(100, 1))
    times: list[float] = []
    with load.connect(address) as connection:
        began = due = time.perf_counter()
        while due < began + seconds:
            now = time.perf_counter()
            if now < due:
                time.sleep(due - now)
            load.exchange(connection, frame)
            times.append(time.perf_counter() - due)
            due += INTERVAL_S
    return sorted(times)


# ------------------------------------------------------------------------------- the other work


def other_work(address: str, zookeeper: str, logs: Path, topic: str) -> None:
    """The creation, and a step every STEP_S until SIGTERM."""
    creation = (address, zookeeper, topic)
    threading.Thread(target=create_and_delete, args=creation, daemon=True).start()
    steps: list[Callable[[int], None]] = [
        lambda _: read_cold(address, logs),
        lambda number: write_keys(address, number),
        lambda _: ask_at_once(address),
    ]
    due = time.monotonic()
    for number, step in enumerate(cycle(steps)):
        step(number)
        due += STEP_S
        time.sleep(max(0.0, due - time.monotonic()))


def read_cold(address: str, logs: Path) -> None:
    """Read the topic from its first to its last offset, in fetches of 1 MB."""
    for path in (logs / "cold-0").glob("*.log"):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    offset, messages = 0, COLD_BYTES // (1000 + load.ENTRY_OVERHEAD)
    with load.connect(address) as connection:
        while offset < messages * 9 // 10:
            response_frame = load.exchange(connection, load.fetch_frame("cold", 0, offset, 1 << 20))
            response = codec.decode_response(FetchRequest, memoryview(response_frame)[4:])[1]
            assert isinstance(response, FetchResponse)
            data = response.topics[0].partitions[0].message_set
            size = 1000 + load.ENTRY_OVERHEAD
            assert len(data) >= size, "a fetch of a cold segment brought nothing"
            offset += len(data) // size


def write_keys(address: str, number: int) -> None:
    """A value of 100 B for each key, in several requests."""
    value = b"%0100d" % number
    each = KEYS // KEYED_SETS
    with load.connect(address) as connection:
        for first in range(0, KEYS, each):
            data = message_set.encode([(b"%d" % n, value) for n in range(first, first + each)])
            frame = load.produce_frame("compacted", 0, data)
            load.check_response(ProduceRequest, load.exchange(connection, frame))


def create_and_delete(address: str, zookeeper: str, topic: str) -> None:
    """Print the seconds until the broker leads all its partitions."""
    began = time.monotonic()
    with AdminClient(zookeeper) as admin:
        admin.create_topic(topic, WIDE, 1)
        frame = codec.encode_request(MetadataRequest([topic]), 1, load.CLIENT_ID)
        deadline = began + CREATION_S
        with load.connect(address) as connection:
            while count_led(load.exchange(connection, frame)) < WIDE:
                assert time.monotonic() < deadline, f"{topic} has no leaders"
                time.sleep(LOOK_S)
        print(time.monotonic() - began, flush=True)
        admin.delete_topic(topic)


def count_led(response_frame: bytes) -> int:
    """Partitions with a leader in a Metadata response about one topic."""
    response = codec.decode_response(MetadataRequest, memoryview(response_frame)[4:])[1]
    return sum(one.leader >= 0 for one in response.topics[0].partitions)


def ask_at_once(address: str) -> None:
    """Send the request of each member before the first response is read."""
    frame = codec.encode_request(MetadataRequest([]), 1, load.CLIENT_ID)
    connections = [load.connect(address) for _ in range(MEMBERS)]
    for connection in connections:
        connection.sendall(frame)
    for connection in connections:
        load.receive(connection)
        connection.close()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(0))
    other_work(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
