"""GroupStore on a real ZooKeeper and on the model: owners and committed offsets."""

from __future__ import annotations

import itertools

import pytest

from kafka08.structs import TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.operations import Node


@pytest.fixture
def store(zk: ZkClient) -> GroupStore:
    return GroupStore(zk)


def test_a_cluster_without_groups_has_none(store: GroupStore) -> None:
    """A cluster without groups has an empty list of them, and no error."""
    assert store.groups() == []
    assert store.owners("g", "t") == {}


def test_groups_offsets_and_owners(store: GroupStore, zk: ZkClient) -> None:
    """A commit works with and without an existing znode. Offsets and owners are read by
    partition."""
    wanted = {TopicPartition("t", n): n * 10 for n in (0, 2, 11)}
    assert store.commit_offsets("g", wanted) == {}
    wanted[TopicPartition("t", 2)] = 21
    wanted[TopicPartition("u", 0)] = 1
    assert store.commit_offsets("g", wanted) == {}
    assert zk.get("/consumers/g/offsets/t/2") == Node("21", 1)
    assert zk.get("/consumers/g/offsets/t") == Node(None, 0)
    assert store.offsets("g", [*wanted, TopicPartition("x", 0)]) == wanted
    zk.create_ephemeral(paths.owner("g", "t", 2), "g_h-0")
    zk.put("/consumers/g/owners/t/old", "")
    assert store.owners("g", "t") == {2: "g_h-0"}
    assert store.groups() == ["g"]


def test_two_committers_do_not_disturb_each_other(
    store: GroupStore, zk: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another committer creates the znode between our write and our create, our offset is
    written after all."""
    tp = TopicPartition("t", 0)
    pipeline = zk.pipeline
    bursts = itertools.count()

    def racing(*arguments: object, **keywords: object) -> list[object]:
        if next(bursts) == 1:
            zk.create(paths.offset("g", *tp), "5")
        return pipeline(*arguments, **keywords)  # type: ignore[arg-type]

    zk.ensure("/consumers/g/offsets/t")
    monkeypatch.setattr(zk, "pipeline", racing)
    assert store.commit_offsets("g", {tp: 9}) == {}
    assert store.offsets("g", [tp]) == {tp: 9}
