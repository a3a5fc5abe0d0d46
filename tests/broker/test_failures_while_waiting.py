"""A request that waits, and fails while it is completed, is answered, or its connection is closed,
or the broker halts. No client waits for ever."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.purgatory.delayed_fetch import DelayedFetch
from kafka08.broker.replica import replica_state
from kafka08.broker.replica.partition import Partition
from kafka08.broker.requests.fetch_call import FetchCall
from kafka08.broker.requests.handlers import join_group, offset_commit, produce
from kafka08.errors import StorageError
from kafka08.log.log import Log
from kafka08.protocol import compression, message_set
from kafka08.protocol.codec import encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.types import Request
from kafka08.structs import DEBUGGING_CONSUMER, OFFSETS_TOPIC
from tests.broker.fake_runtime import Halted
from tests.broker.groups.test_group_coordinator import join_request, sync_request
from tests.broker.world import Client, World

EVERY_TIMEOUT_MS = 1000


def fetched(replica_id: int = -1) -> FetchRequest:
    parts = [FetchPartition(0, 0, 1000)]
    return FetchRequest(replica_id, EVERY_TIMEOUT_MS, 1, [FetchTopic("t", parts)], version=2)


def produced(acks: int, codec: int = compression.NONE) -> ProduceRequest:
    value = random.Random(1).randbytes(80_000 if codec else 10)
    part = ProducePartition(0, message_set.encode([(b"k", value)], codec))
    return ProduceRequest(acks, EVERY_TIMEOUT_MS, [ProduceTopic("t", [part])])


def committed() -> OffsetCommitRequest:
    topics = [OffsetCommitTopic("t", [OffsetCommitPartition(0, 7, "", -1)])]
    return OffsetCommitRequest("g", topics, -1, "", version=2)


class Waiting:
    """A broker, and the clients that wait. Other clients are answered."""

    def __init__(self, directory: Path) -> None:
        self.world = World(
            directory, api_level="0.10.2", offsets_topic_num_partitions=1, native_inline=False
        )
        self.world.lead("t", isr=(1, 2), replicas=(1, 2))
        self.world.lead(OFFSETS_TOPIC, isr=(1, 2), replicas=(1, 2))
        self.clients: list[Client] = []

    def ask(self, request: Request) -> Client:
        client = Client(self.world)
        client.send(encode_request(request, 1, "test"))
        return client

    def park(self, request: Request) -> None:
        client = self.ask(request)
        assert client.parked
        self.clients.append(client)

    def advance(self) -> None:
        self.world.runtime.advance(60)

    def append(self) -> None:
        self.ask(produced(1))
        self.world.runtime.advance(0)

    def commit(self) -> None:
        """A message is appended, and the HW rises."""
        self.append()
        self.follow()

    def follow(self) -> None:
        """The follower has all: what waits for the HW is completed."""
        ends = {
            t: self.world.partition(t).leader_log().log_end_offset for t in ("t", OFFSETS_TOPIC)
        }
        topics = [FetchTopic(t, [FetchPartition(0, end, 1000)]) for t, end in ends.items()]
        self.ask(FetchRequest(2, 0, 1, topics))

    def run_native_jobs(self) -> None:
        self.world.runtime.run_native_jobs()

    def join(self) -> None:
        """A new group has its first member, which leads it."""
        self.joined = Client(self.world).call(join_request())

    def sync(self) -> None:
        """The leader waits until its assignment is stored."""
        self.clients.append(self.ask(sync_request(self.joined)))

    def park_join(self) -> None:
        """A second member waits until the first one joins again, or its session is over."""
        Client(self.world).call(join_request())
        self.park(join_request())


Step = Callable[[Waiting], object]


@dataclass(frozen=True)
class Case:
    """`begin` parks a request; `end` completes it, and calls what fails."""

    begin: Step
    end: Step
    fails: tuple[Any, str]


CASES = {
    "fetch, HW": Case(lambda w: w.park(fetched()), Waiting.commit, (Partition, "read")),
    "fetch, timeout": Case(lambda w: w.park(fetched()), Waiting.advance, (FetchCall, "_respond")),
    "fetch, check": Case(
        lambda w: w.park(fetched()), Waiting.commit, (DelayedFetch, "is_satisfied_by")
    ),
    "fetch of a debugger, timeout": Case(
        lambda w: w.park(fetched(DEBUGGING_CONSUMER)), Waiting.advance, (FetchCall, "_respond")
    ),
    "fetch of a follower, append": Case(
        lambda w: w.park(fetched(2)), Waiting.append, (replica_state, "respond_to_follower")
    ),
    "fetch of a follower, timeout": Case(
        lambda w: w.park(fetched(2)), Waiting.advance, (replica_state, "respond_to_follower")
    ),
    "produce, timeout": Case(lambda w: w.park(produced(-1)), Waiting.advance, (produce, "outcome")),
    "produce, check": Case(
        lambda w: w.park(produced(-1)), Waiting.follow, (Partition, "acknowledged")
    ),
    "produce, compressed in a thread": Case(
        lambda w: w.park(produced(1, compression.GZIP)),
        Waiting.run_native_jobs,
        (Log, "append_prepared"),
    ),
    "produce, its response": Case(
        lambda w: w.park(produced(1, compression.GZIP)),
        Waiting.run_native_jobs,
        (produce, "outcome"),
    ),
    "commit, timeout": Case(
        lambda w: w.park(committed()), Waiting.advance, (offset_commit, "respond")
    ),
    "commit, HW": Case(lambda w: w.park(committed()), Waiting.follow, (offset_commit, "respond")),
    "join, timeout": Case(Waiting.park_join, Waiting.advance, (join_group, "respond")),
    "sync, append": Case(Waiting.join, Waiting.sync, (replica_state, "append_records")),
}
ERRORS = {
    "disk": StorageError("cannot read t-0: Input/output error"),
    "descriptors": OSError(errno.EMFILE, "Too many open files"),
    "bug": RuntimeError("a bug"),
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("case", CASES)
def test_no_client_waits_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, error: str
) -> None:
    """Whatever fails where a waiting request is completed: the client has its response, or its
    connection is closed. A disk that fails halts the broker. Others are served afterwards."""
    waiting, wanted = Waiting(tmp_path), CASES[case]
    wanted.begin(waiting)
    calls = []

    def fail(*_: object, **__: object) -> Any:
        calls.append(case)
        raise ERRORS[error]

    with monkeypatch.context() as patch:
        patch.setattr(*wanted.fails, fail)
        try:
            wanted.end(waiting)
        except Halted:
            assert "disk" == error
            return
    assert calls, "nothing failed"
    assert "disk" != error, "the broker goes on"
    assert waiting.clients
    for client in waiting.clients:
        assert client.closed or client.frames()
    assert waiting.ask(produced(1)).frames()
