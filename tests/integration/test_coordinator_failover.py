"""A group of librdkafka members whose coordinator dies or is stopped, on three brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.consumer.fetching.brokers import BootstrapBrokers
from kafka08.consumer.zookeeper.offset_store import KafkaOffsetStore
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import KafkaError
from kafka08.hashing import group_partition
from kafka08.runtime.threads import THREADS
from kafka08.structs import OFFSETS_TOPIC
from tests.integration.group_members import Workload, delivered_again, partitions_of
from tests.integration.librdkafka_member import SESSION_TIMEOUT_S
from tests.waiting import until

PARTITIONS = 6
PART = 300
OFFSETS_PARTITIONS = 4
ZOOKEEPER_TIMEOUT_S = 3
ELECTION_S = 2.0
"""Time for the controller and the load of the new coordinator on a busy machine."""


@pytest.fixture(scope="module", params=["0.9.0", "0.10.2"])
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def cluster(level: str) -> Iterator[EmbeddedCluster]:
    keys = {
        "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
        "offsets.topic.replication.factor": 3,
        "zookeeper.session.timeout.ms": ZOOKEEPER_TIMEOUT_S * 1000,
    }
    with EmbeddedCluster(brokers=3, level=level, config=keys) as cluster:
        yield cluster


class Commits:
    """The committed offsets of a group, asked for again and again."""

    def __init__(self, cluster: EmbeddedCluster, topic: str, group: str) -> None:
        self._client = ClusterClient(parse_bootstrap(cluster.bootstrap), timeout_ms=2000)
        brokers = BootstrapBrokers(self._client)
        self._store = KafkaOffsetStore(brokers, group, clock=THREADS, backoff_ms=100)
        self._partitions = partitions_of(topic, PARTITIONS)
        self.history: list[dict[int, int]] = []

    def look(self) -> None:
        """Once; a coordinator that is moving has no response."""
        try:
            found = self._store.fetch_once(self._partitions)
        except KafkaError:
            return
        self.history.append({tp.partition: offset for tp, offset in found.items()})

    def gone_back(self) -> list[tuple[int, int, int]]:
        """(partition, offset, smaller offset that was seen next)."""
        return [
            (partition, earlier[partition], later[partition])
            for earlier, later in zip(self.history, self.history[1:], strict=False)
            for partition in earlier
            if later[partition] < earlier[partition]
        ]

    def close(self) -> None:
        self._client.close()


@pytest.mark.parametrize("way", ["kill", "stop"])
def test_a_group_survives_its_coordinator(
    cluster: EmbeddedCluster, level: str, way: str, tmp_path: Path
) -> None:
    """No message is lost, no committed one is repeated, no commit goes back, and every partition is
    read again within the session timeout and an election."""
    topic = f"t-{way}"
    cluster.create_topic(topic, PARTITIONS, 3)
    group = Workload(cluster, level, topic, PARTITIONS)
    commits = Commits(cluster, topic, topic)
    partition = group_partition(topic, OFFSETS_PARTITIONS)
    try:
        for _ in range(3):
            group.join(topic, tmp_path)
        group.produce(PART)
        until(lambda: group.settled(2, 2, 2), "three members share the partitions")
        commits.look()
        coordinator = cluster.leader_of(OFFSETS_TOPIC, partition)
        group.produce(PART)
        gone = time.monotonic()
        if way == "kill":
            cluster.kill(coordinator, expire=False)
        else:
            coordinator.stop()
        group.produce(PART)

        def resumed() -> bool:
            commits.look()
            return group.all_committed()

        until(resumed, "every message is committed", 60)
        commits.look()
    finally:
        group.end()
        commits.close()
        cluster.heal()
    assert group.all_delivered()
    assert delivered_again(group.delivered, group.committed) == []
    assert commits.gone_back() == []
    first_after = {
        partition: min(e.at for e in group.committed if e.partition == partition and e.at > gone)
        for partition in range(PARTITIONS)
    }
    limit = SESSION_TIMEOUT_S + ELECTION_S + (ZOOKEEPER_TIMEOUT_S if way == "kill" else 0)
    assert max(first_after.values()) - gone <= limit
