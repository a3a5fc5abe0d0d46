"""Shared by tests of groups: members, waits, and a cluster that exists in ZooKeeper only.

Assignment, ownership and sessions need no broker that answers. Meanwhile the fetchers search for
leaders without success."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka08.consumer import ConsumerConfig, ConsumerConnector, ConsumerState
from kafka08.structs import Broker, TopicPartition
from kafka08.zk import faults, nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.store import ClusterStore
from tests.waiting import until

MakeMember = Callable[..., ConsumerConnector]
"""`make(name, **keys)` starts a member, which the fixture shuts down."""


class PaperCluster:
    """Brokers and topics as znodes alone, below the chroot of `zk`."""

    def __init__(self, zk: ZkClient, connect: str) -> None:
        self.zk = zk
        self.connect = connect
        self.store = ClusterStore(zk)
        self.store.create_common_paths()
        self.store.register_broker(Broker(1, "127.0.0.1", 1), timestamp_ms=1)

    def create_topic(self, topic: str, partitions: int) -> None:
        self.zk.create(paths.topic(topic), self._assignment(partitions))

    def set_partitions(self, topic: str, partitions: int) -> None:
        self.zk.set(paths.topic(topic), self._assignment(partitions))

    def delete_topic(self, topic: str) -> None:
        self.zk.delete_recursive(paths.topic(topic))

    def _assignment(self, partitions: int) -> str:
        return nodes.encode_assignment(dict.fromkeys(range(partitions), (1,)))

    def member(self, name: str | None, **keys: Any) -> ConsumerConnector:
        """A connector of group `g` with short waits; the caller shuts it down."""
        short: dict[str, Any] = {"rebalance_backoff_ms": 100, "consumer_timeout_ms": 0}
        return ConsumerConnector(
            ConsumerConfig(
                group_id="g", consumer_id=name, zookeeper_connect=self.connect, **(short | keys)
            )
        )

    def owners(self, topic: str) -> dict[int, str]:
        return GroupStore(self.store.zk).owners("g", topic)

    def wait_for_owners(self, topic: str, expected: dict[int, str]) -> None:
        until(lambda: self.owners(topic) == expected, f"owners of {topic}: {expected}")


def settled(*members: ConsumerConnector) -> bool:
    return all(member.state is ConsumerState.SETTLED for member in members)


def owned(member: ConsumerConnector) -> list[TopicPartition]:
    return sorted(member.assignment)


def expire_session(zk: ZkClient) -> None:
    """Makes the server end the session of `zk`, as after its timeout."""
    until(lambda: zk.session_id is not None, "a session")
    faults.expire_session(zk)
