"""Drills: what every view of a cluster says when something is broken. docs/operations.md has the
table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from kafka08.admin import AdminClient
from kafka08.consumer import ConsumerConfig, ConsumerConnector
from kafka08.embedded import EmbeddedCluster
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from tests.cpu_speed import slowdown

PARTITIONS, MESSAGES, READ = 6, 120, 60
VIEWS = {
    "doctor": ["doctor"],
    "top": ["top", "--once"],
    "report": ["report", "--seconds", "1", "--output", "-"],
    "metrics": ["metrics"],
    "topic offsets": ["topic", "offsets"],
    "topic describe": ["topic", "describe"],
    "group describe": ["group", "describe", "readers"],
    "group explain": ["group", "explain", "readers"],
    "group list": ["group", "list"],
    "offsets lag": ["offsets", "lag", "readers"],
    "broker list": ["broker", "list"],
}
LONG_MS = 60_000
"""A session timeout: a broker that hangs stays registered, and leads, for a whole test."""


class Said(NamedTuple):
    code: int
    seconds: float
    out: str
    err: str


def view(name: str, zookeeper: str) -> Said:
    began = time.monotonic()
    environ = {key: value for key, value in os.environ.items() if key != "KAFKA08_ZOOKEEPER"}
    done = subprocess.run(
        [sys.executable, "-m", "kafka08.cli", *VIEWS[name], "--zookeeper", zookeeper],
        capture_output=True, text=True, check=False, env=environ, timeout=300,
    )  # fmt: skip
    return Said(done.returncode, time.monotonic() - began, done.stdout, done.stderr)


@pytest.fixture(scope="module", params=["0.8.2", "0.10.2"])
def cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    """Three brokers, and a group that has read half of a topic, and has no members."""
    config = {"zookeeper.session.timeout.ms": LONG_MS, "offsets.topic.replication.factor": 3}
    with EmbeddedCluster(brokers=3, level=request.param, config=config) as cluster:
        zookeeper = cluster.zookeeper.connect_string
        with AdminClient(zookeeper) as admin:
            admin.create_topic("t", PARTITIONS, 3)
            admin.await_leaders("t")
        keys = {"bootstrap.servers": cluster.bootstrap, "acks": "-1", "retries": "100"}
        with KafkaProducer(KafkaProducerConfig(keys)) as producer:
            for number in range(MESSAGES):
                partition = number % PARTITIONS
                producer.send(ProducerRecord("t", b"x", partition=partition)).result(20)
        group = {
            "group.id": "readers",
            "zookeeper.connect": zookeeper,
            "auto.offset.reset": "smallest",
            "offsets.storage": "kafka",
            "auto.commit.enable": "false",
        }
        with ConsumerConnector(ConsumerConfig(group)) as connector:
            [stream] = connector.create_message_streams({"t": 1})["t"]
            for _ in range(READ):
                next(stream)
            connector.commit_offsets()
        yield cluster


def test_a_group_without_members_is_bad_at_once(cluster: EmbeddedCluster) -> None:
    """It has unread messages, which nobody will read: every view that shows verdicts says so."""
    zookeeper = cluster.zookeeper.connect_string
    assert "STOP" in view("top", zookeeper).out
    assert (
        'kafka_consumergroup_status{consumergroup="readers"} 4.0' in view("metrics", zookeeper).out
    )
    assert '"verdict":"STOP"' in view("report", zookeeper).out.replace(" ", "")
    for name in ("doctor", "group explain"):
        said = view(name, zookeeper)
        assert said.code == 1
        assert f"{MESSAGES - READ} messages are unread" in said.out + said.err


def test_an_offset_beyond_the_end_is_the_same_in_every_view(cluster: EmbeddedCluster) -> None:
    """Its lag is unknown; those of the other partitions count."""
    zookeeper = cluster.zookeeper.connect_string
    with ZkClient(zookeeper) as zk:
        offsets = {TopicPartition("t", 0): 1000, TopicPartition("t", 1): 19}
        GroupStore(zk).commit_offsets("ahead", offsets)

    def asked(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "kafka08.cli", *words, "--zookeeper", zookeeper]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    code, lag = asked("offsets", "lag", "ahead", "--json")
    assert (1, MESSAGES - 2 * 20 + 1) == (code, json.loads(lag)[0]["lag"])
    code, described = asked("group", "describe", "ahead", "--json")
    assert [None, 1] == [p["lag"] for p in json.loads(described)["partitions"]][:2]
    _, top = asked("top", "--once", "--json")
    [row] = [row for row in json.loads(top)["groups"] if row["group"] == "ahead"]
    assert (MESSAGES - 2 * 20 + 1, "BEYOND") == (row["lag"], row["verdict"])
    _, metrics = asked("metrics")
    assert 'kafka_consumergroup_lag_sum{consumergroup="ahead",topic="t"} 81.0' in metrics
    assert 'kafka_consumergroup_status{consumergroup="ahead"} 7.0' in metrics


@pytest.mark.parametrize("name", sorted({*VIEWS} - {"report"}))
def test_a_forgotten_chroot_is_no_empty_cluster(cluster: EmbeddedCluster, name: str) -> None:
    """The error, or the finding, has the address where there are brokers."""
    zookeeper = cluster.zookeeper.connect_string
    with ZkClient(zookeeper) as zk:
        zk.ensure("/elsewhere")
    said = view(name, f"{zookeeper}/elsewhere")
    assert said.code == 1
    assert f"at {zookeeper}" in said.out + said.err


def test_a_hung_broker_is_named_by_every_view(
    cluster: EmbeddedCluster, request: pytest.FixtureRequest
) -> None:
    """Each view shows what it knows, says what it does not and why, and exits 1, within seconds.
    (The doctor was silent for a minute, and `group describe` had "-" and exit code 0.) The views
    run beside each other: the broker's session ends if it hangs for longer."""
    names = {*VIEWS}
    if "0.8.2" in request.node.name:
        names.remove("group list")  # all its groups are in ZooKeeper
    zookeeper, broker = cluster.zookeeper.connect_string, cluster.brokers[1]
    cluster.pause(broker)
    try:
        with ThreadPoolExecutor(4) as pool:
            said = pool.map(lambda name: view(name, zookeeper), names)
            found = dict(zip(names, said, strict=True))
    finally:
        cluster.resume(broker)
    address = f"{broker.host}:{broker.port}"
    for name, one in found.items():
        assert one.code == 1, (name, one.err)
        assert one.seconds < 20 * slowdown(), name
        assert f"{address} did not respond" in one.out + one.err or (
            f"broker 1 ({address}): does not respond" in one.out + one.err
        ), name
