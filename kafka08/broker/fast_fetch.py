"""FastFetch: Fetch of any number of partitions, without objects for topics and partitions.

The kernel reads the request and writes the answer around the sets, which stay in their files. A
partition that has nothing new costs a comparison. Left to handlers.fetch is a request with

    an unknown partition, or one that is named twice
    a partition that this broker does not lead, or that is answered with an error
    a follower that is none of a partition's replicas
    a DEBUGGING_CONSUMER
    a set that the limit of a whole answer has cut (version 3)

Versions 0 and 1 are not handled from level 0.10.2 on, where sets may have to be converted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka08 import kernel
from kafka08.broker.delayed_fetch import DelayedFetch
from kafka08.broker.unfinished import NOTHING_DONE, Unfinished
from kafka08.errors import ApiError
from kafka08.protocol.fetch import LIMITED_VERSION
from kafka08.structs import ORDINARY_CONSUMER

if TYPE_CHECKING:
    from kafka08.broker.context import BrokerContext
    from kafka08.broker.partition import Partition
    from kafka08.log.slices import LogOffset, LogSlice
    from kafka08.network.server_connection import Piece, ResponseFrame, ServerConnection
    from kafka08.structs import TopicPartition

VERSION_LOW_BYTE: Final = 3
Complete = Callable[[memoryview, "ServerConnection"], object]
"""Answers a parked request the long way."""


class Wanted(NamedTuple):
    """A request as `kernel.read_fetch` gives it; the last three in the order of the request.

    is_limited   whether the version has a limit for the whole answer
    """

    is_limited: bool
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partitions: list[Partition]
    offsets: list[int]
    limits: list[int]

    @property
    def is_of_follower(self) -> bool:
        return self.replica_id >= 0


class Reads(NamedTuple):
    """What an answer has: HW and bytes of every partition, and what was found where there is
    something behind the offset, of which the limits may let nothing be read."""

    high_watermarks: list[int]
    sizes: list[int]
    found: list[tuple[Partition, LogSlice]]


class FastFetch:
    """Handles payloads of Fetch requests. StorageError as ReplicaManager.read."""

    def __init__(self, broker: BrokerContext, complete: Complete) -> None:
        self._replica_manager = broker.replica_manager
        self._partitions = broker.replica_manager.by_topic_name
        self._complete = complete

    def __call__(
        self, payload: memoryview, link: ServerConnection
    ) -> ResponseFrame | Unfinished | None:
        """The answer, None if the request is parked, or that it is left to the handler. Never
        switches."""
        fields = kernel.read_fetch(payload, self._partitions)
        if fields is None:
            return NOTHING_DONE
        wanted = Wanted(payload[VERSION_LOW_BYTE] >= LIMITED_VERSION, *fields)
        manager = self._replica_manager
        if wanted.is_of_follower:
            if not all(p.has_replica(wanted.replica_id) for p in wanted.partitions):
                return NOTHING_DONE
        elif wanted.replica_id != ORDINARY_CONSUMER:
            return NOTHING_DONE
        reads = read(wanted)
        if reads is None:
            return NOTHING_DONE
        if wanted.is_of_follower:
            manager.record_follower_fetches(wanted.partitions, wanted.offsets, wanted.replica_id)
        if wanted.max_wait_ms <= 0 or sum(reads.sizes) >= wanted.min_bytes:
            return respond(payload, wanted, reads) or NOTHING_DONE
        self._park(bytes(payload), link, wanted, reads)
        return None

    def _park(self, payload: bytes, link: ServerConnection, wanted: Wanted, reads: Reads) -> None:
        """Wait for more; when the wait is over, read again what there is then."""

        def done() -> None:
            view = memoryview(payload)
            found = read(wanted)
            response = None if found is None else respond(view, wanted, found)
            if response is None:
                self._complete(view, link)
            else:
                link.on_close = None
                link.answer(response)

        names = [partition.topic_partition for partition in wanted.partitions]
        starts: dict[TopicPartition, LogOffset | int] = dict(
            zip(names, wanted.offsets, strict=True)
        )
        for partition, found in reads.found:
            starts[partition.topic_partition] = found.log_offset
        manager = self._replica_manager
        follows = wanted.is_of_follower
        wait = DelayedFetch(manager, starts, wanted.min_bytes, done, from_follower=follows)
        waits = manager.follower_fetch_purgatory if follows else manager.fetch_purgatory
        if not waits.add(wait, names, wanted.max_wait_ms):
            link.on_close = lambda: waits.abandon(wait)


def read(wanted: Wanted) -> Reads | None:
    """Read every partition; None if one of them is odd."""
    follows, left = wanted.is_of_follower, wanted.max_bytes
    high_watermarks: list[int] = []
    sizes: list[int] = []
    all_found: list[tuple[Partition, LogSlice]] = []
    for partition, offset, limit in zip(
        wanted.partitions, wanted.offsets, wanted.limits, strict=True
    ):
        log = partition.log
        if not partition.is_leader or log is None:
            return None
        high_watermark = partition.high_watermark
        high_watermarks.append(high_watermark)
        end = log.log_end_offset if follows else high_watermark
        if offset == end and limit >= 0 and offset >= log.log_start_offset:
            sizes.append(0)
            continue
        try:
            found = partition.read(offset, min(limit, left), committed_only=not follows)
        except ApiError:
            return None  # the handler meets the same error and reports it
        size = found.size
        if wanted.is_limited:
            if size >= min(limit, left):
                return None
            left -= size
        sizes.append(size)
        all_found.append((partition, found))
    return Reads(high_watermarks, sizes, all_found)


def respond(payload: memoryview, wanted: Wanted, reads: Reads) -> ResponseFrame | None:
    """The frame, its sets still in their files; None if a frame cannot hold it."""
    try:
        headers = kernel.write_fetched(payload, reads.high_watermarks, reads.sizes)
    except OverflowError:
        return None
    if not reads.found:
        return headers[0]
    pieces: list[Piece] = []
    following = iter(headers)
    for partition, found in reads.found:
        if found.size:
            pieces += next(following), found
            if not wanted.is_of_follower:
                partition.bytes_out += found.size
    pieces += following
    return pieces
