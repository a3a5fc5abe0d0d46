"""GroupRegistry: claims and releases of more partitions than fit into one ZooKeeper request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.consumer.zookeeper.registry import GroupRegistry, PartitionsOwned
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from tests.zk.in_process import InProcessWorld

GROUP = "readers-of-page-views"
TOPIC = "page-views-by-country-and-browser"
WANTED = {TopicPartition(TOPIC, number): f"{GROUP}_host-a-0" for number in range(8000)}
LAST = max(WANTED)


@pytest.fixture
def zk() -> Iterator[ZkClient]:
    """A client of the model, which refuses large requests as ZooKeeper does."""
    world = InProcessWorld()
    with ZkClient("model:2181", adapter=world.connect, clock=world) as client:
        yield client


@pytest.fixture
def registry(zk: ZkClient) -> GroupRegistry:
    """That of a registered member."""
    registry = GroupRegistry(
        zk,
        GROUP,
        f"{GROUP}_host-a",
        exclude_internal_topics=True,
        runtime=THREADS,
        stopping=THREADS.event(),
        on_change=lambda: None,
        on_release=lambda: None,
    )
    zk.create(registry.id_path, "{}", ephemeral=True)
    return registry


def owned(zk: ZkClient) -> list[str]:
    return zk.children_or_empty(paths.owners(GROUP, TOPIC))


def test_a_large_claim_and_its_release(zk: ZkClient, registry: GroupRegistry) -> None:
    """All partitions are claimed, and released."""
    registry.claim(WANTED)
    assert len(owned(zk)) == len(WANTED)
    registry.release(list(WANTED))
    assert owned(zk) == []


def test_a_large_claim_that_is_refused_leaves_nothing(
    zk: ZkClient, registry: GroupRegistry
) -> None:
    """If another member owns the last partition, none of the others is claimed."""
    zk.create(paths.owner(GROUP, *LAST), "another-0")
    with pytest.raises(PartitionsOwned, match="another-0"):
        registry.claim(WANTED)
    assert owned(zk) == [str(LAST.partition)]
    zk.delete(paths.owner(GROUP, *LAST))
    registry.claim(WANTED)
    assert len(owned(zk)) == len(WANTED)
