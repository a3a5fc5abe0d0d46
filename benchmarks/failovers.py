"""The cost of a broker that stops: the gap of a producer, and new leaders for 1,000 partitions.

Each kind runs alone while it is measured. Nothing is polled that would make the cluster slower: the
session's end is a watch, elections are timed by the state znodes' own modification times, read
afterwards, and what survivors know is asked of one small topic.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from benchmarks import load
from benchmarks.clusters import BROKERS, Broker, Cluster
from benchmarks.report import Goal, report
from kafka08.protocol import codec
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.protocol.produce import ProduceRequest
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Exists, Stat
from kafka08.zk.store import ClusterStore

NAME: Final = "failover"
SETTINGS: Final = {
    "controlled.shutdown.enable": "true",
    "controlled.shutdown.max.retries": "3",
    "zookeeper.session.timeout.ms": "6000",
    "auto.leader.rebalance.enable": "false",
}
LED: Final = 1000
"""Partitions that the killed broker leads."""
MANY: Final = 500
"""Partitions on each broker of an idle cluster."""
IDLE_S: Final = 8.0
SETTLE_S: Final = 4.0
"""Between a change and a measurement that it must not disturb."""
QUIET_S: Final = 1.0
"""A producer that is answered for so long has got over it."""
TIMEOUT_S: Final = 60.0
POLL_S: Final = 0.02

Figures = dict[str, float]
Run = Callable[[Cluster, int], Figures]


def idle(cluster: Cluster, _rounds: int) -> Figures:
    """Seconds of CPU that a broker with 500 partitions takes in a second in which nothing comes."""
    cluster.create_topic("idle", MANY)
    time.sleep(SETTLE_S)
    before = cluster.cpu_seconds()
    time.sleep(IDLE_S)
    return {"cpu": (cluster.cpu_seconds() - before) / len(BROKERS) / IDLE_S * 100}


def failover(cluster: Cluster, _rounds: int) -> Figures:
    """kill -9 of a broker that leads 1,000 partitions and is not the controller.

    elected   from the end of its session until the last partition's new leader stands in ZooKeeper
    told      until every survivor answers Metadata with new leaders only
    """
    with ZkClient(cluster.zookeeper) as zk:
        store = ClusterStore(zk)
        victim = a_follower_of_the_controller(store)
        others = [broker for broker in BROKERS if broker != victim]
        led = {n: (victim, *(others if n % 2 else reversed(others))) for n in range(LED - 1)}
        started = time.monotonic()
        cluster.create_topic("led", led)
        creation = time.monotonic() - started
        cluster.create_topic("marker", {0: led[0]})
        survivors = [cluster.broker(broker) for broker in others]
        time.sleep(SETTLE_S)
        ended = SessionEnd(zk, victim)
        cluster.broker(victim).kill()
        ended_at = ended.wait()
        for topic in ("marker", "led"):
            await_other_leaders(survivors, topic, victim)
        told_at = time.time()
        elected_at = last_modified(zk, [TopicPartition("led", number) for number in led])
    cluster.broker(victim).start()
    return {
        "created": creation,
        "elected": elected_at - ended_at,
        "told": told_at - ended_at,
    }


def producer_gap(signal: str) -> Run:
    """The longest time without an acknowledgement when the leader is killed or stopped."""

    def run(cluster: Cluster, rounds: int) -> Figures:
        tp = TopicPartition(f"gap-{signal}", 0)
        cluster.create_topic(tp.topic, {tp.partition: BROKERS})
        gaps = [one_gap(cluster, tp, signal) for _ in range(rounds)]
        return {name: statistics.median(gap[name] for gap in gaps) for name in gaps[0]}

    return run


def one_gap(cluster: Cluster, tp: TopicPartition, signal: str) -> Figures:
    """One stop of the leader under an acks=-1 producer; the broker is started again afterwards."""
    with ZkClient(cluster.zookeeper) as zk:
        victim = ClusterStore(zk).leader_and_isr([tp])[tp].leader
        ended = SessionEnd(zk, victim)
        producer = Producer(cluster, tp.topic)
        producer.run(until=time.time() + QUIET_S)
        broker = cluster.broker(victim)
        stopped_at = time.time()
        broker.kill() if signal == "kill" else broker.begin_stop()
        while producer.leader == victim or not producer.is_through:
            producer.run(until=time.time() + POLL_S)
            assert time.time() < stopped_at + TIMEOUT_S, "nobody acknowledges any more"
        ended_at = ended.wait()
        broker.finish_stop()
    broker.start()
    await_all_in_sync(cluster, tp.topic)
    acknowledged = [at for at in producer.acknowledged if at > stopped_at - POLL_S]
    first_after = next(at for at in acknowledged if at > producer.leads_since)
    return {
        "gap": max(after - before for before, after in pairwise(acknowledged)),
        "after": max(0.0, first_after - ended_at),
    }


class SessionEnd:
    """The end of a broker's session: when its znode goes, by a watch that is set now."""

    def __init__(self, zk: ZkClient, broker_id: int) -> None:
        self._at = 0.0
        zk.watch_data(paths.broker(broker_id), self._gone)

    def _gone(self, _path: str) -> None:
        self._at = time.time()

    def wait(self) -> float:
        """Wait for the end of the session and return its time."""
        deadline = time.monotonic() + TIMEOUT_S
        while not self._at:
            assert time.monotonic() < deadline, "the session does not end"
            time.sleep(POLL_S)
        return self._at


