"""Breadth: what a broker with very many partitions costs, beside the JVM's.

    .venv/bin/python -m benchmarks.breadth [--partitions 10000] [--also 2500] [--each 1000]
    .venv/bin/python -m benchmarks.breadth --replicated    # three brokers, three replicas

Not part of `scripts/bench`: the JVM needs minutes to create 10,000 partitions, and many more in
topics of 1,000 (--each), since 0.8.2.2 parses the text of an assignment in a time that grows much
faster than its length. Each kind runs alone. The same steps are done with fewer partitions too, and
the growth of each step's CPU from one to the other is printed beside the growth of the partitions:
a time of 0.05 s says little about how it grows. Each step has its time, the CPU of all brokers
together and that of ZooKeeper, and for ours the longest turn of a broker's event loop (turns.py).

    created      until the broker names a leader for each partition
    idle         ten seconds in which nothing comes
    asked        Metadata of all topics, ten times
    stopped      from SIGTERM to the end of the process; of three brokers one that leads nothing
    started      from the start until it leads all partitions again
    elected      (three brokers) kill -9 of a leader of a third of them: from the end of its session
                 until every other broker names a new leader for all
    returned     (three brokers) that broker, from its start until it is in each ISR
    controlled   (three brokers) the controller, as `elected`

Of the whole run:

    longest      the longest time that a request about a topic of one partition took meanwhile
    memory       resident
    idle         CPU in percent of a core while nothing comes
    produced     (one broker) requests of up to 250 partitions of a topic to 1,000 of them, CPU of
                 each request
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import load, scratch
from benchmarks.clusters import BROKERS, Cluster
from benchmarks.failovers import SessionEnd, await_other_leaders
from benchmarks.report import Goal, report
from benchmarks.steps import Meter, Step
from benchmarks.subjects import (
    JvmSubject,
    OurSubject,
    await_leaders,
    cpu_seconds,
    resident_megabytes,
)
from kafka08.admin import AdminClient
from kafka08.protocol import codec
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.produce import ProduceRequest
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.interop.jvm import JvmZooKeeper

SETTINGS: Final = {
    "log.index.size.max.bytes": "4096",
    "log.segment.bytes": str(1 << 20),
    "controlled.shutdown.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "zookeeper.session.timeout.ms": "6000",
    "log.retention.check.interval.ms": "300000",
}
"""A segment preallocates its index, which for 10,000 of them is memory here. Retention is looked at
as often as by default: other benchmarks do it each second."""
TIMEOUT_S: Final = 1800.0
IDLE_S: Final = 10.0
SETTLE_S: Final = 5.0
LED: Final = 1000
AT_ONCE: Final = 250
PRODUCE_S: Final = 3.0
PING_S: Final = 0.01
SET_BYTES: Final = 126
ASKED: Final = 10
ISR_POLL_S: Final = 0.25

Figures = dict[str, float]


class Found(NamedTuple):
    """The results of one run."""

    figures: Figures
    steps: Mapping[str, Step]


class Latency(threading.Thread):
    """Asks a broker about a small topic again and again; `worst` is the longest response so far."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.worst = 0.0
        self._address = address
        self._ended = threading.Event()

    def run(self) -> None:
        frame = codec.encode_request(MetadataRequest(["small"]), 1, load.CLIENT_ID)
        with load.connect(self._address) as connection:
            while not self._ended.wait(PING_S):
                began = time.perf_counter()
                load.exchange(connection, frame)
                self.worst = max(self.worst, time.perf_counter() - began)

    def end(self) -> float:
        """Wait until it ends, and return the longest response."""
        self._ended.set()
        self.join()
        return self.worst


@contextmanager
def asking(address: str, figures: Figures) -> Iterator[None]:
    """The longest response within the block, in ms, as `longest`."""
    latency = Latency(address)
    latency.start()
    try:
        yield
    finally:
        figures["longest"] = latency.end() * 1e3


Topics = Mapping[str, int]
"""Topic → its partitions."""


def topics_of(partitions: int, each: int) -> Topics:
    """Topics of `each` partitions, the last one of the rest."""
    full, rest = divmod(partitions, each)
    sizes = [each] * full + [rest] * bool(rest)
    return {f"wide-{number}": size for number, size in enumerate(sizes)}


def first_of(topics: Topics, partitions: int) -> Topics:
    """The first topics that have so many partitions, or all."""
    found: dict[str, int] = {}
    for topic, size in topics.items():
        if sum(found.values()) < partitions:
            found[topic] = size
    return found


