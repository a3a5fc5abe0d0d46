"""One ZooKeeper operation as a value, and what its answer becomes.

They are what `ZkClient.pipeline` takes; the client's single calls are made of the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from kazoo.exceptions import RolledBackError, RuntimeInconsistency

from kafka08.zk.failures import translate

if TYPE_CHECKING:
    from kazoo.client import KazooClient, TransactionRequest

    from kafka08.errors import ZooKeeperError


ANY_VERSION = -1


class Node(NamedTuple):
    """A znode as read: its text (None: no data, which is not the same as ""), its version, and the
    id of the session it lives with (0: it is persistent)."""

    data: str | None
    version: int
    ephemeral_owner: int = 0


@dataclass(frozen=True, slots=True)
class Stat:
    """What ZooKeeper knows about a znode besides its data.

    ephemeral_owner is the id of the session it lives with, 0 for a persistent one; created_ms and
    modified_ms are wall-clock times of the server that led then.
    """

    version: int
    ephemeral_owner: int
    children: int
    created_ms: int
    modified_ms: int


class Operation(Protocol):
    """What to send and how to read the answer.

    A `repeatable` one only reads: it may be sent again at any time, in a later session too.
    """

    @property
    def path(self) -> str: ...

    @property
    def repeatable(self) -> bool: ...

    def send(self, kazoo: KazooClient) -> Any: ...

    def result(self, answer: Any) -> Any: ...


WatchCallback = Callable[[str], None]
"""Called once with the path when a watched znode may have changed, in kazoo's callback worker: it
may only post an event to its owner's queue, and the owner re-reads (which watches again)."""


@dataclass(frozen=True, slots=True)
class Watcher:
    """A callback with the path it is for. Equal watchers of one path count as one to kazoo, so an
    owner may re-read as often as it likes without being called several times for one change.

    A lost connection drops the watches of kazoo and calls them too: the owner re-reads, as it must,
    since changes in between would go unseen.
    """

    path: str
    callback: WatchCallback

    def __call__(self, event: object) -> None:
        self.callback(self.path)


@dataclass(frozen=True, slots=True)
class Get:
    """Result: Node."""

    path: str
    watch: Watcher | None = None
    repeatable = True

    def send(self, kazoo: KazooClient) -> Any:
        return kazoo.get_async(self.path, self.watch)

    def result(self, answer: Any) -> Node:
        data, stat = answer
        return Node(decode(data), stat.version, stat.ephemeralOwner)


@dataclass(frozen=True, slots=True)
class Exists:
    """Result: Stat, or None when the znode is not there."""

    path: str
    watch: Watcher | None = None
    repeatable = True

    def send(self, kazoo: KazooClient) -> Any:
        return kazoo.exists_async(self.path, self.watch)

    def result(self, answer: Any) -> Stat | None:
        return None if answer is None else to_stat(answer)


@dataclass(frozen=True, slots=True)
class Children:
    """Result: the names of the children, sorted as texts."""

    path: str
    watch: Watcher | None = None
    repeatable = True

    def send(self, kazoo: KazooClient) -> Any:
        return kazoo.get_children_async(self.path, self.watch)

    def result(self, answer: Any) -> list[str]:
        return sorted(answer)


@dataclass(frozen=True, slots=True)
class Create:
    """Result: the path made (with the number ZooKeeper gave, when sequence). The parent must exist
    unless the client is told to make parents."""

    path: str
    data: str | None = ""
    ephemeral: bool = False
    sequence: bool = False
    repeatable = False

    def send(self, kazoo: KazooClient) -> Any:
        return kazoo.create_async(
            self.path, encode(self.data), ephemeral=self.ephemeral, sequence=self.sequence
        )

    def add_to(self, request: TransactionRequest) -> None:
        data = encode(self.data)
        request.create(self.path, data or b"", ephemeral=self.ephemeral, sequence=self.sequence)
        if data is None:  # which the builder does not take, but ZooKeeper does
            request.operations[-1] = request.operations[-1]._replace(data=None)

    def result(self, answer: Any) -> str:
        return str(answer)


@dataclass(frozen=True, slots=True)
class Set:
    """Result: the new version. Fails with BadVersion unless the znode's is `version`."""

    path: str
    data: str | None
    version: int = ANY_VERSION
    repeatable = False

    def send(self, kazoo: KazooClient) -> Any:
        return kazoo.set_async(self.path, encode(self.data), self.version)

    def add_to(self, request: TransactionRequest) -> None:
        request.set_data(self.path, encode(self.data) or b"", self.version)

    def result(self, answer: Any) -> int:
        version: int = answer.version
        return version


@dataclass(frozen=True, slots=True)
class Delete:
    """Result: None."""

    path: str
    version: int = ANY_VERSION
    repeatable = False

    def send(self, kazoo: KazooClient) -> Any:
        return kazoo.delete_async(self.path, self.version)

    def add_to(self, request: TransactionRequest) -> None:
        request.delete(self.path, self.version)

    def result(self, answer: Any) -> None:
        return None


Write: TypeAlias = Create | Set | Delete
"""What may be done together with others."""


@dataclass(frozen=True, slots=True)
class Check:
    """The condition that a znode has this version, for a whole `Together`."""

    path: str
    version: int

    def add_to(self, request: TransactionRequest) -> None:
        request.check(self.path, self.version)


@dataclass(frozen=True, slots=True)
class Together:
    """Writes that are done all or not at all, in their order, in one request.

    Result: theirs; or, when nothing was done, a Refusal.
    """

    writes: tuple[Write, ...]
    condition: Check | None = None
    repeatable = False

    @property
    def path(self) -> str:
        return self.writes[0].path

    def send(self, kazoo: KazooClient) -> Any:
        request = kazoo.transaction()
        for step in self._steps():
            step.add_to(request)
        return request.commit_async()

    def result(self, answer: Any) -> list[Any] | Refusal:
        for step, one in zip(self._steps(), answer, strict=True):
            if isinstance(one, Exception) and not isinstance(one, NOT_TRIED):
                return Refusal(translate(one, step.path), step is self.condition)
        answers = answer if self.condition is None else answer[1:]
        return [write.result(one) for write, one in zip(self.writes, answers, strict=True)]

    def _steps(self) -> tuple[Write | Check, ...]:
        return self.writes if self.condition is None else (self.condition, *self.writes)


class Refusal(NamedTuple):
    """Why a `Together` was not done: the error of the first step that could not be, and whether
    that was the condition."""

    error: ZooKeeperError
    of_condition: bool


NOT_TRIED = (RolledBackError, RuntimeInconsistency)
"""What kazoo gives for the other steps of a transaction that failed."""


def encode(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def decode(data: bytes | None) -> str | None:
    """As Java does: bytes that are no UTF-8 become U+FFFD."""
    return None if data is None else data.decode(errors="replace")


def to_stat(answer: Any) -> Stat:
    return Stat(
        version=answer.version,
        ephemeral_owner=answer.ephemeralOwner,
        children=answer.numChildren,
        created_ms=answer.ctime,
        modified_ms=answer.mtime,
    )
