"""The offsets in Kafka of many groups, of which some coordinators do not respond."""

from __future__ import annotations

from contextlib import closing

from kafka08.client import ClusterClient
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailable,
    KafkaError,
    NotCoordinatorForConsumer,
)
from kafka08.observe.kafka_commits import KafkaCommits
from kafka08.observe.snapshot import Committed
from kafka08.protocol.metadata import (
    BrokerEndpoint,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from tests.consumer.store_cluster import HOST, PORT, StoreCluster

T0 = TopicPartition("t", 0)
PARTITIONS = [T0, TopicPartition(OFFSETS_TOPIC, 0)]


class CoordinatingCluster(StoreCluster):
    """Its metadata have the offsets topic, of one partition."""

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        only = [PartitionMetadata(NO_ERROR, 0, 1, [1], [1])]
        return MetadataResponse(
            [BrokerEndpoint(1, HOST, PORT)], [TopicMetadata(NO_ERROR, OFFSETS_TOPIC, only)]
        )


def test_offsets_stay_while_the_coordinator_does_not_respond() -> None:
    """Whether it refuses, is down, or no broker responds: the group may have older offsets in
    ZooKeeper, to which it would seem to go back. A group that never had a response is left out."""
    cluster = CoordinatingCluster()
    cluster.committed[T0] = 10
    commits = KafkaCommits(cluster.clock)

    def read(client: ClusterClient | None, *groups: str, silent: str = "") -> dict[str, int]:
        failed.clear()
        failed.update(dict.fromkeys(silent, ConsumerCoordinatorNotAvailable()))
        found = commits.read_all(client, groups, failed, PARTITIONS, {})
        assert all(of == {T0: Committed(of[T0].offset)} for of in found.values())
        return {group: of[T0].offset for group, of in found.items()}

    failed: dict[str, KafkaError] = {}
    with closing(cluster.client()) as client:
        client.refresh()
        assert {"g": 10} == read(client, "g")
        cluster.refuse(T0, *[NotCoordinatorForConsumer.code] * 100)
        assert {"g": 10} == read(client, "g", "h")
        assert {"g", "h"} == failed.keys()
        cluster.refusals.clear()
        assert {"g": 10} == read(client, "g", "h", silent="gh")
        assert {"g": 10} == read(None, "g")
        cluster.committed[T0] = 12
        assert {"g": 12} == read(client, "g")
    commits.forget()
    assert {} == read(None, "g")
