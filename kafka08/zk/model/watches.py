"""One-shot watches of connections on paths.

A watch remains until its event or the end of its connection. `exists` and `getData` set data
watches, `getChildren` sets child watches. A connection that watches both the data and the children
of a znode receives one event for its deletion.

Source: WatchManager and DataTree 3.9.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from kafka08.zk.model.messages import EventType
from kafka08.zk.model.tree import Change


class Watches:
    def __init__(self) -> None:
        self._data = _Table()
        self._children = _Table()

    def add_data_watch(self, path: str, connection: int) -> None:
        self._data.add(path, connection)

    def add_child_watch(self, path: str, connection: int) -> None:
        self._children.add(path, connection)

    def drop(self, connection: int) -> None:
        """The connection has ended."""
        self._data.drop(connection)
        self._children.drop(connection)

    def count(self) -> int:
        """Pairs of a path and a connection that watches it, in one way or the other."""
        return self._data.count() + self._children.count()

    def take(self, change: Change) -> Iterator[int]:
        """Remove and return the connections that the change triggers, ascending."""
        if change.type is EventType.CHILDREN_CHANGED:
            hearers: Set[int] = self._children.take(change.path)
        elif change.type is EventType.DELETED:
            hearers = self._data.take(change.path) | self._children.take(change.path)
        else:
            hearers = self._data.take(change.path)
        return iter(sorted(hearers))


class _Table:
    """path ↔ connection."""

    def __init__(self) -> None:
        self._connections: dict[str, set[int]] = {}
        self._paths: dict[int, set[str]] = {}

    def add(self, path: str, connection: int) -> None:
        self._connections.setdefault(path, set()).add(connection)
        self._paths.setdefault(connection, set()).add(path)

    def count(self) -> int:
        return sum(map(len, self._paths.values()))

    def take(self, path: str) -> set[int]:
        connections = self._connections.pop(path, set())
        for connection in connections:
            self._paths[connection].discard(path)
        return connections

    def drop(self, connection: int) -> None:
        for path in self._paths.pop(connection, ()):
            watching = self._connections[path]
            watching.discard(connection)
            if not watching:
                del self._connections[path]
