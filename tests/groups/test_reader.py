"""Groups read from a real ZooKeeper, with one broker in memory that keeps offsets and logs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kafka08.groups import GroupReader, explain
from kafka08.protocol.offset_fetch import probe
from kafka08.structs import OFFSETS_TOPIC, Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from tests.consumer.groups import PaperCluster
from tests.consumer.store_cluster import HOST, PORT, StoreCluster

T0, T1 = TopicPartition("tt", 0), TopicPartition("tt", 1)


@pytest.fixture
def cluster(zk: ZkClient, zk_connect: str) -> PaperCluster:
    paper = PaperCluster(zk, zk_connect)
    zk.delete(paths.broker(1))
    paper.store.register_broker(Broker(1, HOST, PORT), timestamp_ms=1)
    paper.create_topic("tt", 2)
    state = LeaderAndIsr(leader=1, leader_epoch=0, isr=(1,), zk_version=0, controller_epoch=1)
    paper.store.create_leader_and_isr({T0: state, T1: state})
    return paper


def reader(cluster: PaperCluster, broker: StoreCluster) -> GroupReader:
    return GroupReader(cluster.connect, runtime=broker.runtime)


def test_it_reads_both_stores_members_owners_and_logs(cluster: PaperCluster) -> None:
    """Everything of a settled group; offsets of Kafka are found although ZooKeeper has none."""
    broker = StoreCluster()
    broker.create_topic(cluster.store.zk, OFFSETS_TOPIC, 1)
    GroupStore(cluster.store.zk).commit_offsets("g", {T0: 30})
    broker.committed = {T0: 40, T1: 50}
    member = cluster.member("a")
    member.create_message_streams({"tt": 1})
    with reader(cluster, broker) as looking:
        facts = looking.facts("g")
        assert [(s.name, s.members, s.topics) for s in looking.groups()] == [("g", 1, ("tt",))]
    member.shutdown()
    [found] = facts.members
    assert (found.consumer_id, dict(found.streams)) == ("g_a", {"tt": 1})
    rows = [(p.zookeeper, p.kafka, p.log_start, p.log_end, p.lag) for p in facts.partitions]
    assert rows == [(30, 40, 0, 1000, 960), (None, 50, 0, 1000, 950)]
    assert {p.owner.session for p in facts.partitions if p.owner} == {found.session}
    assert [f.kind for f in explain(facts)] == ["stores-disagree", "only-in-kafka"]


def test_the_text_of_an_owner_has_a_bound(cluster: PaperCluster) -> None:
    """A megabyte in an owner znode is not printed in reports."""
    cluster.store.zk.create(paths.owner("g", "tt", 0), "x" * 100_000)
    with reader(cluster, StoreCluster()) as looking:
        [owner] = [p.owner for p in looking.facts("g").partitions if p.owner is not None]
    assert 1001 == len(owner.thread_id)


def test_an_offset_that_cannot_be_read_concerns_its_partition_alone(cluster: PaperCluster) -> None:
    """The rest is shown; the partition counts neither as committed nor as never committed."""
    GroupStore(cluster.store.zk).commit_offsets("g", {T0: 30, T1: 40})
    cluster.zk.set(paths.offset("g", *T1), "forty")
    with reader(cluster, StoreCluster()) as looking:
        facts = looking.facts("g")
    sound, broken = facts.partitions
    assert (30, 970, None) == (sound.zookeeper, sound.lag, sound.zookeeper_fault)
    assert (None, None, False) == (broken.newest, broken.lag, broken.never_committed)
    found = {finding.kind: finding for finding in explain(facts)}
    assert "/consumers/g/offsets/tt/1" in found["unreadable-offset"].says
    assert "kafka08 offsets set g tt:1=OFFSET" in found["unreadable-offset"].advice
    assert "at least 970" in found["no-members"].says


def test_a_partition_that_was_added_later_is_there(cluster: PaperCluster) -> None:
    """While the group was stopped its topic got a second partition, and messages: the facts include
    both."""
    GroupStore(cluster.store.zk).commit_offsets("g", {T0: 30})
    with reader(cluster, StoreCluster()) as looking:
        facts = looking.facts("g")
    assert [(p.topic_partition, p.never_committed, p.lag) for p in facts.partitions] == [
        (T0, False, 970),
        (T1, True, 1000),
    ]
    assert "never-committed" in [f.kind for f in explain(facts)]


def test_a_topic_that_was_owned_and_never_committed_is_there(cluster: PaperCluster) -> None:
    """Its members have gone: the znode of the topic stays below the owners."""
    cluster.zk.create(paths.owners("g", "tt"))
    with reader(cluster, StoreCluster()) as looking:
        facts = looking.facts("g")
    assert [p.topic_partition for p in facts.partitions if p.never_committed] == [T0, T1]


def test_facts_have_only_the_groups_topics(cluster: PaperCluster) -> None:
    """The reader's view has the whole cluster; the facts leave out the topics of other groups."""
    with reader(cluster, StoreCluster()) as looking:
        assert repr(looking) == f"<GroupReader {cluster.connect}>"
        assert "tt" not in repr(looking.facts("g"))


