"""Two ZooKeepers for the tests of this package: a real one through kazoo, and the model."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import pytest

from kafka08.zk.client import ZkClient
from kafka08.zk.model.server import Server
from tests.waiting import until
from tests.zk.in_process import InProcessWorld

T = TypeVar("T")
WAIT_S = 20
TICK_MS = 500


class Inbox(Protocol[T]):
    """A queue that callbacks fill and the test empties."""

    def put(self, item: T) -> None: ...

    def get(self, *, timeout: float) -> T: ...

    def empty(self) -> bool: ...


class Sessions(Protocol):
    """Creates a test's clients. Each client sees only the znodes below the test's chroot."""

    def client(self, chroot: str = "", **settings: Any) -> ZkClient: ...

    def inbox(self) -> Inbox[Any]: ...

    def eventually(self, condition: Callable[[], bool], what: str) -> None: ...


class RealSessions:
    def __init__(self, connect: str) -> None:
        self.connect = connect

    def client(self, chroot: str = "", **settings: Any) -> ZkClient:
        return ZkClient(self.connect + chroot, **settings)

    def inbox(self) -> Inbox[Any]:
        made: queue.Queue[Any] = queue.Queue()
        return made

    def eventually(self, condition: Callable[[], bool], what: str) -> None:
        until(condition, what, WAIT_S)


class ModelSessions:
    def __init__(self) -> None:
        self.world = InProcessWorld(Server(tick_ms=TICK_MS))
        with self.client(make_chroot=True):
            pass

    def client(self, chroot: str = "", **settings: Any) -> ZkClient:
        connect = f"model:2181/test{chroot}"
        return ZkClient(connect, adapter=self.world.connect, clock=self.world, **settings)

    def inbox(self) -> ModelInbox[Any]:
        return ModelInbox(self.world)

    def eventually(self, condition: Callable[[], bool], what: str) -> None:
        assert self.world.run_until(condition, WAIT_S), what


class ModelInbox(Generic[T]):
    """An inbox whose waits advance the model's time."""

    def __init__(self, world: InProcessWorld) -> None:
        self._world = world
        self._items: deque[T] = deque()

    def put(self, item: T) -> None:
        self._items.append(item)

    def get(self, *, timeout: float) -> T:
        if not self._world.run_until(lambda: bool(self._items), timeout):
            raise queue.Empty
        return self._items.popleft()

    def empty(self) -> bool:
        return not self._items


@pytest.fixture(params=["kazoo", "model"])
def sessions(request: pytest.FixtureRequest) -> Sessions:
    if request.param == "model":
        return ModelSessions()
    return RealSessions(request.getfixturevalue("zk_connect"))


@pytest.fixture
def zk(sessions: Sessions) -> Iterator[ZkClient]:
    """A started client below this test's chroot."""
    with sessions.client(name="test") as client:
        yield client
