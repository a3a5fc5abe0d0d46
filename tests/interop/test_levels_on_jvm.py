"""Brokers of 0.9.0.1 and 0.10.2.2 beside ours of the same level: one cluster, equal responses."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka08.levels import Level
from kafka08.network.connection import Connection
from kafka08.protocol.api_versions import ApiVersionsRequest
from kafka08.protocol.create_topics import CreateTopicsRequest, NewTopic, ReplicaAssignment
from kafka08.protocol.delete_topics import DeleteTopicsRequest
from kafka08.protocol.frame import SIZE
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.offsets import OffsetsPartition, OffsetsRequest, OffsetsTopic
from kafka08.protocol.sasl_handshake import SaslHandshakeRequest
from kafka08.protocol.types import Request
from kafka08.zk import nodes, paths
from tests.histories.workload import Workload
from tests.interop.jvm import POM_0_9_0, POM_0_10_2
from tests.interop.seats import HOST, MixedCluster, Release, Seat, mixed_cluster
from tests.waiting import until

PIN = {"inter.broker.protocol.version": "0.8.2", "log.message.format.version": "0.8.2"}
MAGIC_0 = {"log.message.format.version": "0.9.0"}
RELEASES = {
    "0.9.0": Release(POM_0_9_0, "0.9.0", {}),
    "0.9.0-pinned": Release(POM_0_9_0, "0.9.0", {"inter.broker.protocol.version": "0.8.2"}),
    "0.10.2-pinned": Release(POM_0_10_2, "0.10.2", PIN),
    "0.10.2": Release(POM_0_10_2, "0.10.2", MAGIC_0),
    "0.10.2-magic-1": Release(POM_0_10_2, "0.10.2", {}),
}
TOPIC = "mixed"
CLEAN = {"unclean.leader.election.enable": "false"}


@pytest.mark.parametrize("release", RELEASES)
def test_a_jvm_broker_and_ours_replace_each_other(tmp_path: Path, release: str) -> None:
    """Each broker follows, leads and is the controller; each dies while the other continues, and
    returns. In the end both logs are equal, byte for byte."""
    with mixed_cluster(tmp_path, 2, RELEASES[release]) as cluster:
        jvm, ours = cluster.seats
        jvm.start_jvm()
        ours.start_ours()
        assert jvm.id == cluster.controller()
        assert version_of(cluster, jvm) == version_of(cluster, ours)
        cluster.admin.create_topic(TOPIC, assignment={0: [1, 2], 1: [2, 1]}, config=CLEAN)
        cluster.await_isr(TOPIC, 1, 2)
        with Workload(cluster.bootstrap, TOPIC, partitions=2) as work:
            work.await_progress()
            jvm.kill()
            until(lambda: cluster.controller() == ours.id, "our broker to be the controller")
            cluster.await_isr(TOPIC, ours.id)
            work.await_progress()
            jvm.start_jvm()
            cluster.await_isr(TOPIC, 1, 2)
            work.await_progress()
            ours.stop()
            until(lambda: cluster.controller() == jvm.id, "the JVM to be the controller")
            cluster.await_isr(TOPIC, jvm.id)
            work.await_progress()
            ours.start_ours()
            cluster.await_isr(TOPIC, 1, 2)
            work.await_progress()
        assert [] == work.problems()
        cluster.await_equal_logs(TOPIC, 2)


def version_of(cluster: MixedCluster, seat: Seat) -> int:
    return cluster.store.registrations([seat.id])[seat.id].version


@pytest.mark.parametrize("release", ["0.9.0-pinned", "0.10.2-pinned", "0.10.2"])
def test_the_first_topic_of_an_empty_cluster_keeps_the_newcomer(
    tmp_path: Path, release: str
) -> None:
    """Our controller sends UpdateMetadata to a new JVM broker before there is a topic, so the ISR
    of the first topic keeps that broker."""
    with mixed_cluster(tmp_path, 2, RELEASES[release]) as cluster:
        jvm, ours = cluster.seats
        ours.start_ours()
        until(lambda: cluster.controller() == ours.id, "our broker to be the controller")
        jvm.start_jvm()
        cluster.admin.create_topic(TOPIC, assignment={0: [2, 1], 1: [1, 2]}, config=CLEAN)
        cluster.await_isr(TOPIC, 1, 2)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    """A JVM broker 1, the controller, and ours, 2, both unpinned at 0.10.2."""
    directory = tmp_path_factory.mktemp("pair")
    with mixed_cluster(directory, 2, RELEASES["0.10.2"]) as cluster:
        cluster.seats[0].start_jvm()
        cluster.seats[1].start_ours()
        cluster.admin.create_topic("t", assignment={0: [1, 2], 1: [2, 1]})
        cluster.admin.create_topic("u_v", assignment={0: [1, 7]})
        cluster.await_isr("t", 1, 2)
        for seat in cluster.seats:
            until(lambda s=seat: "u_v" in topics_of(s), "metadata")  # type: ignore[misc]
        yield cluster


def ask(seat: Seat, request: Request) -> Any:
    with Connection(HOST, seat.port) as connection:
        return connection.send(request)


def topics_of(seat: Seat) -> list[str]:
    return [topic.topic for topic in ask(seat, MetadataRequest(None, version=1)).topics]


def responses(cluster: MixedCluster, request: Request) -> tuple[str, str]:
    """Both responses, without the order in which a HashMap has it."""
    theirs, ours = (in_order(ask(seat, request)) for seat in cluster.seats)
    return str(theirs), str(ours)


def in_order(response: Any) -> Any:
    for field in ("topics", "brokers"):
        items = getattr(response, field, [])
        items.sort(key=str)
        for item in items:
            for partition in getattr(item, "partitions", []):
                getattr(partition, "replicas", []).sort()
            getattr(item, "partitions", []).sort(key=str)
    return response


REQUESTS: dict[str, Request] = {
    "versions": ApiVersionsRequest(),
    "sasl": SaslHandshakeRequest("PLAIN"),
    **{f"metadata {v} of all": MetadataRequest(None, version=v) for v in (0, 1, 2)},
    **{f"metadata {v} of one": MetadataRequest(["u_v"], version=v) for v in (0, 1, 2)},
    "metadata of none": MetadataRequest([], version=2),
    "metadata of a bad name": MetadataRequest(["t", "a b"], version=2),
    "offsets of nowhere": OffsetsRequest(
        -1, [OffsetsTopic("x", [OffsetsPartition(0, -1, 1)])], version=1
    ),
    "offsets twice": OffsetsRequest(
        -1, [OffsetsTopic("x", [OffsetsPartition(0, -1, 1)] * 2)], version=1
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_responses_are_equal(pair: MixedCluster, name: str) -> None:
    """The JVM broker and ours send equal responses about the same cluster."""
    request = REQUESTS[name]
    # On a busy machine an ISR may shrink and grow, which one broker hears of before the other.
    until(
        lambda: len(set(responses(pair, request))) == 1,
        "equal responses",
        explain=lambda: " | ".join(responses(pair, request)),
    )


@pytest.mark.parametrize(
    "payload",
    [
        "0012000300000007000163",
        "001200090000000700016300",
        "000300030000000700016300000000",
        "001500000000000700016300000000",
        "000000030000000700016300000000",
    ],
)
def test_unsupported_versions_are_refused_alike(pair: MixedCluster, payload: str) -> None:
    """Both brokers send error 35 or close the connection."""
    frame = bytes.fromhex(payload)
    found = []
    for seat in pair.seats:
        with socket.create_connection((HOST, seat.port), timeout=10) as connection:
            connection.sendall(SIZE.pack(len(frame)) + frame)
            try:
                found.append(connection.recv(4096))
            except ConnectionResetError:
                found.append(b"")
    assert found[0] == found[1]


CREATIONS = {
    "good": NewTopic("new", 2, 2, [], []),
    "exists": NewTopic("t", 1, 1, [], []),
    "collides": NewTopic("u.v", 1, 1, [], []),
    "bad name": NewTopic("a b", 1, 1, [], []),
    "no partitions": NewTopic("new", 0, 1, [], []),
    "too many replicas": NewTopic("new", 1, 3, [], []),
    "no replicas": NewTopic("new", 1, 0, [], []),
    "both": NewTopic("new", 1, 1, [ReplicaAssignment(0, [1])], []),
    "neither": NewTopic("new", -1, -1, [], []),
    "a broker twice": NewTopic("new", -1, -1, [ReplicaAssignment(0, [1, 1])], []),
}


EXPECTED: dict[str, int] = {}
"""The response of the JVM controller."""


@pytest.mark.parametrize("name", CREATIONS)
def test_topics_are_checked_alike(pair: MixedCluster, name: str) -> None:
    """With validateOnly both controllers, the JVM here and ours in the next test, send the same
    error codes. A broker that is not the controller sends 41."""
    request = CreateTopicsRequest([CREATIONS[name]], 5000, validate_only=True, version=1)
    jvm, ours = (ask(seat, request).topics[0].error_code for seat in pair.seats)
    assert 41 == ours
    EXPECTED[name] = jvm


def test_our_controller_creates_and_deletes(pair: MixedCluster) -> None:
    """Our controller sends the JVM controller's error codes. A created topic has leaders on both
    brokers, and a deleted one disappears from both."""
    jvm, ours = pair.seats
    jvm.stop()
    until(lambda: pair.controller() == ours.id, "our broker to be the controller")
    jvm.start_jvm()
    until(lambda: len(ask(ours, MetadataRequest([], version=1)).brokers) == 2, "both brokers")
    for name, expected in EXPECTED.items():  # all of them, unless one test is run alone
        request = CreateTopicsRequest([CREATIONS[name]], 5000, validate_only=True, version=1)
        assert expected == ask(ours, request).topics[0].error_code, name
    created = ask(ours, CreateTopicsRequest([NewTopic("new", 2, 2, [], [])], 20_000))
    assert [0] == [topic.error_code for topic in created.topics]
    for seat in pair.seats:
        until(lambda s=seat: "new" in topics_of(s), "the new topic")  # type: ignore[misc]
    pair.await_isr("new", 1, 2)
    deleted = ask(ours, DeleteTopicsRequest(["new", "nowhere"], 30_000))
    assert {"new": 0, "nowhere": 3} == {t.topic: t.error_code for t in deleted.topics}
    for seat in pair.seats:
        until(lambda s=seat: "new" not in topics_of(s), "its end")  # type: ignore[misc]
    until(lambda: pair.store.assignment("new") is None, "its znodes to be removed")


def test_our_registration_equals_theirs(pair: MixedCluster) -> None:
    """Both brokers write the same registration, except for the values that distinguish brokers."""
    texts = []
    for seat in pair.seats:
        node = pair.store.zk.get_or_none(paths.broker(seat.id))
        assert node is not None
        found = nodes.decode_broker(node.data)
        assert node.data == nodes.encode_broker(found, Level.V0_10_2)
        texts.append((node.data or "").replace(str(seat.port), "PORT"))
    masked = [nodes.encode_broker(blank(text), Level.V0_10_2) for text in texts]
    assert masked[0] == masked[1]


def blank(text: str) -> nodes.BrokerRegistration:
    """Without port and time."""
    return replace(nodes.decode_broker(text.replace("PORT", "1")), timestamp_ms=0)