def test_a_read_does_not_create_the_offsets_topic(cluster: PaperCluster) -> None:
    """Without an offsets topic no broker is asked for a coordinator, which would create it."""
    broker = StoreCluster()
    with reader(cluster, broker) as looking:
        assert looking.facts("g").failed_requests == ()
        assert not looking.facts("g").exists
    assert all(request == probe() for request in broker.asked), "only by find_silent"


def test_brokers_that_do_not_answer_are_noted(cluster: PaperCluster) -> None:
    """ZooKeeper's half is shown all the same."""
    cluster.create_topic(OFFSETS_TOPIC, 1)
    GroupStore(cluster.store.zk).commit_offsets("g", {T0: 30})
    with GroupReader(cluster.connect, bootstrap="127.0.0.1:1") as looking:
        facts = looking.facts("g")
    assert [p.zookeeper for p in facts.partitions] == [30, None]
    assert not any(p.never_committed for p in facts.partitions), "Kafka could not be asked"
    assert [what[:8] for what in facts.failed_requests] == ["brokers:", "offsets ", "offsets "]


def test_owner_znodes_that_name_no_partition_are_noted(cluster: PaperCluster) -> None:
    """Other znodes beside the owners are noted, and the owners are read."""
    for name in ("0.lock", "1_0", "-1"):
        cluster.zk.create(f"{paths.owners('g', 'tt')}/{name}", "x")
    cluster.zk.create(paths.owner("g", "tt", 1), "g_a-0")
    with reader(cluster, StoreCluster()) as looking:
        facts = looking.facts("g")
    assert [p.topic_partition for p in facts.partitions if p.owner] == [T1]
    assert [path.rpartition("/")[2] for path in facts.strays] == ["-1", "0.lock", "1_0"]


def run(cluster: PaperCluster, *words: str) -> subprocess.CompletedProcess[str]:
    where = ["--zookeeper", cluster.connect]
    return subprocess.run(
        [sys.executable, "-m", "kafka08.cli", "group", *words, *where],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_commands(cluster: PaperCluster) -> None:
    """list, describe and explain in text and JSON, with a finding as exit code 1, and a group that
    is not there as an error."""
    cluster.zk.create(paths.owner("g", "tt", 0), "zombie-0")
    here = ("--bootstrap", "127.0.0.1:1")
    listed = run(cluster, "list", "--json")
    [row] = json.loads(listed.stdout)
    assert (row["group"], row["kind"], row["members"], row["topics"]) == ("g", "zookeeper", 0, [])
    described = run(cluster, "describe", "g", *here)
    assert described.returncode == 1, "no broker responds"
    assert described.stdout.split()[:3] == ["topic", "partition", "owner"]
    assert "zombie-0" in described.stdout
    explained = run(cluster, "explain", "g", "--json", *here)
    assert explained.returncode == 1
    found = {f["kind"]: f for f in json.loads(explained.stdout)["findings"]}
    assert found["blocking-owner"]["subject"] == "/consumers/g/owners/tt/0"
    missing = run(cluster, "describe", "nobody", *here)
    assert missing.returncode == 1
    assert "there is no group nobody" in missing.stderr
