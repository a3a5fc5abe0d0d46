"""ZnodeCache: decoded znodes, each of them read again only after its watch has fired.

A group of N members has N registrations, and every join or leave is an event for all members.
Reading all registrations at each event costs each member N² reads while the group gathers. With a
watch on each znode it costs N.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from kafka08.errors import KafkaError, NoNode, ZooKeeperError
from kafka08.runtime import ClientRuntime
from kafka08.zk.client import ZkClient
from kafka08.zk.operations import Get, Node, Watcher

T = TypeVar("T")


class ZnodeCache(Generic[T]):
    """Decoded znodes by path, of one session of `zk`.

    decode      a znode → its value
    on_change   called, in any thread, after a znode that was read has changed

    A watch event may arrive late, after newer data was read: that costs one more read. It may also
    arrive before the response that it belongs to is processed: then that response is not kept.
    """

    def __init__(
        self,
        zk: ZkClient,
        decode: Callable[[Node], T],
        on_change: Callable[[], None],
        runtime: ClientRuntime,
    ) -> None:
        self._zk = zk
        self._decode = decode
        self._on_change = on_change
        self._lock = runtime.lock()
        self._known: dict[str, T | None] = {}
        self._awaited: set[str] = set()

    def refresh(self, paths: Iterable[str], *, absent_too: bool = False) -> dict[str, T]:
        """path → value of the existing ones; others than `paths` are forgotten.

        absent_too   also watch for the creation of missing ones. If False, watch their parent.
        Raises ZooKeeperError, and the errors of `decode`.
        """
        wanted = list(paths)
        with self._lock:
            self._known = {path: self._known[path] for path in wanted if path in self._known}
            found = dict(self._known)
            missing = [path for path in wanted if path not in found]
            self._awaited = set(missing)
        try:
            self._read_nodes(missing, absent_too, found)
        finally:  # if one cannot be read, the others are kept
            with self._lock:
                self._known.update((path, found[path]) for path in self._awaited if path in found)
                self._awaited = set()
        return {path: value for path in wanted if (value := found.get(path)) is not None}

    def forget(self) -> None:
        """Read everything again next time: the session is a new one."""
        with self._lock:
            self._known = {}
            self._awaited = set()

    def _read_nodes(self, paths: list[str], absent_too: bool, found: dict[str, T | None]) -> None:
        """Add the existing ones to `found`, and None for missing ones if they are watched."""
        failure: KafkaError | ValueError | None = None
        reads = [Get(path, Watcher(path, self._changed)) for path in paths]
        for path, node in zip(paths, self._zk.pipeline(reads), strict=True):
            if isinstance(node, NoNode):
                if not absent_too:
                    continue
                node = self._zk.watch_data(path, self._changed)
            if isinstance(node, ZooKeeperError):
                raise node
            try:
                found[path] = None if node is None else self._decode(node)
            except ZooKeeperError as error:
                failure = failure or ZooKeeperError(f"{path}: {error}")
            except (KafkaError, ValueError) as error:
                failure = failure or error  # the others are read nevertheless, and kept
        if failure is not None:
            raise failure

    def _changed(self, path: str) -> None:
        with self._lock:
            self._known.pop(path, None)
            self._awaited.discard(path)
        self._on_change()