def one_broker(kind: str, topics: Topics, directory: Path, zookeeper: JvmZooKeeper) -> Found:
    """All steps of one broker."""
    home, connect = places(directory, zookeeper, kind, topics)
    broker: JvmSubject | OurSubject
    if kind == "jvm":
        broker = JvmSubject(home, connect, SETTINGS)
    else:
        broker = OurSubject(home, connect, SETTINGS, records_turns=True)
    figures: Figures = {}
    meter = Meter([broker], zookeeper)
    broker.start()
    try:
        with AdminClient(connect) as admin:
            admin.create_topic("small", 1, 1)
            await_leaders(broker, "small", 1)
            with asking(broker.address, figures), meter.step("created"):
                create_all(admin, broker, topics)
        time.sleep(SETTLE_S)
        figures["memory"] = resident_megabytes(broker.pid)
        figures["idle"] = idle_percent([broker], meter)
        figures["produced"] = produce_wide(broker, first_of(topics, LED))
        with meter.step("asked"):
            ask_for_all(broker)
        with meter.step("stopped"):
            broker.stop(TIMEOUT_S)
        with meter.step("started"):
            start_again(broker, topics)
    finally:
        broker.kill()
    return Found(figures, meter.steps)


def places(directory: Path, zookeeper: JvmZooKeeper, kind: str, topics: Topics) -> tuple[Path, str]:
    """The directory of these brokers, and their zookeeper.connect."""
    name = f"{kind}-{sum(topics.values())}"
    return directory / name, f"{zookeeper.connect_string}/{name}"


def create_all(admin: AdminClient, broker: JvmSubject | OurSubject, topics: Topics) -> None:
    for topic, count in topics.items():
        admin.create_topic(topic, count, 1)
    for topic, count in topics.items():
        await_leaders(broker, topic, count, TIMEOUT_S)


def start_again(broker: JvmSubject | OurSubject, topics: Topics) -> None:
    broker.start()
    for topic, count in topics.items():
        await_leaders(broker, topic, count, TIMEOUT_S)


def idle_percent(brokers: Sequence[JvmSubject | OurSubject], meter: Meter) -> float:
    """Percent of a core of the busiest of them."""
    before = [cpu_seconds(broker.pid) for broker in brokers]
    with meter.step("idle"):
        time.sleep(IDLE_S)
    used = [cpu_seconds(one.pid) - was for one, was in zip(brokers, before, strict=True)]
    return max(used) / IDLE_S * 100


def ask_for_all(broker: JvmSubject | OurSubject) -> None:
    frame = codec.encode_request(MetadataRequest([]), 1, load.CLIENT_ID)
    with load.connect(broker.address) as connection:
        for _ in range(ASKED):
            load.exchange(connection, frame)


def produce_wide(broker: JvmSubject | OurSubject, topics: Topics) -> float:
    """CPU milliseconds of a request of one message for each of AT_ONCE partitions."""
    data = load.plain_set(100, SET_BYTES)
    frames = [
        load.wide_produce_frame(
            topic, [(number, data) for number in range(first, min(first + AT_ONCE, size))]
        )
        for topic, size in topics.items()
        for first in range(0, size, AT_ONCE)
    ]
    with load.connect(broker.address) as connection:
        responses = [load.exchange(connection, frame) for frame in frames]
    for response in responses:
        load.check_response(ProduceRequest, response)
    streams = [
        load.Stream(broker.address, [frame], len(response), 2)
        for frame, response in zip(frames, responses, strict=True)
    ]
    before = cpu_seconds(broker.pid)
    requests, _ = load.drive(streams, PRODUCE_S)
    return (cpu_seconds(broker.pid) - before) / requests * 1000


def three_brokers(kind: str, topics: Topics, directory: Path, zookeeper: JvmZooKeeper) -> Found:
    """Creation, a leader's death and the controller's, with three replicas of each partition."""
    home, connect = places(directory, zookeeper, kind, topics)
    cluster = Cluster(kind, home, connect, SETTINGS, records_turns=True)
    figures: Figures = {}
    meter = Meter(cluster.brokers, zookeeper)
    try:
        cluster.start()
        cluster.create_topic("small", 1)
        with asking(cluster.broker(1).address, figures), meter.step("created"):
            create_replicated(cluster, topics)
        time.sleep(SETTLE_S)
        figures["memory"] = max(resident_megabytes(one.pid) for one in cluster.brokers)
        figures["idle"] = idle_percent(cluster.brokers, meter)
        with meter.step("asked"):
            ask_for_all(cluster.broker(1))
        victim = killed(cluster, topics, meter, "elected")
        with meter.step("returned"):
            return_to_isrs(cluster, topics, victim)
        with meter.step("stopped"):
            cluster.broker(victim).stop(TIMEOUT_S)
        return_to_isrs(cluster, topics, victim)
        killed(cluster, topics, meter, "controlled")
    finally:
        cluster.kill()
    return Found(figures, meter.steps)


