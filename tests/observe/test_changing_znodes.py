"""ChangingZnodes on a real ZooKeeper: which znodes are watched, which are read each time."""

from __future__ import annotations

import random

import pytest

from kafka08.consumer.zookeeper.znode_cache import ZnodeCache
from kafka08.observe.changing_znodes import ChangingZnodes
from kafka08.runtime.threads import THREADS
from kafka08.zk.client import ZkClient
from tests.waiting import until


class Watched:
    """Znodes /a, /b …, and the events of their watches."""

    def __init__(self, zk: ZkClient, monkeypatch: pytest.MonkeyPatch) -> None:
        self.zk = zk
        self.events: list[str] = []
        self.nodes = ChangingZnodes(zk, THREADS)
        changed = ZnodeCache._changed

        def noted(cache: ZnodeCache[object], path: str) -> None:
            changed(cache, path)
            self.events.append(path)

        monkeypatch.setattr(ZnodeCache, "_changed", noted)

    def read(self, *paths: str) -> dict[str, str | None]:
        return {path: node.data for path, node in self.nodes.refresh(paths).items()}

    def change(self, path: str, data: str, *, is_watched: bool) -> None:
        """Write, and wait until a watch has reported it."""
        before = len(self.events)
        self.zk.set(path, data)
        if is_watched:
            until(lambda: len(self.events) > before, f"an event of {path}")

    def requests(self, *paths: str) -> int:
        """How many requests a read takes."""
        before = self.zk.requests_sent
        self.read(*paths)
        return self.zk.requests_sent - before


@pytest.fixture
def watched(zk: ZkClient, monkeypatch: pytest.MonkeyPatch) -> Watched:
    for name in "abc":
        zk.create(f"/{name}", "0")
    return Watched(zk, monkeypatch)


def test_a_znode_that_changes_before_every_read_costs_no_events(watched: Watched) -> None:
    """Its third change is the last one that is reported; later ones are found by a read of it,
    which is one request, as those of others stay watched."""
    watched.read("/a", "/b")
    for number in range(1, 10):
        watched.change("/a", str(number), is_watched=number <= 3)
        before = watched.zk.requests_sent
        assert {"/a": str(number), "/b": "0"} == watched.read("/a", "/b")
        assert 1 == watched.zk.requests_sent - before
    assert ["/a"] * 3 == watched.events


def test_one_that_stops_changing_is_watched_again(watched: Watched) -> None:
    """A read finds it unchanged, the next one sets its watch, and then it costs nothing."""
    watched.read("/a")
    for number in range(1, 5):
        watched.change("/a", str(number), is_watched=number <= 3)
        watched.read("/a")
    assert [1, 1, 0, 0] == [watched.requests("/a") for _ in range(4)]
    watched.change("/a", "again", is_watched=True)
    assert {"/a": "again"} == watched.read("/a")


def test_a_znode_that_changes_now_and_then_stays_watched(watched: Watched) -> None:
    """A znode like that of a group which commits once a minute costs one read for each change."""
    watched.read("/a")
    for number in range(4):
        watched.change("/a", f"{number}", is_watched=True)
        assert [1, 0] == [watched.requests("/a") for _ in range(2)]


def test_no_change_is_missed(watched: Watched) -> None:
    """Of znodes that are written, deleted, made again and left alone at random."""
    rng = random.Random(1)
    contents: dict[str, str | None] = dict.fromkeys(("/a", "/b", "/c"), "0")
    for number in range(60):
        path = rng.choice(list(contents))
        if rng.random() < 0.2:
            watched.zk.delete(path, missing_ok=True)
            contents[path] = None
        elif rng.random() < 0.7:
            watched.zk.put(path, str(number))
            contents[path] = str(number)
        expected = {path: data for path, data in contents.items() if data is not None}
        until(lambda wanted=expected: watched.read("/a", "/b", "/c") == wanted)  # type: ignore[misc]
