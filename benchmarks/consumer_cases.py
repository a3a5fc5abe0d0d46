"""Consumers on a JVM broker (0.8.2.2; 0.10.2.2 for *Polling* and *Frames*): ours beside
confluent-kafka and beside the JVM's connector.

*Reading*: a million messages of 100 bytes, each reader a process of its own, in turns (readers.py).
*Polling*: the same by our KafkaConsumer.
*Frames*: the same into a Polars frame, by kafka08.arrow.scan beside confluent-kafka and pyarrow.
*Rebalances*: from the moment at which a member's registration comes or goes, or its process is
killed, until the partitions are owned as they should be.
*Crowd*: 100 members on 200 partitions, without brokers (tests/consumer/crowd.py).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks import load
from benchmarks.rebalances import rebalance_figures
from benchmarks.report import Goal, report
from benchmarks.subjects import JvmSubject, await_leaders
from kafka08.admin import AdminClient
from kafka08.protocol.produce import ProduceRequest
from kafka08.zk.client import ZkClient
from tests.consumer.crowd import Crowd
from tests.consumer.groups import PaperCluster
from tests.interop.jvm import POM_0_10_2

READING = "consumer"
POLLING = "polling"
FRAMES = "frames"
REBALANCE = "rebalance"
CROWD = "100 members"
PARTITIONS = 4
MESSAGES = 1_000_000
SET_BYTES = 16_384
"""What a producer of 0.8.2.2 sends at once by default (batch.size). It matters: a log has an index
entry for a set at most, and the JVM broker finds an offset by reading on from there."""
MEMBERS = 100
SPEED_GOALS = {"iterator": 3.0, "batches": 8.0}
POLLING_GOALS = {"messages": 3.0, "lists": 3.0, "polled batches": 8.0, "bare fetches": 8.0}
"""Bare fetches show what the broker and one connection allow: batches cannot be faster."""
FRAME_GOALS = {"scan into polars": 8.0}
ONE_CORE = 5.0
"""Million rows that a scan must read in a second of CPU."""
EVENTS = {"join": "a member joins", "leave": "a member leaves", "kill": "a member is killed"}


def consumer_cases(
    directory: Path, zookeeper: str, only: str, rounds: int
) -> list[dict[str, object]]:
    """The cases whose name contains `only`, one row for each figure."""
    rows: list[dict[str, object]] = []
    if only in READING or only in REBALANCE:
        connect = f"{zookeeper}/consumers"
        broker = JvmSubject(directory / "consumers", connect, {"log.retention.bytes": "-1"})
        broker.start()
        try:
            if only in READING:
                rows += reading_rows(broker, connect, rounds, READING, "confluent", SPEED_GOALS)
            if only in REBALANCE:
                rows += rebalance_rows(broker, connect, directory, rounds)
        finally:
            broker.kill()
    for case, peer, goals in (
        (POLLING, "confluent 0.10", POLLING_GOALS),
        (FRAMES, "confluent frame", FRAME_GOALS),
    ):
        if only not in case:
            continue
        connect = f"{zookeeper}/{case}"
        keys = {"log.retention.bytes": "-1"}
        broker = JvmSubject(directory / case, connect, keys, pom=POM_0_10_2)
        broker.start()
        try:
            rows += reading_rows(broker, connect, rounds, case, peer, goals)
        finally:
            broker.kill()
        if case == FRAMES:
            rows.append(one_core_row(rows))
    if only in CROWD:
        crowd_case(f"{zookeeper}/crowd")
    return rows


def reading_rows(
    broker: JvmSubject,
    connect: str,
    rounds: int,
    case: str,
    peer: str,
    goals_of: Mapping[str, float],
) -> list[dict[str, object]]:
    """Our readers of `goals_of`, each with the speed that it must reach, beside `peer`."""
    fill(broker, connect, "reading")
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in (peer, *goals_of)}
    for number in range(rounds + 1):
        for kind, figures in found.items():
            one = read_once(kind, broker.address, connect)
            if number:  # the first round warms the broker up
                figures.append(one)
    medians = {
        kind: {name: statistics.median(one[name] for one in all_) for name in all_[0]}
        for kind, all_ in found.items()
    }
    rows = []
    for kind, speed in goals_of.items():
        goals = (
            Goal("rate", "/s", speed, True),
            Goal("cpu", "s/M", 1.0, False),
            Goal("memory", "MB", 1.0, False),
        )
        for goal in goals:
            theirs, ours = medians[peer][goal.figure], medians[kind][goal.figure]
            rows.append(report(f"{case}: {kind}", goal, jvm=theirs, ours=ours, other="confluent"))
    return rows


def one_core_row(rows: list[dict[str, object]]) -> dict[str, object]:
    """The rows that a scan reads on one core, from the CPU that it took beside its peer."""
    case = f"{FRAMES}: {next(iter(FRAME_GOALS))}"
    [seconds] = [row["ours"] for row in rows if (row["case"], row["figure"]) == (case, "cpu")]
    assert isinstance(seconds, float)
    millions = 1 / seconds
    met = millions >= ONE_CORE
    sys.stdout.write(
        f"{case}: {millions:.1f} M rows a CPU second (goal >= {ONE_CORE:.0f}) "
        f"{'ok' if met else 'MISSED'}\n"
    )
    return {"case": case, "figure": "one core", "ours": millions, "goal": ONE_CORE, "met": met}


def fill(broker: JvmSubject, connect: str, topic: str) -> None:
    """At least MESSAGES of 100 bytes, evenly over the partitions, as a producer sends them."""
    with AdminClient(connect) as admin:
        admin.create_topic(topic, PARTITIONS, 1)
    await_leaders(broker, topic, PARTITIONS)
    data = load.plain_set(100, SET_BYTES)
    sets = -(-MESSAGES // (len(data) // (100 + load.ENTRY_OVERHEAD)))
    with load.connect(broker.address) as connection:
        for number in range(sets):
            frame = load.produce_frame(topic, number % PARTITIONS, data)
            load.check_response(ProduceRequest, load.exchange(connection, frame))


def read_once(kind: str, address: str, connect: str) -> dict[str, float]:
    words = [kind, address, connect, "reading", str(PARTITIONS), str(MESSAGES)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.readers", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    figures = json.loads(done.stdout)
    millions = figures["messages"] / 1e6
    return {
        "rate": figures["messages"] / figures["seconds"],
        "cpu": figures["cpu"] / millions,
        "memory": figures["memory"],
    }


def rebalance_rows(
    broker: JvmSubject, connect: str, directory: Path, rounds: int
) -> list[dict[str, object]]:
    with AdminClient(connect) as admin:
        admin.create_topic("moving", PARTITIONS, 1)
    await_leaders(broker, "moving", PARTITIONS)
    found = {
        kind: [rebalance_figures(kind, connect, "moving", directory, n) for n in range(rounds)]
        for kind in ("jvm", "ours")
    }
    rows = []
    for event, name in EVENTS.items():
        jvm, ours = (
            statistics.median(one[event] for one in found[kind]) for kind in ("jvm", "ours")
        )
        goal = Goal("seconds", "s", 1.0, False)
        rows.append(report(f"{REBALANCE}: {name}", goal, jvm=jvm, ours=ours))
    return rows


def crowd_case(connect: str) -> None:
    """A group of very many members. The JVM has no figure: its connector does not settle such a
    group reliably."""
    with ZkClient(connect, make_chroot=True) as zk:
        cluster = PaperCluster(zk, connect)
        cluster.create_topic("tt", 2 * MEMBERS)
        with Crowd(
            cluster.store, connect, "tt", members=MEMBERS, processes=4, session_ms=6000
        ) as crowd:
            sys.stdout.write(f"{CROWD} started at once: {crowd.start()}\n")
            sys.stdout.write(f"{CROWD}, half of them killed (6 s session): {crowd.kill_half()}\n")
