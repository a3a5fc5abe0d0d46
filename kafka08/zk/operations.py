"""One ZooKeeper operation as a value, and the values of its results.

`ZkClient.pipeline` takes them, and the client's single calls are built on them. An adapter
(zookeeper.py) sends them. A `repeatable` one only reads: it may be sent again at any time, even in
a later session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from kafka08.errors import ZooKeeperError


ANY_VERSION = -1


@dataclass(frozen=True, slots=True)
class Node:
    """A znode as read: its text (None: no data, which is not the same as ""), its version, the id
    of the session it lives with (0: it is persistent), and the transaction that made it, which does
    not count when two are compared."""

    data: str | None
    version: int
    ephemeral_owner: int = 0
    created_zxid: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Stat:
    """The metadata of a znode.

    ephemeral_owner is the id of the session it lives with, 0 for a persistent one; created_ms and
    modified_ms are wall-clock times of the server that led then. created_zxid is the transaction
    that made it: another one if it was deleted and made again.
    """

    version: int
    ephemeral_owner: int
    children: int
    created_ms: int
    modified_ms: int
    created_zxid: int


WatchCallback = Callable[[str], None]
"""Called once with the path when a watched znode may have changed, in the adapter's callback
worker: it may only post an event to its owner's queue, and the owner re-reads (which watches
again)."""


@dataclass(frozen=True, slots=True)
class Watcher:
    """A callback with the path it is for. Equal watchers of one path count as one to the adapter,
    so an owner may re-read as often as it likes without being called several times for one change.

    A lost connection drops the watches and calls them too: the owner re-reads, as it must, since
    changes in between would go unseen.
    """

    path: str
    callback: WatchCallback

    def __call__(self, event: object = None) -> None:
        """The kind of event does not matter: the owner reads again."""
        self.callback(self.path)


@dataclass(frozen=True, slots=True)
class Get:
    """Result: Node."""

    path: str
    watch: Watcher | None = None
    repeatable = True


@dataclass(frozen=True, slots=True)
class Exists:
    """Result: Stat, or None when the znode is not there."""

    path: str
    watch: Watcher | None = None
    repeatable = True


@dataclass(frozen=True, slots=True)
class Children:
    """Result: the names of the children, sorted as texts."""

    path: str
    watch: Watcher | None = None
    repeatable = True


@dataclass(frozen=True, slots=True)
class Create:
    """Result: the path made (with the number ZooKeeper gave, when sequence). The parent must exist
    unless the client is asked to create parents."""

    path: str
    data: str | None = ""
    ephemeral: bool = False
    sequence: bool = False
    repeatable = False


@dataclass(frozen=True, slots=True)
class Set:
    """Result: the new version. Fails with BadVersion unless the znode's is `version`."""

    path: str
    data: str | None
    version: int = ANY_VERSION
    repeatable = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Result: None."""

    path: str
    version: int = ANY_VERSION
    repeatable = False


@dataclass(frozen=True, slots=True)
class Check:
    """The condition of a `Multi` that a znode is there and has this version. Result: None."""

    path: str
    version: int


Write: TypeAlias = Create | Set | Delete
Step: TypeAlias = Write | Check


@dataclass(frozen=True, slots=True)
class Multi:
    """Steps that are done all or none, in their order, in one request.

    Result: one for each step; or, when nothing was done, a Refusal.
    """

    steps: tuple[Step, ...]
    repeatable = False

    @property
    def path(self) -> str:
        """The paths of all steps, for an error that concerns them all."""
        return ", ".join(step.path for step in self.steps)


class Refusal(NamedTuple):
    """Why a `Multi` was not done: the place of the first step that could not be, and its error."""

    step_index: int
    error: ZooKeeperError


Operation: TypeAlias = Get | Exists | Children | Create | Set | Delete | Multi


def encode(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def decode(data: bytes | None) -> str | None:
    """Decode like Java: bytes that are not UTF-8 become U+FFFD."""
    return None if data is None else data.decode(errors="replace")
