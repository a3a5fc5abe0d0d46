"""Controllers, brokers and groups of a real cluster: processes that are killed and come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.network.connection import Connection
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from kafka08.protocol.types import Request
from kafka08.structs import Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.waiting import until

CONFIG = {
    "zookeeper.session.timeout.ms": "2000",
    "offsets.topic.num.partitions": "4",
    "delete.topic.enable": "true",
    "controlled.shutdown.retry.backoff.ms": "100",
}


def wait_for(condition: Callable[[], bool], what: str, cluster: EmbeddedCluster) -> None:
    def holds() -> bool:
        cluster.check_alive()
        return condition()

    until(holds, what)


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, level="0.8.2", config=CONFIG) as cluster:
        yield cluster


@pytest.fixture
def store(cluster: EmbeddedCluster) -> Iterator[ClusterStore]:
    for broker in cluster.brokers:
        if not broker.running:
            broker.start()
    cluster.await_ready()
    with ZkClient(cluster.zookeeper.connect_string, name="test") as zk:
        yield ClusterStore(zk)


def create(store: ClusterStore, topic: str, assignment: dict[int, tuple[int, ...]]) -> None:
    """Create a topic by writing the znodes that kafka-topics writes."""
    store.zk.create(paths.topic_config(topic), nodes.encode_topic_config({}))
    store.zk.create(paths.topic(topic), nodes.encode_assignment(assignment))


def states(store: ClusterStore, topic: str, count: int) -> dict[int, LeaderAndIsr]:
    found = store.leader_and_isr(TopicPartition(topic, number) for number in range(count))
    return {tp.partition: state for tp, state in found.items()}


def ask(broker: Broker, request: Request) -> Any:
    with Connection(broker.host, broker.port, client_id="test") as connection:
        return connection.send(request)


def leaders(broker: Broker, topic: str) -> dict[int, int]:
    """Partition → leader in this broker's Metadata response."""
    response = ask(broker, MetadataRequest([topic]))
    return {p.partition: p.leader for p in response.topics[0].partitions}


def test_a_killed_controller_is_replaced_and_its_partitions_come_back(
    cluster: EmbeddedCluster, store: ClusterStore
) -> None:
    """After kill -9 another broker is elected with the next epoch. The dead one's partitions have
    no leader until it is back, the others keep theirs, and every broker learns of both."""
    create(store, "failover", {0: (0,), 1: (1,), 2: (2,)})
    wait_for(lambda: len(states(store, "failover", 3)) == 3, "leaders", cluster)
    first, epoch = store.controller(), store.controller_epoch()
    assert first is not None
    assert epoch is not None

    cluster.brokers[first.broker_id].kill()
    survivors = [b.address for b in cluster.brokers if b.id != first.broker_id]

    def replaced() -> bool:
        now = store.controller()
        return now is not None and now.broker_id != first.broker_id

    wait_for(replaced, "another controller", cluster)
    # 0.8: a new controller leaves the znode of a partition alone whose only replica is dead; that
    # it has no leader shows in the metadata, where a leader that is not alive is none.
    expected = {0: 0, 1: 1, 2: 2} | {first.broker_id: -1}
    for broker in survivors:
        wait_for(lambda b=broker: leaders(b, "failover") == expected, "metadata", cluster)  # type: ignore[misc]
    after = store.controller_epoch()
    assert after is not None
    assert after[0] == epoch[0] + 1

    cluster.brokers[first.broker_id].start()
    cluster.await_ready()
    wait_for(
        lambda: all(s.leader == number for number, s in states(store, "failover", 3).items()),
        "all leaders",
        cluster,
    )
    for broker in (b.address for b in cluster.brokers):
        wait_for(
            lambda b=broker: leaders(b, "failover") == {0: 0, 1: 1, 2: 2},  # type: ignore[misc]
            "metadata",
            cluster,
        )


def test_a_clean_stop_of_the_controller_takes_no_session_timeout(
    cluster: EmbeddedCluster, store: ClusterStore
) -> None:
    """The controller resigns before its process ends, so another one is elected at once."""
    first = store.controller()
    assert first is not None
    cluster.brokers[first.broker_id].stop()
    assert store.controller() != first

    def replaced() -> bool:
        now = store.controller()
        return now is not None and now.broker_id != first.broker_id

    wait_for(replaced, "another controller", cluster)


