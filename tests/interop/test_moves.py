"""The JVM's tools that alter topics and move partitions and leaders, on brokers of their level."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka08.admin import AdminClient, MoveStatus
from kafka08.admin.moves import format_moves, parse_moves
from kafka08.embedded import EmbeddedCluster
from kafka08.structs import TopicPartition
from tests.interop.jvm import POM, POM_0_10_2, run_tool
from tests.waiting import until

POM_OF = {"0.8.2": POM, "0.10.2": POM_0_10_2}
"""By the level of our brokers."""


@pytest.fixture(scope="module", params=["0.8.2", "0.10.2"])
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def cluster(level: str) -> Iterator[EmbeddedCluster]:
    config = {"auto.leader.rebalance.enable": "false"}
    with EmbeddedCluster(2, config, level=level) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: EmbeddedCluster) -> Iterator[AdminClient]:
    with AdminClient(cluster.zookeeper.connect_string) as admin:
        yield admin


@pytest.fixture
def tool(cluster: EmbeddedCluster, level: str) -> Callable[..., str]:
    def run(name: str, *arguments: str) -> str:
        connect = ("--zookeeper", cluster.zookeeper.connect_string)
        result = run_tool(f"kafka.admin.{name}", *connect, *arguments, pom=POM_OF[level])
        assert result.rc == 0, f"{name} {arguments}: {result}"
        return result.stdout

    return run


def test_the_jvms_tools_move_our_partitions_and_leaders(
    tool: Callable[..., str], admin: AdminClient, tmp_path: Path
) -> None:
    """The JVM's tools generate, execute and verify moves and elect leaders: each side reads the
    other's plans."""
    admin.create_topic("moved", assignment={0: [0], 1: [0]})
    admin.await_leaders("moved")
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text(json.dumps({"topics": [{"topic": "moved"}], "version": 1}))
    generated = tool(
        "ReassignPartitionsCommand",
        *("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1"),
    )
    theirs = parse_moves(generated.splitlines()[-1])
    assert {TopicPartition("moved", n): (1,) for n in range(2)} == theirs

    moves = dict.fromkeys(theirs, (1, 0))
    plan.write_text(format_moves(moves))
    given = ("--reassignment-json-file", str(plan))
    started = tool("ReassignPartitionsCommand", "--execute", *given)
    assert "Successfully started reassignment" in started
    until(lambda: {MoveStatus.COMPLETED} == set(admin.move_statuses(moves).values()), "the moves")
    verified = tool("ReassignPartitionsCommand", "--verify", *given)
    assert 2 == verified.count("completed successfully")

    assert {0} == leaders(admin, "moved")
    assert "Successfully started" in tool("PreferredReplicaLeaderElectionCommand")
    until(lambda: leaders(admin, "moved") == {1}, "broker 1 to lead")


def test_the_jvms_tool_alters_our_topics(
    tool: Callable[..., str], cluster: EmbeddedCluster, admin: AdminClient
) -> None:
    """Overrides take effect in running brokers, and added partitions get leaders."""
    cluster.create_topic("altered")
    alter = ("--alter", "--topic", "altered")
    tool("TopicCommand", *alter, "--config", "max.message.bytes=100")
    tool("TopicCommand", *alter, "--partitions", "3")
    admin.await_leaders("altered")
    [described] = admin.describe_topics(["altered"])
    assert (3, {"max.message.bytes": "100"}) == (len(described.partitions), described.config)
    log = cluster.leader_of("altered").process.log
    until(lambda: "Processed topic config change" in log.read_text(), "the brokers to hear")


def leaders(admin: AdminClient, topic: str) -> set[int | None]:
    return {partition.leader for partition in admin.describe_topics([topic])[0].partitions}
