"""Helpers for tests of streams: partitions, fetched sets, a scripted supervisor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any, TypeVar

from kafka08.consumer.fetching.owned_partition import Chunk, OwnedPartition
from kafka08.consumer.fetching.stream import FetchedStream
from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.errors import KafkaError
from kafka08.protocol import message_set
from kafka08.runtime import Condition
from kafka08.structs import TopicPartition

T = TypeVar("T")


class AllIsWell:
    """A supervisor that returns what the test sets."""

    def __init__(self) -> None:
        self.until = inf
        self.stalls = 0
        self.cause: KafkaError | None = None

    def deadline(self) -> float:
        return self.until

    def stall(self) -> tuple[int, KafkaError | None]:
        return self.stalls, self.cause


def partition_of(stream: FetchedStream, number: int = 0, offset: int = 0) -> OwnedPartition:
    tp = TopicPartition("t", number)
    return OwnedPartition(tp, thread_id="c-0", sink=stream, offset=offset, fetch_bytes=1024)


def chunk_of(partition: OwnedPartition, *values: bytes, codec: int = 0) -> Chunk:
    """A fetched set of `values` that begins at the partition's fetch position."""
    start = partition.fetch_offset
    data = message_set.encode([(None, value) for value in values], codec, start)
    return Chunk(partition, data, start, start + len(values))


def elsewhere(call: Callable[[], T]) -> T:
    """Runs `call` in a thread of its own, as a rebalancer or committer does, and returns its
    result."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(call).result(timeout=60)


def position_seen_by_others(stream: MemberStream) -> int | None:
    """The position that another thread would commit for the partition that is being read."""
    found = elsewhere(stream.position)
    return None if found is None else found[1]


class InterruptedExit:
    """A condition at the end of whose block a signal handler raises once."""

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self.is_armed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._condition, name)

    def __enter__(self) -> bool:
        return self._condition.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._condition.__exit__(*error)
        if self.is_armed:
            self.is_armed = False
            raise KeyboardInterrupt
