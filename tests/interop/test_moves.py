"""0.8.2.2's tools that alter topics and move partitions and leaders, on our brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.admin import AdminClient, MoveStatus
from kafka08.admin.moves import format_moves, parse_moves
from kafka08.embedded import EmbeddedCluster
from kafka08.structs import TopicPartition
from tests.interop.jvm import run_tool
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    config = {"auto.leader.rebalance.enable": "false"}
    with EmbeddedCluster(2, config, level="0.8.2") as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: EmbeddedCluster) -> Iterator[AdminClient]:
    with AdminClient(cluster.zookeeper.connect_string) as admin:
        yield admin


def tool(cluster: EmbeddedCluster, name: str, *arguments: str) -> str:
    connect = ("--zookeeper", cluster.zookeeper.connect_string)
    result = run_tool(f"kafka.admin.{name}", *connect, *arguments)
    assert result.rc == 0, f"{name} {arguments}: {result}"
    return result.stdout


def test_the_jvms_tools_move_our_partitions_and_leaders(
    cluster: EmbeddedCluster, admin: AdminClient, tmp_path: Path
) -> None:
    """Generate, execute, verify, elect: our plans read theirs and the other way round."""
    admin.create_topic("moved", assignment={0: [0], 1: [0]})
    admin.await_leaders("moved")
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text(json.dumps({"topics": [{"topic": "moved"}], "version": 1}))
    generated = tool(
        cluster,
        "ReassignPartitionsCommand",
        *("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1"),
    )
    theirs = parse_moves(generated.splitlines()[-1])
    assert {TopicPartition("moved", n): (1,) for n in range(2)} == theirs

    moves = dict.fromkeys(theirs, (1, 0))
    plan.write_text(format_moves(moves))
    given = ("--reassignment-json-file", str(plan))
    started = tool(cluster, "ReassignPartitionsCommand", "--execute", *given)
    assert "Successfully started reassignment" in started
    until(lambda: {MoveStatus.COMPLETED} == set(admin.move_statuses(moves).values()), "the moves")
    verified = tool(cluster, "ReassignPartitionsCommand", "--verify", *given)
    assert 2 == verified.count("completed successfully")

    assert {0} == leaders(admin, "moved")
    assert "Successfully started" in tool(cluster, "PreferredReplicaLeaderElectionCommand")
    until(lambda: leaders(admin, "moved") == {1}, "broker 1 to lead")


def test_the_jvms_tool_alters_our_topics(cluster: EmbeddedCluster, admin: AdminClient) -> None:
    """Overrides reach running brokers, and added partitions get leaders."""
    cluster.create_topic("altered")
    alter = ("--alter", "--topic", "altered")
    tool(cluster, "TopicCommand", *alter, "--config", "max.message.bytes=100")
    tool(cluster, "TopicCommand", *alter, "--partitions", "3")
    admin.await_leaders("altered")
    [described] = admin.describe_topics(["altered"])
    assert (3, {"max.message.bytes": "100"}) == (len(described.partitions), described.config)
    log = cluster.leader_of("altered").process.log
    until(lambda: "Processed topic config change" in log.read_text(), "the brokers to hear")


def leaders(admin: AdminClient, topic: str) -> set[int | None]:
    return {partition.leader for partition in admin.describe_topics([topic])[0].partitions}
