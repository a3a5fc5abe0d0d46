"""Topics by requests alone: `kafka08 topic … --bootstrap`, on brokers of 0.10.2 and of 0.8.2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import pytest

from kafka08.admin import BrokerAdmin
from kafka08.client import parse_bootstrap
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import AdminError, NoBrokersAvailable
from kafka08.structs import OFFSETS_TOPIC
from tests.waiting import until


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """Two brokers of 0.10.2 with delete.topic.enable."""
    with EmbeddedCluster(2, level="0.10.2") as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: EmbeddedCluster) -> Run:
    """Run `kafka08 topic …` with --bootstrap and without ZooKeeper."""

    return lambda *arguments: kafka08("topic", *arguments, "--bootstrap", cluster.bootstrap)


def is_known(admin: BrokerAdmin, name: str, is_there: bool) -> bool:
    return is_there == (name in admin.list_topics())


def await_everywhere(cluster: EmbeddedCluster, name: str, is_there: bool) -> None:
    """Wait until every broker knows the topic, or no longer knows it."""
    for address in parse_bootstrap(cluster.bootstrap):
        with BrokerAdmin([address]) as admin:
            until(partial(is_known, admin, name, is_there))


def kafka08(*arguments: str, **environ: str) -> Outcome:
    """Run the command with only these addresses of a cluster."""
    unset = {"KAFKA08_ZOOKEEPER": "", "KAFKA08_BOOTSTRAP": ""}
    done = subprocess.run(
        [sys.executable, "-m", "kafka08.cli", *arguments],
        env={**os.environ, **unset, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_a_topic_lives_without_zookeeper(cluster: EmbeddedCluster, topic: Run) -> None:
    """A topic is created with its leaders, listed, described and deleted by requests alone."""
    counts = ("--partitions", "3", "--replication-factor", "2")
    created = topic("create", "t", *counts, "--config", "retention.ms=1000", "--json")
    assert 0 == created.code, created
    replicas = json.loads(created.out)["partitions"]
    assert [2, 2, 2] == [len(brokers) for brokers in replicas.values()]
    await_everywhere(cluster, "t", True)
    assert "t" in topic("list").out.split()
    (described,) = json.loads(topic("describe", "t", "--json").out)
    assert replicas == {str(p["partition"]): p["replicas"] for p in described["partitions"]}
    assert "Topic:t\tPartitionCount:3\tReplicationFactor:2" in topic("describe", "t").out
    assert (0, "Deleted topic t.\n", "") == topic("delete", "t")
    await_everywhere(cluster, "t", False)
    assert "t" not in topic("list").out.split()


def test_replicas_can_be_chosen(topic: Run) -> None:
    """The command takes the replicas of each partition."""
    created = topic("create", "chosen", "--replica-assignment", "2:1,1:2", "--json")
    assert {"0": [2, 1], "1": [1, 2]} == json.loads(created.out)["partitions"]


def test_a_dry_run_changes_nothing(topic: Run) -> None:
    """The broker validates the request, and creates no topic."""
    assert (0, 'Would create topic "dry".\n', "") == topic("create", "dry", "--dry-run")
    assert "dry" not in topic("list").out.split()
    refused = topic("create", "dry", "--replication-factor", "3", "--dry-run")
    assert (1, "") == refused[:2]
    assert "replication factor: 3 larger than available brokers: 2" in refused.err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("create", "bad", "--config", "nonsense=1"), "Unknown Log configuration nonsense."),
        (("create", "bad", "--config", "segment.bytes=x"), "segment.bytes"),
        (("delete", "absent"), "Topic absent does not exist"),
        (("describe", "absent"), "Topic absent does not exist"),
    ],
)
def test_refusals_say_why(topic: Run, arguments: tuple[str, ...], text: str) -> None:
    """Errors have the broker's message. Describing an unknown topic does not create it."""
    done = topic(*arguments)
    assert (1, "") == done[:2]
    assert text in done.err
    assert not {"bad", "absent"} & set(topic("list").out.split())


def test_an_existing_topic_is_not_created_again(topic: Run) -> None:
    """Creating an existing topic fails as it does through ZooKeeper."""
    topic("create", "twice")
    done = topic("create", "twice")
    assert 1 == done.code
    assert 'Topic "twice" already exists.' in done.err


