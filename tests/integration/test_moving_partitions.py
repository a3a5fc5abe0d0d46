"""Partitions and leaders are moved, topics altered, under a workload, by our own commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka08.admin import AdminClient
from kafka08.cli.root import root
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.log.check import check_log
from tests.histories.workload import Workload
from tests.in_sync import await_full_isr
from tests.waiting import until

CONFIG = {
    "zookeeper.session.timeout.ms": "3000",
    "auto.leader.rebalance.enable": "false",
    "delete.topic.enable": "true",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, level="0.8.2", config=CONFIG) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: EmbeddedCluster) -> Iterator[AdminClient]:
    cluster.heal()
    with AdminClient(cluster.zookeeper.connect_string) as admin:
        yield admin


def run(cluster: EmbeddedCluster, *arguments: str) -> str:
    """Run a command, which must succeed; returns its output."""
    connect = ["--zookeeper", cluster.zookeeper.connect_string]
    result = CliRunner().invoke(root, [*arguments, *connect])
    assert 0 == result.exit_code, result.output
    return result.output


def replicas(admin: AdminClient, topic: str) -> list[tuple[int, ...]]:
    return [partition.replicas for partition in admin.describe_topics([topic])[0].partitions]


def leaders(admin: AdminClient, topic: str) -> list[int | None]:
    return [partition.leader for partition in admin.describe_topics([topic])[0].partitions]


def test_a_topic_is_moved_to_other_brokers(
    cluster: EmbeddedCluster, admin: AdminClient, tmp_path: Path
) -> None:
    """A plan from a file is shown, then executed: no message is lost, and the old replicas are
    deleted."""
    admin.create_topic("moved", assignment={0: [0], 1: [0]})
    admin.await_leaders("moved")
    plan = tmp_path / "plan.json"
    moves = [{"topic": "moved", "partition": n, "replicas": [1, 2]} for n in range(2)]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    with Workload(cluster.bootstrap, "moved", partitions=2) as work:
        work.await_progress()
        shown = run(cluster, "partition", "reassign", "--plan", str(plan))
        assert '"replicas":[0]' in shown
        assert [(0,), (0,)] == replicas(admin, "moved")
        done = run(cluster, "partition", "reassign", "--plan", str(plan), "--execute", "--wait")
        assert "Reassignment of partition [moved,1] completed successfully" in done
        work.await_progress()
    assert [] == work.problems()
    assert [(1, 2), (1, 2)] == replicas(admin, "moved")
    verified = run(cluster, "partition", "reassign", "--plan", str(plan), "--verify", "--json")
    assert {"moved-0": "COMPLETED", "moved-1": "COMPLETED"} == json.loads(verified)
    for number in range(2):
        until(
            lambda number=number: (
                not (  # type: ignore[misc]
                    cluster.brokers[0].log_dirs / f"moved-{number}"
                ).exists()
            ),
            "the old copy to go",
        )
        assert [] == check_log(cluster.brokers[1].partition_directory("moved", number))


def test_leaders_go_back_where_they_belong(cluster: EmbeddedCluster, admin: AdminClient) -> None:
    """A preferred-leader election after a broker's restart; producing and consuming continue."""
    admin.create_topic("led", assignment={0: [0, 1], 1: [0, 2]})
    admin.await_leaders("led")
    with Workload(cluster.bootstrap, "led", partitions=2) as work:
        work.await_progress()
        cluster.restart(cluster.brokers[0])
        await_full_isr(cluster, "led", 2)
        assert [1, 2] == leaders(admin, "led")
        run(cluster, "partition", "elect", "--partition", "led:0", "--partition", "led:1")
        until(lambda: leaders(admin, "led") == [0, 0], "broker 0 to lead")
        work.await_progress()
    assert [] == work.problems()


def test_a_topic_is_altered_while_it_is_used(cluster: EmbeddedCluster, admin: AdminClient) -> None:
    """Brokers apply the new segment size at once, and lead the added partitions."""
    cluster.create_topic("altered", 1, 2)
    leader = cluster.leader_of("altered")
    with Workload(cluster.bootstrap, "altered") as work:
        work.await_progress()
        run(cluster, "topic", "alter", "altered", "--config", "segment.bytes=300")
        directory = leader.partition_directory("altered", 0)
        until(lambda: len(list(directory.glob("*.log"))) > 2, "smaller segments")
    assert [] == work.problems()
    run(
        cluster,
        "topic",
        "alter",
        "altered",
        "--partitions",
        "3",
        "--delete-config",
        "segment.bytes",
    )
    admin.await_leaders("altered")
    assert {} == admin.describe_topics(["altered"])[0].config
    with Workload(cluster.bootstrap, "altered", partitions=3) as more:
        more.await_progress()
    run(cluster, "topic", "delete", "altered")
    until(lambda: "altered" not in admin.list_topics(), "the deletion")
