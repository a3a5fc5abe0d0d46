"""ChangingZnodes: many znodes that are read again and again, some of which change all the time.

A watch saves the read of a znode that did not change. Of one that did it costs an event more, and a
group that commits every second changes its znodes between any two reads. So such a znode is read
without a watch until it has stopped changing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka08.consumer.zookeeper.znode_cache import ZnodeCache
from kafka08.runtime import ClientRuntime
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Node
from kafka08.zk.typed_reads import read_all


class ChangingZnodes:
    """Znodes of one session of `zk`. A znode is watched unless it had changed in two reads in a
    row; then it is read each time, until a read finds it unchanged."""

    def __init__(self, zk: ZkClient, runtime: ClientRuntime) -> None:
        self._zk = zk
        self._watched: ZnodeCache[Node] = ZnodeCache(zk, lambda node: node, lambda: None, runtime)
        self._last: Mapping[str, Node] = {}
        self._changed: set[str] = set()
        """Watched ones that had changed in the last read."""
        self._unwatched: set[str] = set()

    def refresh(self, paths: Collection[str]) -> dict[str, Node]:
        """path → its znode, of those that exist; others are forgotten. Raises ZooKeeperError."""
        before = self._last
        found = self._watched.refresh([path for path in paths if path not in self._unwatched])
        changed = {
            path
            for path, node in found.items()
            if (earlier := before.get(path)) is not None and earlier != node
        }
        polled = read_all(self._zk, {path: path for path in paths if path in self._unwatched})
        self._unwatched = {path for path, node in polled.items() if before.get(path) != node}
        self._unwatched |= changed & self._changed
        self._changed = changed
        found |= polled
        self._last = found
        return found

    def forget(self) -> None:
        """Read everything again next time: the session is a new one."""
        self._watched.forget()
        self._last = {}
        self._changed = set()
        self._unwatched = set()