def test_a_controller_that_slept_too_long_gives_way(
    cluster: EmbeddedCluster, store: ClusterStore
) -> None:
    """After SIGSTOP past its session timeout another controller is elected. The old one resumes,
    notices the expired session, registers again and serves as an ordinary broker."""
    first = store.controller()
    assert first is not None
    sleeper = cluster.brokers[first.broker_id]
    sleeper.pause()
    try:

        def replaced() -> bool:
            now = store.controller()
            return now is not None and now.broker_id != first.broker_id

        wait_for(replaced, "another controller", cluster)
        wait_for(lambda: sleeper.id not in store.broker_ids(), "the sleeper to leave", cluster)
    finally:
        sleeper.resume()
    wait_for(lambda: sleeper.id in store.broker_ids(), "the sleeper to return", cluster)
    create(store, "awake", {0: (sleeper.id,)})
    wait_for(lambda: len(states(store, "awake", 1)) == 1, "a leader", cluster)
    for broker in (b.address for b in cluster.brokers):
        wait_for(
            lambda b=broker: leaders(b, "awake") == {0: sleeper.id},  # type: ignore[misc]
            "metadata",
            cluster,
        )
    second, epoch = store.controller(), store.controller_epoch()
    assert second is not None
    assert second.broker_id != sleeper.id
    assert epoch is not None
    assert states(store, "awake", 1)[0].controller_epoch == epoch[0]


def test_a_topic_is_deleted_from_every_disk(cluster: EmbeddedCluster, store: ClusterStore) -> None:
    """The znodes are removed last, after all logs; the name can be used again."""
    for _ in range(2):
        create(store, "gone", {0: (0,), 1: (1,), 2: (2,)})
        wait_for(lambda: len(states(store, "gone", 3)) == 3, "leaders", cluster)
        store.zk.create(paths.delete_topic("gone"), nodes.encode_delete_topic())
        wait_for(lambda: store.topics_to_delete() == [], "the deletion", cluster)
        assert "gone" not in store.topics()
        left = [d.name for b in cluster.brokers for d in b.log_dirs.glob("gone-*")]
        assert left == []


def coordinator_of(cluster: EmbeddedCluster, group: str) -> Broker:
    """Ask the first live broker for the coordinator until it knows it."""
    found: list[Broker] = []

    def known() -> bool:
        asked = next(b for b in cluster.brokers if b.running)
        response = ask(asked.address, ConsumerMetadataRequest(group))
        if response.error_code == 15:
            assert (response.coordinator_id, response.host, response.port) == (-1, "", -1)
            return False
        assert response.error_code == 0
        found.append(Broker(response.coordinator_id, response.host, response.port))
        return True

    wait_for(known, f"the coordinator of {group}", cluster)
    return found[0]


def commit(broker: Broker, group: str, offset: int) -> int:
    item = OffsetCommitPartition(0, offset, "note")
    request = OffsetCommitRequest(group, [OffsetCommitTopic("committed", [item])], version=1)
    response = ask(broker, request)
    code: int = response.topics[0].partitions[0].error_code
    return code


def fetch(broker: Broker, group: str) -> tuple[int, int]:
    """(offset, error code)."""
    request = OffsetFetchRequest(group, [OffsetFetchTopic("committed", [0])], version=1)
    response = ask(broker, request).topics[0].partitions[0]
    return response.offset, response.error_code


def test_committed_offsets_survive_the_death_of_their_coordinator(
    cluster: EmbeddedCluster, store: ClusterStore
) -> None:
    """Offsets committed with acks=-1 are there after the coordinator's restart. Until then fetches
    return retriable errors, never "no offset", after which consumers would start over."""
    create(store, "committed", {0: (0,)})
    groups = [f"group-{number}" for number in range(12)]
    coordinators = {group: coordinator_of(cluster, group) for group in groups}
    assert set(coordinators.values()) == {b.address for b in cluster.brokers}
    for number, group in enumerate(groups):
        wait_for(
            lambda g=group, n=number: commit(coordinators[g], g, n) == 0,  # type: ignore[misc]
            f"the commit of {group}",
            cluster,
        )
    others = [b.address for b in cluster.brokers if b.address != coordinators[groups[0]]]
    assert fetch(others[0], groups[0]) == (-1, 16)
    assert commit(others[0], groups[0], 99) == 16, "it follows the partition"

    victim = next(b for b in cluster.brokers if b.address == coordinators[groups[0]])
    victim.kill()
    victim.start()
    cluster.await_ready()
    for number, group in enumerate(groups):
        responses: list[tuple[int, int]] = []

        def read(group: str = group, responses: list[tuple[int, int]] = responses) -> bool:
            responses.append(fetch(coordinator_of(cluster, group), group))
            return responses[-1][1] == 0

        wait_for(read, f"the offset of {group}", cluster)
        assert responses[-1] == (number, 0)
        assert {code for _, code in responses[:-1]} <= {3, 14, 16}
