"""Brokers: the source of a consumer's clients; here by given addresses, in zookeeper_brokers by
ZooKeeper."""

from __future__ import annotations

from typing import Protocol

from kafka08.client import ClusterClient


class Brokers(Protocol):
    """The client for requests to any broker, to a leader or to a coordinator."""

    def client(self) -> ClusterClient: ...

    def renew(self, stale: ClusterClient) -> None:
        """Called when none of the brokers of `stale` could be reached."""


class BootstrapBrokers:
    """A client with given bootstrap addresses."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def client(self) -> ClusterClient:
        return self._client

    def renew(self, stale: ClusterClient) -> None:
        """There is no other source of addresses."""

    def close(self) -> None:
        self._client.close()
