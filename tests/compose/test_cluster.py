"""docker-compose.yml as a user runs it: from the host, from containers, and when parts fail."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.producer import KeyedMessage, Producer, ProducerConfig
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.store import ClusterStore
from tests.compose.conftest import HAS_FAILED
from tests.compose.project import ROOT
from tests.waiting import until

if TYPE_CHECKING:
    from tests.compose.project import ComposeProject

BROKERS = ("kafka1", "kafka2", "kafka3")
REPLICATION_FACTOR = 3
"""Of the topics of these tests."""


@pytest.fixture(autouse=True)
def whole(project: ComposeProject, request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test the cluster is whole again, and containers of tools are gone. After a failed
    one it is a new cluster, so that the test can be repeated."""
    yield
    project.remove_tools()
    if request.node.stash.get(HAS_FAILED, False):
        project.down(volumes=True)
    project.up()


def create(project: ComposeProject, topic: str, partitions: int = 3) -> None:
    """A topic whose replicas are all in sync."""
    project.kafka08(
        "topic",
        "create",
        topic,
        f"--partitions={partitions}",
        f"--replication-factor={REPLICATION_FACTOR}",
    )
    await_in_sync(project, topic)


def await_in_sync(project: ComposeProject, topic: str) -> None:
    until(
        lambda: all(len(isr) == REPLICATION_FACTOR for isr in project.in_sync(topic)),
        f"all replicas of {topic} are in sync",
        seconds=60,
    )


def producer(project: ComposeProject) -> Producer:
    """One that waits for all in-sync replicas, and out an election."""
    return Producer(
        ProducerConfig(
            metadata_broker_list=project.bootstrap,
            request_required_acks=-1,
            message_send_max_retries=60,
            retry_backoff_ms=500,
        )
    )


def send(project: ComposeProject, topic: str, values: range) -> None:
    with producer(project) as to:
        for start in values[::20]:
            block = range(start, min(start + 20, values.stop))
            to.send([KeyedMessage(topic, b"%d" % n, key=b"%d" % n) for n in block])


def read_on_host(project: ComposeProject, topic: str, count: int) -> list[str]:
    """`count` messages from the beginning, by the command line on this machine."""
    return project.kafka08(
        "consume", topic, "--from-beginning", f"--max-messages={count}"
    ).splitlines()


def logs(container: Any) -> str:
    text: bytes = container.logs(stdout=True, stderr=False)
    return text.decode()


def test_one_address_serves_host_and_containers(project: ComposeProject) -> None:
    """Messages go in and out on both sides, through the leader of every partition, which each
    side finds under the one name that it advertises."""
    create(project, "both")
    client = ClusterClient(parse_bootstrap(project.bootstrap))
    brokers = client.brokers()
    leaders = {partition.leader for partition in client.partitions("both")}
    client.close()
    assert [(b.host, b.port) for b in brokers] == [
        (f"{name}.localhost", project.ports[name]) for name in BROKERS
    ]
    assert leaders == {1, 2, 3}

    send(project, "both", range(30))
    inside = project.tools("consume", "both", "--from-beginning", "--max-messages=30")
    assert inside.wait(timeout=60)["StatusCode"] == 0, inside.logs().decode()
    assert sorted(map(int, logs(inside).split())) == list(range(30))

    from_inside = project.tools("produce", "both", "--input=/etc/kafka08/server.properties")
    assert from_inside.wait(timeout=60)["StatusCode"] == 0, from_inside.logs().decode()
    lines = (ROOT / "image" / "server.properties").read_text().splitlines()
    assert set(lines) <= set(read_on_host(project, "both", 30 + len(lines)))


def test_only_this_machine_is_served(project: ComposeProject) -> None:
    """Every published port is bound to loopback; no container runs as root but ZooKeeper's, whose
    image is not ours."""
    for service in ("zookeeper", *BROKERS):
        container = project.container(service)
        bindings = container.attrs["HostConfig"]["PortBindings"]
        assert bindings, service
        assert {b["HostIp"] for ports in bindings.values() for b in ports} == {"127.0.0.1"}
    uid = project.container("kafka1").exec_run("id -u").output.strip()
    assert uid not in {b"", b"0"}


def test_a_group_of_containers_shares_a_topic(project: ComposeProject, tmp_path: Path) -> None:
    """Two members in containers and one on the host: each message is read once, and all read."""
    create(project, "shared", partitions=6)
    member = ("consume", "shared", "--group=members", "--from-beginning", "--format=json")
    inside = [project.tools(*member) for _ in range(2)]
    await_owners(project, "members", "shared", 2)
    with project.background(tmp_path / "read", *member) as outside:
        await_owners(project, "members", "shared", 3)
        send(project, "shared", range(300))

        def read() -> list[list[str]]:
            return [values_of(text) for text in (outside.read_text(), *map(logs, inside))]

        until(lambda: sum(map(len, read())) >= 300, "everything was read")
    assert all(read()), "every member had partitions"
    assert sorted(int(value) for values in read() for value in values) == list(range(300))


