"""Brokers: the source of a consumer's clients; here by given addresses, in zookeeper_brokers by
ZooKeeper."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from kafka08.client import ClusterClient
from kafka08.structs import TopicPartition


class Brokers(Protocol):
    """The client for requests to any broker, to a leader or to a coordinator."""

    def client(self) -> ClusterClient: ...

    def renew(self, stale: ClusterClient) -> None:
        """Called when none of the brokers of `stale` could be reached."""


class FetchedBrokers(Brokers, Protocol):
    """Brokers from which partitions are fetched."""

    def led_by(
        self, broker_id: int, partitions: Collection[TopicPartition]
    ) -> Collection[TopicPartition]:
        """Those that the broker, which has responded for all of them, really leads, as far as
        anybody else knows. A former leader that was suspended does not know it yet."""


class BootstrapBrokers:
    """A client with given bootstrap addresses."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def client(self) -> ClusterClient:
        return self._client

    def renew(self, stale: ClusterClient) -> None:
        """There is no other source of addresses."""

    def led_by(
        self, broker_id: int, partitions: Collection[TopicPartition]
    ) -> Collection[TopicPartition]:
        """All: another broker's metadata are no newer for certain."""
        return partitions

    def close(self) -> None:
        self._client.close()