def test_an_internal_topic_is_not_deleted(cluster: EmbeddedCluster, topic: Run) -> None:
    """As through ZooKeeper: brokers would delete it, and every group would lose its offsets."""
    topic("create", OFFSETS_TOPIC)
    await_everywhere(cluster, OFFSETS_TOPIC, True)
    for flags in (("--dry-run",), ()):
        done = topic("delete", OFFSETS_TOPIC, *flags)
        assert (1, "") == done[:2]
        assert f"{OFFSETS_TOPIC} is a kafka internal topic" in done.err
    assert OFFSETS_TOPIC in topic("list").out.split()


def test_options_that_need_zookeeper_are_misuse(topic: Run) -> None:
    """The error names the option that is needed."""
    for arguments in (
        ("describe", "--topics-with-overrides"),
        ("create", "t", "--disable-rack-aware"),
    ):
        done = topic(*arguments)
        assert 2 == done.code
        assert "needs --zookeeper" in done.err


def test_zookeeper_takes_precedence_in_the_environment(cluster: EmbeddedCluster) -> None:
    """With both in the environment ZooKeeper is used; --bootstrap on the command line overrides
    it."""
    both = {"KAFKA08_ZOOKEEPER": "localhost:1", "KAFKA08_BOOTSTRAP": cluster.bootstrap}
    assert 1 == kafka08("topic", "list", **both).code
    assert 0 == kafka08("topic", "list", "--bootstrap", cluster.bootstrap, **both).code


def test_brokers_of_0_8_list_and_describe_alone() -> None:
    """The error of create and delete says that they need ZooKeeper at 0.8."""
    with EmbeddedCluster(1, level="0.8.2") as cluster:
        cluster.create_topic("old")
        with BrokerAdmin(parse_bootstrap(cluster.bootstrap)) as admin:
            assert ["old"] == admin.list_topics()
            assert ["old"] == [topic.name for topic in admin.describe_topics()]
            for refused in (admin.create_topic, admin.delete_topic):
                with pytest.raises(AdminError, match=r"older than the request .* give --zookeeper"):
                    refused("old")


def test_a_dead_replica_of_0_8_is_not_in_sync() -> None:
    """Without ZooKeeper, too, the partition is under-replicated, although a broker of 0.8 names its
    live replicas alone. (The broker is killed: after a controlled shutdown, brokers of 0.8 may list
    it until the controller has something else to tell them.)"""
    with EmbeddedCluster(2, level="0.8.2") as cluster:
        cluster.create_topic("pair", 1, 2)
        cluster.kill(1)
        with BrokerAdmin(parse_bootstrap(cluster.bootstrap)) as admin:
            until(lambda: admin.describe_topics(["pair"])[0].partitions[0].replicas == (0,))
            [partition] = admin.describe_topics(["pair"])[0].partitions
        assert (0, (0,), True) == (partition.leader, partition.isr, partition.under_replicated)


def test_no_broker_at_all() -> None:
    """An unreachable broker is reported as by every other command."""
    with BrokerAdmin([("127.0.0.1", 1)]) as admin, pytest.raises(NoBrokersAvailable):
        admin.list_topics()


def test_views_need_no_zookeeper(cluster: EmbeddedCluster, topic: Run) -> None:
    """Each shows the topic by --bootstrap alone, and knows all that it asks for."""
    assert topic("create", "seen", "--partitions", "2").code == 0
    await_everywhere(cluster, "seen", True)
    for command in (("top", "--once", "--json"), ("metrics",), ("report", "--output", "-")):
        done = kafka08(*command, "--bootstrap", cluster.bootstrap)
        assert done.code == 0, done.err
        assert "seen" in done.out
    found = json.loads(kafka08("doctor", "--json", "--bootstrap", cluster.bootstrap).out)
    assert found["brokers"] == 2
    # Another test may have made it before both brokers were there.
    assert {one["check"] for one in found["findings"]} <= {"offsets-topic-one-replica"}
    listed = kafka08("broker", "list", "--bootstrap", cluster.bootstrap).out
    assert all(address in listed for address in cluster.bootstrap.split(","))
