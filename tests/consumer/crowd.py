"""Many members of one group in several processes: a crowd that gathers, loses a part, settles.

    python -m tests.consumer.crowd CONNECT TOPIC FIRST COUNT SESSION_MS

is one of those processes: members FIRST to FIRST + COUNT - 1 of group `g`. It answers each line on
stdin with one on stdout: the ZooKeeper requests that each member has sent so far.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from kafka08.consumer import ConsumerConfig, ConsumerConnector
from kafka08.lifecycle import Closeable
from kafka08.zk.group_store import GroupStore
from kafka08.zk.store import ClusterStore
from tests.waiting import until

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Settling:
    """How long it took until every partition was owned once by the members that are there, and the
    ZooKeeper requests of each of them on the way."""

    seconds: float
    requests: tuple[int, ...]

    def __str__(self) -> str:
        mean = sum(self.requests) / len(self.requests)
        return (
            f"{len(self.requests)} members in {self.seconds:.1f} s, ZooKeeper requests of a "
            f"member: {mean:.0f} on average, {max(self.requests)} at most"
        )


class Crowd(Closeable):
    """`processes` processes with `members` members in all, as a context manager."""

    def __init__(
        self,
        store: ClusterStore,
        connect: str,
        topic: str,
        *,
        members: int,
        processes: int,
        session_ms: int,
    ) -> None:
        assert members % processes == 0, "each process has as many members"
        self._store = store
        self._connect = connect
        self._topic = topic
        self._each = members // processes
        self._session_ms = session_ms
        self._numbers = range(0, members, self._each)
        self._running: dict[int, subprocess.Popen[str]] = {}

    def start(self, timeout_s: float = 120) -> Settling:
        """Start them all at once, and wait until they have settled."""
        started = time.monotonic()
        for first in self._numbers:
            words = [self._connect, self._topic, first, self._each, self._session_ms]
            self._running[first] = subprocess.Popen(
                [sys.executable, "-m", "tests.consumer.crowd", *map(str, words)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=ROOT,
            )
        self._await_settled(timeout_s)
        return Settling(time.monotonic() - started, tuple(self._requests()))

    def kill_half(self, timeout_s: float = 120) -> Settling:
        """kill -9 every other process, and wait until the others have settled. Time counts from
        the kill, so that it has the session timeout in it."""
        before = self._requests(skip=1)
        started = time.monotonic()
        for first in list(self._running)[::2]:
            self._kill(first)
        self._await_settled(timeout_s)
        seconds = time.monotonic() - started
        after = self._requests()
        return Settling(seconds, tuple(b - a for a, b in zip(before, after, strict=True)))

    def _requests(self, skip: int = 0) -> list[int]:
        counts: list[int] = []
        for process in list(self._running.values())[skip :: skip + 1]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            counts.extend(map(int, process.stdout.readline().split()))
        return counts

    def _await_settled(self, timeout_s: float) -> None:
        until(self._is_settled, "a settled group", timeout_s)

    def _is_settled(self) -> bool:
        """Every partition owned, by each live thread as many as by the others (or one less)."""
        live = {f"g_{n:03}-0" for first in self._running for n in self._members_of(first)}
        partitions = len(self._store.assignment(self._topic) or ())
        owners = list(GroupStore(self._store.zk).owners("g", self._topic).values())
        share = partitions // len(live)
        counts = {owners.count(thread) for thread in live}
        return len(owners) == partitions and set(owners) <= live and counts <= {share, share + 1}

    def _members_of(self, first: int) -> range:
        return range(first, first + self._each)

    def _kill(self, first: int) -> None:
        process = self._running.pop(first)
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def close(self) -> None:
        for first in list(self._running):
            self._kill(first)


def main(connect: str, topic: str, first: str, count: str, session_ms: str) -> None:
    members = [
        ConsumerConnector(
            ConsumerConfig(
                group_id="g",
                consumer_id=f"{number:03}",
                zookeeper_connect=connect,
                zookeeper_session_timeout_ms=int(session_ms),
                # Brokers on paper do not answer, and looking for them is no part of a rebalance.
                refresh_leader_backoff_ms=600_000,
            )
        )
        for number in range(int(first), int(first) + int(count))
    ]
    for member in members:
        joining = {"target": member.create_message_streams, "args": ({topic: 1},)}
        threading.Thread(**joining, daemon=True).start()  # type: ignore[arg-type]
    for _ in sys.stdin:
        sys.stdout.write(
            " ".join(str(member._member._zk.requests_sent) for member in members) + "\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
