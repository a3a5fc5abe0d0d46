"""A leader and its follower in one process, with a function call as their socket."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from kafka08.broker.replication.replica_fetcher import (
    ReplicaFetcher,
)
from kafka08.network.server_connection import NUMBERS
from kafka08.protocol import message_set
from kafka08.protocol.types import Buffer
from kafka08.structs import Broker, TopicPartition
from kafka08.zk.store import ClusterStore
from tests.broker.world import Client, World

TP = TopicPartition("t", 0)
LEADER = Broker(1, "127.0.0.1", 19091)
FETCH_WAIT_S = 0.5


class Wire:
    """The follower's socket to the leader. A parked request is answered when its wait is over."""

    family = socket.AF_UNIX

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._leader = leader = pair.leader
        self._client = Client(leader, number=next(NUMBERS))
        self._received = b""

    def settimeout(self, seconds: float | None) -> None: ...

    def drop_undelivered(self, drops: bool) -> None: ...

    def sendall(self, data: bytes) -> None:
        self._client.send(data)
        self._leader.runtime.advance(0)  # to the end of the turn
        if self._client.parked:
            self._leader.runtime.advance(FETCH_WAIT_S + 0.002)
        for frame in self._client.frames():
            self._received += len(frame).to_bytes(4, "big") + frame
        self._pair.while_fetching()

    def recv_into(self, buffer: Any) -> int:
        self._pair.while_waiting()
        count = min(len(buffer), len(self._received))
        buffer[:count] = self._received[:count]
        self._received = self._received[count:]
        return count

    def abort(self) -> None:
        self._received = b""
        self._pair.aborts += 1

    def close(self) -> None: ...


class Pair:
    """Broker 1 leads [t,0]. Broker 2 follows it with all parts of a fetcher."""

    def __init__(self, directory: Path, partitions: int = 1, **keys: Any) -> None:
        self.leader = World(directory / "leader", **keys)
        self.follower = World(directory / "follower", broker_id=2, **keys)
        self.leader.lead("t", partitions, isr=(1, 2), replicas=(1, 2))
        self.follower.lead("t", partitions, leader=1, isr=(1, 2), replicas=(1, 2))
        runtime: Any = self.follower.runtime
        runtime.dial = self._connect
        self.fetcher = ReplicaFetcher(
            self.follower.config,
            runtime,
            self.follower.log_manager,
            cast("ClusterStore", self.follower.store),
            leader=LEADER,
            fetcher_id=0,
            checkpoint=self.follower.replica_manager.checkpoint_high_watermarks,
            checkpoint_starts=self.follower.log_starts.write,
        )
        self.fetcher.add(self.copies)
        self.while_fetching: Callable[[], object] = lambda: None
        """Called while the response to a request is on its way."""
        self.while_waiting: Callable[[], object] = lambda: None
        """Called when the follower waits for a response."""
        self.while_connecting: Callable[[], object] = lambda: None
        self.aborts = 0
        """How often a connection was shut down."""

    def _connect(self, *_: object) -> Wire:
        self.while_connecting()
        return Wire(self)

    def lead(self) -> None:
        self.leader.lead("t", isr=(1, 2), replicas=(1, 2))

    @property
    def original(self) -> Any:
        return self.leader.partition("t")

    @property
    def copy(self) -> Any:
        return self.follower.partition("t")

    @property
    def copies(self) -> list[Any]:
        return list(self.follower.replica_manager)

    def produce(self, *values: bytes) -> None:
        append(self.leader, message_set.encode([(None, value) for value in values]))

    def logs(self) -> list[tuple[str, bytes]]:
        """Name and bytes of every segment, of the leader and of the follower."""
        return [
            (file.name, file.read_bytes())
            for partition in (self.original, self.copy)
            for file in sorted(partition.log.directory.glob("*.log"))
        ]


def append(world: World, data: Buffer, tp: TopicPartition = TP) -> None:
    world.appender.append(
        {tp: bytearray(data)}, required_acks=1, timeout_ms=0, done=lambda results: None
    )


def contents(partition: Any) -> bytes:
    """The bytes of all segments in order."""
    files = sorted(partition.log.directory.glob("*.log"))
    return b"".join(file.read_bytes() for file in files)


def pair_with_large_messages(directory: Path, **keys: Any) -> Pair:
    """Fetches have 500 bytes, and messages up to 5000 are allowed."""
    pair = Pair(directory, message_max_bytes=500, replica_fetch_max_bytes=500, **keys)
    for world in (pair.leader, pair.follower):
        world.log_manager.update_topic_config("t", {"max.message.bytes": "5000"})
    return pair


def lose_the_connection() -> None:
    raise ConnectionResetError("cut by the test")
