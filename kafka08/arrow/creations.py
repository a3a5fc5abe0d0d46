"""TopicCreations: what ZooKeeper says about when topics were made, asked by a stream's driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kafka08.lifecycle import ProcessBound

if TYPE_CHECKING:
    from kafka08.zk.client import ZkClient

SESSION_TIMEOUT_MS: Final = 10_000


class TopicCreations(ProcessBound):
    """A session at `zookeeper`, a connect string, from the first request until `close`. Without a
    connect string nothing is known, and nothing is asked."""

    def __init__(self, zookeeper: str) -> None:
        self._zookeeper = zookeeper
        self._zk: ZkClient | None = None

    @property
    def are_known(self) -> bool:
        """Whether there is a ZooKeeper to ask."""
        return bool(self._zookeeper)

    def of(self, topics: Iterable[str]) -> Mapping[str, int]:
        """topic → the transaction that made it, of those that exist. Raises ZooKeeperError."""
        if not self._zookeeper:
            return {}
        from kafka08.zk.client import ZkClient  # brings kazoo, which no task needs
        from kafka08.zk.store import ClusterStore

        if self._zk is None:
            self._zk = ZkClient(
                self._zookeeper,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                connection_timeout_ms=SESSION_TIMEOUT_MS,
                name="spark",
            )
            self._zk.start()
        return ClusterStore(self._zk).topic_creations(topics)

    def close(self) -> None:
        if self._zk is not None:
            self._zk.close()
            self._zk = None
