"""Seconds that a group of two takes to rebalance, of either kind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from kafka08.consumer.zookeeper.assignors import range_assign
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.store import ClusterStore
from tests.interop.jvm import command

POLL_S = 0.002
TIMEOUT_S = 60.0


class Member(Protocol):
    def terminate(self) -> None: ...
    def kill(self) -> None: ...
    def wait(self) -> object: ...


def rebalance_figures(
    kind: str, connect: str, topic: str, directory: Path, number: int
) -> dict[str, float]:
    """Seconds until the owners are right after a member joined (from its registration), left (from
    the end of its registration), joined again and was killed (from the kill, so that the session
    of 6 s is in it). `kind`: "jvm" or "ours"."""
    group = f"{kind}-{number}"
    with ZkClient(connect) as zk:
        watch = GroupWatch(ClusterStore(zk), group, topic)
        first = start_member(kind, connect, group, topic, "a", directory)
        try:
            watch.await_owners("a")
            found = {}
            second = start_member(kind, connect, group, topic, "b", directory)
            found["join"] = watch.seconds_from_registration("b", "a", "b")
            second.terminate()
            found["leave"] = watch.seconds_from_leaving("b", "a")
            second.wait()
            second = start_member(kind, connect, group, topic, "b", directory)
            watch.await_owners("a", "b")
            second.kill()
            found["kill"] = watch.await_owners("a")
            second.wait()
        finally:
            first.kill()
            first.wait()
    return found


class GroupWatch:
    """Looks at the znodes of one group every other millisecond."""

    def __init__(self, store: ClusterStore, group: str, topic: str) -> None:
        self._store = store
        self._group = group
        self._topic = topic
        self._partitions = sorted(store.assignment(topic) or ())

    def seconds_from_registration(self, member: str, *owners: str) -> float:
        self._until(lambda: self._is_registered(member))
        return self.await_owners(*owners)

    def seconds_from_leaving(self, member: str, *owners: str) -> float:
        self._until(lambda: not self._is_registered(member))
        return self.await_owners(*owners)

    def await_owners(self, *members: str) -> float:
        """Seconds until the partitions belong to these, by range."""
        threads = [f"{self._group}_{member}-0" for member in members]
        chosen = range_assign({self._topic: self._partitions}, {self._topic: threads})
        wanted = {tp.partition: thread for tp, thread in chosen.items()}
        started = time.perf_counter()
        self._until(lambda: GroupStore(self._store.zk).owners(self._group, self._topic) == wanted)
        return time.perf_counter() - started

    def _is_registered(self, member: str) -> bool:
        path = paths.consumer_id(self._group, f"{self._group}_{member}")
        return self._store.zk.exists(path)

    def _until(self, done: Callable[[], bool]) -> None:
        give_up_at = time.monotonic() + TIMEOUT_S
        while not done():
            assert time.monotonic() < give_up_at, f"group {self._group} does not settle"
            time.sleep(POLL_S)


def start_member(
    kind: str, connect: str, group: str, topic: str, name: str, directory: Path
) -> Member:
    """A member with the default session and backoff, that prints what it reads to nowhere."""
    keys = {"group.id": group, "consumer.id": name, "zookeeper.connect": connect}
    if kind == "jvm":
        properties = directory / f"{group}-{name}.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        where = ["--zookeeper", connect, "--topic", topic, "--consumer.config", str(properties)]
        line = command("kafka.tools.ConsoleConsumer", *where)
    else:
        words = [f"{key}={value}" for key, value in keys.items()]
        line = [sys.executable, "-m", "benchmarks.member", topic, *words]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(line, stdin=quiet, stdout=quiet, stderr=quiet)