class Producer:
    """One message at a time, acks=-1, to partition 0; it looks for the leader when it must.

    leader         the broker that it sends to
    leads_since    when it found that one
    acknowledged   the time of each acknowledgement
    """

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._frame = load.produce_frame(topic, 0, load.plain_set(100, 1), acks=-1)
        self.leader = -1
        self.leads_since = 0.0
        self.acknowledged: list[float] = []

    @property
    def is_through(self) -> bool:
        """The leader that it has found last has acknowledged for a while."""
        return self.acknowledged[-1] > self.leads_since + QUIET_S

    def run(self, until: float) -> None:
        while time.time() < until:
            leader = self._find_leader()
            if leader is None:
                time.sleep(POLL_S)
                continue
            if leader != self.leader:
                self.leader, self.leads_since = leader, time.time()
            try:
                self._send(self._cluster.broker(leader), until)
            except (OSError, AssertionError):
                time.sleep(POLL_S)

    def _send(self, broker: Broker, until: float) -> None:
        """Send until the time is over. OSError or, for an error code, AssertionError ends it."""
        with load.connect(broker.address) as connection:
            while time.time() < until:
                load.check_response(ProduceRequest, load.exchange(connection, self._frame))
                self.acknowledged.append(time.time())

    def _find_leader(self) -> int | None:
        for broker in self._cluster.brokers:
            try:
                [leader] = leaders_known_to(broker, self._topic)
            except (OSError, ValueError):
                continue
            if leader >= 0:
                return leader
        return None


def leaders_known_to(broker: Broker, topic: str) -> list[int]:
    """The leader of each partition in a broker's Metadata; OSError when it does not answer."""
    frame = codec.encode_request(MetadataRequest([topic]), 1, load.CLIENT_ID)
    with load.connect(broker.address) as connection:
        response_frame = load.exchange(connection, frame)
    response = codec.decode_response(MetadataRequest, memoryview(response_frame)[4:])[1]
    assert isinstance(response, MetadataResponse)
    return [partition.leader for partition in response.topics[0].partitions]


def await_other_leaders(
    survivors: Sequence[Broker], topic: str, victim: int, timeout_s: float = TIMEOUT_S
) -> None:
    """Wait until all brokers name a leader for each partition of the topic, never the victim."""
    deadline = time.monotonic() + timeout_s
    for broker in survivors:
        while not {-1, victim}.isdisjoint(leaders_known_to(broker, topic)):
            assert time.monotonic() < deadline, f"{broker.address} still names dead leaders"
            time.sleep(POLL_S)


def await_all_in_sync(cluster: Cluster, topic: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    with ZkClient(cluster.zookeeper) as zk:
        store = ClusterStore(zk)
        while len(
            store.leader_and_isr([TopicPartition(topic, 0)])[TopicPartition(topic, 0)].isr
        ) < len(BROKERS):
            assert time.monotonic() < deadline, f"{topic} does not come into sync"
            time.sleep(POLL_S)


def a_follower_of_the_controller(store: ClusterStore) -> int:
    """A broker that is not the controller."""
    controller = store.controller()
    assert controller is not None, "no broker is controller"
    return next(broker for broker in BROKERS if broker != controller.broker_id)


def last_modified(zk: ZkClient, partitions: Sequence[TopicPartition]) -> float:
    """The time of the last write to these partitions' states, by ZooKeeper's clock, which is this
    machine's."""
    stats = zk.pipeline([Exists(paths.partition_state(*tp)) for tp in partitions])
    return max(stat.modified_ms for stat in stats if isinstance(stat, Stat)) / 1000


CASES: Sequence[tuple[str, tuple[Goal, ...], Run]] = (
    (f"{NAME} idle, {MANY} each", (Goal("cpu", "%", 1, False),), idle),
    (
        f"{NAME} of {LED:,}",
        (
            Goal("created", "s", 1, False),
            Goal("elected", "s", 0.5, False),
            Goal("told", "s", 0.5, False),
        ),
        failover,
    ),
    (
        f"{NAME} kill -9 of a leader",
        (Goal("gap", "s", 1, False), Goal("after", "s", 1, False)),
        producer_gap("kill"),
    ),
    (f"{NAME} clean stop of one", (Goal("gap", "s", 0.7, False),), producer_gap("stop")),
)


def failover_cases(
    directory: Path, zookeeper: str, only: str, rounds: int
) -> list[dict[str, object]]:
    """The rows of the cases whose names contain `only`; all of one kind, then of the other."""
    wanted = [case for case in CASES if only in case[0]]
    found: dict[tuple[str, str], Figures] = {}
    for kind in ("jvm", "ours") if wanted else ():
        cluster = Cluster(kind, directory / NAME, f"{zookeeper}/{NAME}-{kind}", SETTINGS)
        try:
            cluster.start()
            for name, _, run in wanted:
                found[kind, name] = run(cluster, rounds)
        finally:
            cluster.kill()
    return [
        report(
            name, goal, jvm=found["jvm", name][goal.figure], ours=found["ours", name][goal.figure]
        )
        for name, goals, _ in wanted
        for goal in goals
    ]
