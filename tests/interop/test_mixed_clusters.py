"""Brokers of 0.8.2.2 and ours in one cluster: they copy from each other, and either controls it."""

from __future__ import annotations

from pathlib import Path

from tests.histories.workload import Workload
from tests.interop.seats import mixed_cluster, wait_for

TOPIC = "mixed"
CLEAN = {"unclean.leader.election.enable": "false"}


def test_a_jvm_broker_and_ours_stand_in_for_each_other(tmp_path: Path) -> None:
    """Each follows and leads, controls, dies by kill -9 while the other goes on, and comes back.
    In the end both logs are the same, byte for byte."""
    with mixed_cluster(tmp_path, 2) as cluster:
        jvm, ours = cluster.seats
        jvm.start_jvm()
        ours.start_ours()
        assert jvm.id == cluster.controller()
        cluster.admin.create_topic(TOPIC, assignment={0: [1, 2], 1: [2, 1]}, config=CLEAN)
        cluster.await_isr(TOPIC, 1, 2)
        with Workload(cluster.bootstrap, TOPIC, partitions=2) as work:
            work.await_progress()
            jvm.kill()
            wait_for(lambda: cluster.controller() == ours.id, "our broker to be the controller")
            cluster.await_isr(TOPIC, ours.id)
            work.await_progress()
            jvm.start_jvm()
            cluster.await_isr(TOPIC, 1, 2)
            work.await_progress()
            ours.kill()
            wait_for(lambda: cluster.controller() == jvm.id, "the JVM to be the controller")
            cluster.await_isr(TOPIC, jvm.id)
            work.await_progress()
            ours.start_ours()
            cluster.await_isr(TOPIC, 1, 2)
            work.await_progress()
        assert [] == work.problems()
        cluster.await_equal_logs(TOPIC, 2)


def test_a_jvm_cluster_is_replaced_by_ours_and_back(tmp_path: Path) -> None:
    """Broker by broker, on the directories as they are, while messages are sent with acks=-1 and
    two replicas in sync at least, and read; at last the JVM takes over a directory of ours."""
    with mixed_cluster(tmp_path, 3) as cluster:
        for seat in cluster.seats:
            seat.start_jvm()
        everybody = [seat.id for seat in cluster.seats]
        cluster.admin.create_topic(TOPIC, 2, 3, {**CLEAN, "min.insync.replicas": "2"})
        cluster.admin.await_leaders(TOPIC)
        with Workload(cluster.bootstrap, TOPIC, partitions=2) as work:
            for seat in cluster.seats:
                work.await_progress()
                seat.stop()
                seat.start_ours()
                cluster.await_isr(TOPIC, *everybody)
            work.await_progress()
            seat = cluster.seats[0]
            seat.stop()
            seat.start_jvm()
            cluster.await_isr(TOPIC, *everybody)
            work.await_progress()
        assert [] == work.problems()
        cluster.await_equal_logs(TOPIC, 2)