def values_of(lines: str) -> list[str]:
    """Of what `kafka08 consume --format=json` printed so far."""
    return [json.loads(line)["value"] for line in lines.splitlines(keepends=True) if "\n" in line]


def await_owners(project: ComposeProject, group: str, topic: str, members: int) -> None:
    """Wait until this many members, of one stream each, share all partitions."""
    # The machine also starts three members.
    with ZkClient(project.zookeeper, connection_timeout_ms=30_000) as zk:
        store = ClusterStore(zk)
        [partitions] = map(len, store.assignments([topic]).values())

        def are_shared() -> bool:
            owners = GroupStore(store.zk).owners(group, topic)
            return len(owners) == partitions and len(set(owners.values())) == members

        until(are_shared, f"{members} members share {topic}", seconds=60)


def test_a_killed_broker_is_missed_and_comes_back(project: ComposeProject) -> None:
    """With a broker container killed, what is acknowledged stays; started, it catches up."""
    create(project, "killed")
    send(project, "killed", range(60))
    project.container("kafka2").kill()
    send(project, "killed", range(60, 120))
    assert sorted(map(int, read_on_host(project, "killed", 120))) == list(range(120))
    project.container("kafka2").start()
    await_in_sync(project, "killed")


def test_a_broker_that_ends_is_started_again(project: ComposeProject) -> None:
    """When its process ends by itself, the restart policy starts the container again."""
    before = project.container("kafka3").attrs["State"]["StartedAt"]
    project.container("kafka3").exec_run(["sh", "-c", "kill 1"])
    until(
        lambda: project.container("kafka3").attrs["State"]["StartedAt"] != before,
        "it was started again",
        seconds=60,
    )
    project.await_healthy("kafka3")


def test_brokers_outlive_a_paused_zookeeper(project: ComposeProject) -> None:
    """While ZooKeeper is silent, leaders continue to serve; afterwards all brokers register again
    and no acknowledged message is missing."""
    create(project, "paused")
    send(project, "paused", range(30))
    zookeeper = project.container("zookeeper")
    began = datetime.now(UTC)
    zookeeper.pause()
    try:
        for broker in BROKERS:
            project.await_logged(broker, "the connection is lost", began)
        with producer(project) as to:
            to.send([KeyedMessage("paused", b"30", key=b"30")])
        client = ClusterClient(parse_bootstrap(project.bootstrap))
        assert len(client.partitions("paused")) == 3
        client.close()
    finally:
        zookeeper.unpause()
    project.await_healthy("zookeeper", *BROKERS)
    await_in_sync(project, "paused")
    send(project, "paused", range(31, 60))
    assert sorted(map(int, read_on_host(project, "paused", 60))) == list(range(60))


def test_a_rolling_restart_loses_nothing(project: ComposeProject) -> None:
    """One broker after the other is stopped cleanly and started, under load."""
    create(project, "rolling")
    for number, service in enumerate(BROKERS):
        send(project, "rolling", range(number * 50, number * 50 + 25))
        project.compose("restart", service)
        send(project, "rolling", range(number * 50 + 25, number * 50 + 50))
        project.await_healthy(service)
        await_in_sync(project, "rolling")
    assert sorted(map(int, read_on_host(project, "rolling", 150))) == list(range(150))


def test_data_survives_down_and_up(project: ComposeProject) -> None:
    """Volumes keep the logs and ZooKeeper's data when the containers are gone."""
    create(project, "kept")
    send(project, "kept", range(40))
    project.down(volumes=False)
    project.up()
    await_in_sync(project, "kept")
    assert sorted(map(int, read_on_host(project, "kept", 40))) == list(range(40))


def test_spark_on_the_host_reads_by_range(project: ComposeProject) -> None:
    """A Spark job outside the network reads exact ranges from the leaders inside."""
    create(project, "spark", partitions=2)
    with producer(project) as to:
        for partition in (0, 1):
            to.send(
                [
                    KeyedMessage("spark", b"%d-%d" % (partition, n), partition_key=partition)
                    for n in range(50)
                ]
            )
    job = """
        import sys, tempfile
        from pathlib import Path
        from kafka08.embedded.java import find_java
        from kafka08.embedded.spark_java import make_java_home
        from kafka08.spark.session import local_session

        directory = Path(tempfile.mkdtemp())
        log = directory / "spark.log"
        java_home = make_java_home(directory / "java", find_java(), log)
        with local_session("compose", java_home, log) as spark:
            ranges = '[["spark", 0, 10, 20], ["spark", 1, 0, 5]]'
            reader = spark.read.format("kafka08").option("offsetRanges", ranges)
            rows = reader.option("kafka.bootstrap.servers", sys.argv[1]).load()
            for row in rows.orderBy("partition", "offset").collect():
                print(row.partition, row.offset)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(job), project.bootstrap],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = [(0, n) for n in range(10, 20)] + [(1, n) for n in range(5)]
    assert [tuple(map(int, line.split())) for line in done.stdout.splitlines()] == expected
