"""Many writes in few transactions, on a real ZooKeeper and on the model."""

from __future__ import annotations

import pytest

from kafka08.errors import BadVersion, NodeExists, NoNode
from kafka08.zk.bulk import MULTI_MAX
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Check, Create, Node, Set

COUNT = 2 * MULTI_MAX + 50


def test_each_write_fails_by_itself(zk: ZkClient) -> None:
    """A write that is refused does not affect the others of its transaction. Results have the order
    of the writes."""
    zk.create("/5", "there")
    creates = [Create(f"/{n}", str(n)) for n in range(COUNT)]
    results = zk.write_all(creates)
    assert isinstance(results.pop(5), NodeExists)
    assert results == [create.path for create in creates if create.path != "/5"]
    writes = [Set(f"/{n}", "new", version=7 if n == COUNT - 1 else 0) for n in range(COUNT)]
    *versions, last = zk.write_all([*writes, Set("/nowhere", "x")])
    assert versions[:-1] == [1] * (COUNT - 1)
    assert isinstance(versions[-1], BadVersion)
    assert isinstance(last, NoNode)
    assert zk.get("/7") == Node("new", 1)


def test_large_data_is_spread_over_transactions(zk: ZkClient) -> None:
    """Large data goes into several transactions; in one it would exceed ZooKeeper's limit."""
    creates = [Create(f"/{n}", "x" * 100_000) for n in range(12)]
    assert zk.write_all(creates) == [create.path for create in creates]


def test_parents_and_children_in_one_go(zk: ZkClient) -> None:
    """Parents and children may be created in one call: writes keep their order, and null data stays
    null."""
    assert zk.write_all([Create("/a", None), Create("/a/b", "x")]) == ["/a", "/a/b"]
    assert (zk.get("/a"), zk.get("/a/b")) == (Node(None, 0), Node("x", 0))


def test_null_data_may_be_written_over_text(zk: ZkClient) -> None:
    """A write may replace text by null data, which differs from "". (It used to write "".)"""
    zk.create("/a", "x")
    assert zk.write_all([Set("/a", None)]) == [1]
    assert zk.get("/a") == Node(None, 1)


def test_without_its_condition_nothing_is_done(zk: ZkClient) -> None:
    """If the condition fails, no write is done, also not one by one: the caller may have lost the
    right to write."""
    zk.create("/office", "")
    assert zk.write_all([Create("/a")], Check("/office", 0)) == ["/a"]
    zk.set("/office", "somebody else")
    with pytest.raises(BadVersion, match="/office"):
        zk.write_all([Create(f"/{n}") for n in range(COUNT)], Check("/office", 0))
    assert not zk.exists("/0")
    with pytest.raises(BadVersion, match="/office"):
        zk.delete_recursive("/a", Check("/office", 0))
    assert zk.exists("/a")


def test_a_whole_tree_goes(zk: ZkClient) -> None:
    """A tree is deleted from its leaves on, in several transactions. Deleting a tree that does not
    exist succeeds."""
    zk.write_all([Create("/t"), Create("/t/p"), *(Create(f"/t/p/{n}") for n in range(COUNT))])
    zk.write_all([Create(f"/t/p/{n}/state") for n in range(COUNT)])
    for _ in range(2):
        zk.delete_recursive("/t")
        assert not zk.exists("/t")
