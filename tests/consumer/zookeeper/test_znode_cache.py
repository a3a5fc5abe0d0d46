"""ZnodeCache on a real ZooKeeper reads a znode once per change and misses no change."""

from __future__ import annotations

import threading

import pytest

from kafka08.consumer.zookeeper.znode_cache import ZnodeCache
from kafka08.runtime.threads import THREADS
from kafka08.zk.client import ZkClient
from tests.waiting import until


class Changes:
    """Counts the calls of its callback, and decodes numbers."""

    def __init__(self, zk: ZkClient) -> None:
        self.zk = zk
        self.told = threading.Semaphore(0)
        self.nodes = ZnodeCache(zk, lambda node: int(node.data or ""), self.told.release, THREADS)

    def wait(self) -> None:
        assert self.told.acquire(timeout=60), "the change was not reported"

    def requests(self, paths: list[str], *, absent_too: bool = False) -> tuple[int, dict[str, int]]:
        """The number of requests of a read, and its result."""
        before = self.zk.requests_sent
        found = self.nodes.refresh(paths, absent_too=absent_too)
        return self.zk.requests_sent - before, found


@pytest.fixture
def changes(zk: ZkClient) -> Changes:
    for name in "abc":
        zk.create(f"/{name}", "1")
    return Changes(zk)


def test_guarantee_8_each_node_is_read_once_and_again_after_a_change(changes: Changes) -> None:
    """The first read reads all three znodes, the next none, and after a change the changed one. A
    deleted znode is left out."""
    paths = ["/a", "/b", "/c"]
    assert changes.requests(paths) == (3, dict.fromkeys(paths, 1))
    assert changes.requests(paths) == (0, dict.fromkeys(paths, 1))
    changes.zk.set("/b", "2")
    changes.wait()
    assert changes.requests(paths) == (1, {"/a": 1, "/b": 2, "/c": 1})
    changes.zk.delete("/c")
    changes.wait()
    assert changes.requests(paths) == (1, {"/a": 1, "/b": 2})


def test_a_recreated_znode_is_read_again(changes: Changes) -> None:
    """A znode that was deleted and created again, as by a member that returns under its name, is
    read again."""
    changes.nodes.refresh(["/a"])
    changes.zk.delete("/a")
    changes.zk.create("/a", "7")
    changes.wait()
    assert changes.nodes.refresh(["/a"]) == {"/a": 7}


def test_a_missing_znode_is_watched_on_request(changes: Changes) -> None:
    """On request the cache watches a missing znode, and reads it again when it is created."""
    assert changes.nodes.refresh(["/new"], absent_too=True) == {}
    assert changes.requests(["/new"], absent_too=True) == (0, {})
    changes.zk.create("/new", "5")
    changes.wait()
    assert changes.nodes.refresh(["/new"], absent_too=True) == {"/new": 5}


def test_one_that_cannot_be_read_does_not_cost_the_others(changes: Changes) -> None:
    """A znode that cannot be parsed raises its error at each read, for one request, and the others
    are returned. Once it is repaired all are returned."""
    changes.zk.set("/b", "odd")
    for expected in (3, 1):
        before = changes.zk.requests_sent
        with pytest.raises(ValueError, match="odd"):
            changes.nodes.refresh(["/a", "/b", "/c"])
        assert changes.zk.requests_sent - before == expected
    changes.zk.set("/b", "3")
    changes.wait()
    until(lambda: changes.nodes.refresh(["/a", "/b", "/c"]) == {"/a": 1, "/b": 3, "/c": 1}, "all")


def test_forgetting_reads_everything_again(changes: Changes) -> None:
    """After `forget`, for a new session without watches, everything is read again."""
    changes.nodes.refresh(["/a", "/b"])
    changes.nodes.forget()
    assert changes.requests(["/a", "/b"])[0] == 2
