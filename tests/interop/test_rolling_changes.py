"""Clusters change their release broker by broker while messages are sent and read (upgrading.md).

Messages are sent with acks=-1 to a topic that needs two replicas in sync, and read from the first
one on. In the end no acknowledged message is lost and all replicas hold the same bytes. A group
with a coordinator processes all messages of another topic, in order; no commit goes back.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kafka08.kernel import entries
from tests.histories.group_run import GroupRun
from tests.histories.workload import Workload
from tests.interop.jvm import POM, POM_0_10_2, POM_3_9
from tests.interop.seats import MixedCluster, Release, Seat, mixed_cluster

pytestmark = pytest.mark.timeout(400)
TOPIC, GROUPED = "rolling", "grouped"
SEATS = 3
SAFE = {"unclean.leader.election.enable": "false", "min.insync.replicas": "2"}
GROUP_KEYS = {"0.10.2": {"group.min.session.timeout.ms": "500"}}
PROTOCOL, FORMAT = "inter.broker.protocol.version", "log.message.format.version"


def of(level: str, protocol: str = "", message_format: str = "", pom: Path = POM_0_10_2) -> Release:
    """A release with the two keys that pin it."""
    keys = {PROTOCOL: protocol, FORMAT: message_format, **GROUP_KEYS.get(level, {})}
    return Release(pom, level, {key: value for key, value in keys.items() if value})


class Untouched:
    """The network of a GroupRun without faults of its own."""

    def hold(self, broker: int) -> None: ...

    def release(self) -> None: ...

    def reset(self, broker: int) -> None: ...


def roll(cluster: MixedCluster, work: Workload, start: Callable[[Seat], None]) -> None:
    """Restart each broker cleanly as `start` does, the next one when all replicas are in sync."""
    everybody = [seat.id for seat in cluster.seats]
    for seat in cluster.seats:
        work.await_progress()
        seat.stop()
        start(seat)
        cluster.await_isr(TOPIC, *everybody)
    work.await_progress()


def magics(cluster: MixedCluster) -> set[int]:
    """The message formats in the logs of the topic."""
    segments = [seat.segments(TOPIC, n) for seat in cluster.seats for n in range(2)]
    return {e.magic for files in segments for data in files.values() for e in entries(data)}


def change(
    cluster: MixedCluster,
    start: Callable[[Seat], None],
    *rounds: Callable[[Seat], None],
    group: Path | None = None,
    compares: bool = True,
) -> None:
    """Start all brokers, then roll them through the rounds, and look at what is left; `compares`
    the bytes of the replicas too. `group`: a directory for a group of KafkaConsumers, which work
    from the end of the first round on: before it no broker coordinates."""
    for seat in cluster.seats:
        start(seat)
    topics = (TOPIC, GROUPED)
    for topic in topics if group is not None else topics[:1]:
        cluster.admin.create_topic(topic, 2, SEATS, SAFE)
        cluster.admin.await_leaders(topic)
    with Workload(cluster.bootstrap, TOPIC, partitions=2) as work:

        def roll_all(rounds: Sequence[Callable[[Seat], None]]) -> None:
            for restart in rounds:
                roll(cluster, work, restart)

        if group is None:
            roll_all(rounds)
        else:
            roll_all(rounds[:1])
            group.mkdir()
            rng = random.Random(1)
            run = GroupRun(cluster.bootstrap, GROUPED, 2, group, rng, lambda: None, Untouched(), ())
            with run:
                run.run_while(lambda: roll_all(rounds[1:]))
                assert [] == run.problems
    assert [] == work.problems()
    if compares:
        cluster.await_equal_logs(TOPIC, 2)


def ours(release: Release) -> Callable[[Seat], None]:
    return lambda seat: seat.start_ours(release)


def jvm(release: Release) -> Callable[[Seat], None]:
    return lambda seat: seat.start_jvm(release)


PINNED = of("0.10.2", "0.8.2", "0.8.2")
NEW_PROTOCOL = of("0.10.2", "0.10.2", "0.8.2")
NEW_FORMAT = of("0.10.2")


def test_our_brokers_go_from_0_8_2_to_0_10_2(tmp_path: Path) -> None:
    """The level pinned to 0.8.2, then the protocol, then the message format: old messages keep
    theirs."""
    with mixed_cluster(tmp_path, SEATS) as cluster:
        change(
            cluster,
            ours(of("0.8.2")),
            ours(PINNED),
            ours(NEW_PROTOCOL),
            ours(NEW_FORMAT),
            group=tmp_path / "group",
        )
        assert {0, 1} == magics(cluster)


def test_a_jvm_cluster_goes_from_0_8_2_2_to_0_10_2_2_by_way_of_ours(tmp_path: Path) -> None:
    """JVM 0.8.2.2, ours and JVM 0.10.2.2, both pinned, and JVM 0.10.2.2 with the new keys."""
    with mixed_cluster(tmp_path, SEATS) as cluster:
        change(
            cluster,
            jvm(of("0.8.2", pom=POM)),
            ours(PINNED),
            jvm(PINNED),
            jvm(NEW_PROTOCOL),
            jvm(NEW_FORMAT),
            group=tmp_path / "group",
        )
        assert {0, 1} == magics(cluster)


@pytest.mark.parametrize(
    ("level", "pin"), [("0.8.2", "0.8.2"), ("0.10.2", "0.10.2")], ids=["0.8.2", "0.10.2"]
)
def test_our_brokers_are_replaced_by_apache_kafka_3_9(tmp_path: Path, level: str, pin: str) -> None:
    """The last release that has ZooKeeper, pinned to what our brokers speak, then by its own
    defaults. In that last round replicas differ in their bytes: the brokers that are pinned still
    fetch in the old message format what the others write in the new one."""
    pinned = of("", pin, pin, POM_3_9)
    with mixed_cluster(tmp_path, SEATS, zookeeper=POM_3_9) as cluster:
        unpinned = of("", pom=POM_3_9)
        change(cluster, ours(of(level)), jvm(pinned), jvm(unpinned), compares=False)