def create_replicated(cluster: Cluster, topics: Topics) -> None:
    with AdminClient(cluster.zookeeper) as admin:
        for topic, count in topics.items():
            admin.create_topic(topic, count, len(BROKERS))
    for broker in cluster.brokers:
        for topic, count in topics.items():
            await_leaders(broker, topic, count, TIMEOUT_S)


def killed(cluster: Cluster, topics: Topics, meter: Meter, name: str) -> int:
    """kill -9 of a broker: from the end of its session until the others name other leaders for all.
    Returns its id. `controlled`: of the controller."""
    with ZkClient(cluster.zookeeper) as zk:
        found = ClusterStore(zk).controller()
        assert found is not None, "no broker is controller"
        victim = next(n for n in BROKERS if (n == found.broker_id) == (name == "controlled"))
        ended = SessionEnd(zk, victim)
        cluster.broker(victim).kill()
        ended.wait()
        survivors = [cluster.broker(n) for n in BROKERS if n != victim]
        with meter.step(name):
            for topic in topics:
                await_other_leaders(survivors, topic, victim, TIMEOUT_S)
    return victim


def return_to_isrs(cluster: Cluster, topics: Topics, broker_id: int) -> None:
    """Start the broker and wait until it is in each ISR; ZooKeeper is asked, topic after topic."""
    cluster.broker(broker_id).start()
    deadline = time.monotonic() + TIMEOUT_S
    with ZkClient(cluster.zookeeper) as zk:
        store = ClusterStore(zk)
        for topic, count in topics.items():
            wanted = [TopicPartition(topic, number) for number in range(count)]
            while any(broker_id not in one.isr for one in store.leader_and_isr(wanted).values()):
                assert time.monotonic() < deadline, f"{broker_id} is not in each ISR of {topic}"
                time.sleep(ISR_POLL_S)


UNITS: Final = {"longest": "ms", "memory": "MB", "idle": "%", "produced": "ms/rq"}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.breadth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--also", type=int, default=2500, help="the smaller number, 0: none")
    parser.add_argument("--each", type=int, default=1000, help="partitions of a topic")
    parser.add_argument("--replicated", action="store_true", help="three brokers, three replicas")
    parser.add_argument("--kinds", default="jvm,ours", help="which brokers (default: jvm,ours)")
    scratch.add_option(parser)
    options = parser.parse_args()
    run = three_brokers if options.replicated else one_broker
    counts = [count for count in (options.also, options.partitions) if count]
    found: dict[tuple[str, int], Found] = {}
    with scratch.scratch(options) as directory, JvmZooKeeper(directory / "zk") as zookeeper:
        for count in counts:
            for kind in options.kinds.split(","):
                print(f"{kind} with {count:,} partitions", flush=True)
                wide = topics_of(count, options.each)
                found[kind, count] = run(kind, wide, directory, zookeeper)
                print(f"{kind} with {count:,} partitions: {found[kind, count].figures}", flush=True)
    show(found, counts)
    return 0


def show(found: Mapping[tuple[str, int], Found], counts: list[int]) -> None:
    """Ours beside the JVM's, and how our figures and each step's CPU grow."""
    most = counts[-1]
    if ("jvm", most) in found and ("ours", most) in found:
        jvm, ours = found["jvm", most], found["ours", most]
        for name, figure in jvm.figures.items():
            goal = Goal(name, UNITS[name], 1, False)
            report(f"{most:,} partitions", goal, jvm=figure, ours=ours.figures[name])
        for name, step in jvm.steps.items():
            goal = Goal(name, "s", 1, False)
            report(f"{most:,} partitions", goal, jvm=step.seconds, ours=ours.steps[name].seconds)
    if len(counts) > 1 and ("ours", most) in found:
        few, many = found["ours", counts[0]], found["ours", most]
        grown = most / counts[0]
        for name, figure in few.figures.items():
            show_growth(f"{name}, {UNITS[name]}", figure, many.figures[name], grown)
        for name, step in few.steps.items():
            show_growth(f"{name}, CPU s", step.cpu, many.steps[name].cpu, grown)


def show_growth(what: str, few: float, many: float, grown: float) -> None:
    times = f"{many / few:6.1f}" if few else "     ?"
    print(f"{what:18} {few:10.2f} → {many:10.2f}: {times} of {grown:.0f} times")


if __name__ == "__main__":
    sys.exit(main())
