"""FastFetch: Fetch of any number of partitions, without objects for topics and partitions.

The kernel reads the request and writes the response around the sets, which stay in their files;
small sets for a follower are copied into it. A partition without new messages costs one comparison.
handlers.fetch handles a request with

    an unknown or repeated partition
    a partition that this broker does not lead, or whose response is an error
    a follower that is not a replica of a partition, or whose offset `Partition.doubts`
    a DEBUGGING_CONSUMER
    a first message that alone exceeds a size limit (version 3)
    versions 0 and 1, from level 0.10.2 on, with a compressed set of magic 1, or with many or large
    sets, which must be examined for conversion
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka08 import kernel
from kafka08.broker.purgatory.delayed_fetch import DelayedFetch, DelayedFollowerFetch
from kafka08.broker.replica import replica_state
from kafka08.broker.requests.call import answering
from kafka08.broker.requests.converted_set import (
    LOOKED_AT_AT_ONCE_BYTES,
    ConvertedSet,
    DownConverted,
    DownConverter,
)
from kafka08.broker.requests.fallback import FALL_BACK, Fallback
from kafka08.errors import ApiError
from kafka08.levels import Level
from kafka08.protocol.fetch import LIMITED_VERSION, MAGIC_1_VERSION
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE
from kafka08.structs import ORDINARY_CONSUMER

if TYPE_CHECKING:
    from kafka08.broker.replica.partition import Partition
    from kafka08.broker.requests.context import BrokerContext
    from kafka08.log.slices import LogOffset, LogSlice
    from kafka08.network.server_connection import Piece, RequestConnection, ResponseFrame
    from kafka08.structs import TopicPartition

VERSION_LOW_BYTE: Final = 3
COPIED_BYTES_MAX: Final = 128 << 10
"""The sets of a response to a follower are copied up to this size: one system call sends them all,
and wakes the follower once."""
Complete = Callable[[memoryview, "RequestConnection"], object]
"""Completes a parked request through handlers.fetch."""
Ends = tuple[list[int], list[int], list[int]]
"""The result of `replica_state.partitions_to_read`."""


class Wanted(NamedTuple):
    """A request as `kernel.read_fetch` returns it; the last three in the order of the request.

    is_limited      whether the version has a size limit for the whole response
    wants_magic_0   whether sets may have to be converted
    follows         whether a follower asks
    """

    is_limited: bool
    wants_magic_0: bool
    follows: bool
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partitions: list[Partition]
    offsets: list[int]
    limits: list[int]

    def find_ends(self) -> Ends | None:
        """Ends and positions of the partitions now; None if one of them needs the handler."""
        return replica_state.partitions_to_read(
            self.partitions, self.offsets, self.limits, self.follows
        )


class Reads(NamedTuple):
    """The contents of a response: HW and bytes of every partition, and, by the partition's index,
    the slices of those with messages after the fetch offset. A size limit may make a slice
    empty."""

    high_watermarks: list[int]
    sizes: list[int]
    found: dict[int, LogSlice]


class FastFetch:
    """Handles payloads of Fetch requests. Raises StorageError like ReplicaManager.read.

    count   of the requests, with those that it left to the handler
    """

    def __init__(self, broker: BrokerContext, complete: Complete) -> None:
        self._runtime = broker.runtime
        self._has_magic_1 = broker.config.level >= Level.V0_10_2
        self._replica_manager = broker.replica_manager
        self._purgatories = broker.replica_manager.purgatories
        self._broker_id = broker.config.broker_id
        self._partitions = broker.replica_manager.by_topic_name
        self._record = broker.replica_manager.record_follower_fetches
        self._complete = complete
        self.count = 0

    def __call__(
        self, payload: memoryview, link: RequestConnection
    ) -> ResponseFrame | Fallback | None:
        """The response, None if the request is parked, or Fallback if the handler must take it.
        Never switches."""
        self.count += 1
        fields = kernel.read_fetch(payload, self._partitions)
        if fields is None:
            return FALL_BACK
        version = payload[VERSION_LOW_BYTE]
        wants_magic_0 = self._has_magic_1 and version < MAGIC_1_VERSION
        wanted = Wanted(version >= LIMITED_VERSION, wants_magic_0, fields[0] >= 0, *fields)
        if wanted.follows:
            follower, number = wanted.replica_id, link.number
            if follower == self._broker_id:
                return FALL_BACK
            for partition in wanted.partitions:
                if follower not in partition.replicas or (
                    number < partition.led_until and partition.doubts(number)
                ):
                    return FALL_BACK
        elif wanted.replica_id != ORDINARY_CONSUMER:
            return FALL_BACK
        ends = wanted.find_ends()
        if ends is None:
            return FALL_BACK
        if (
            wanted.follows
            and not wants_magic_0  # whose response may be left to the handler
            and wanted.min_bytes == 1
            and wanted.max_wait_ms > 0
            and replica_state.NOT_AT_THE_END not in ends[2]
        ):
            return self._follow(payload, link, wanted, ends)
        reads = read(wanted, ends)
        if reads is None:
            return FALL_BACK
        response = None
        if wanted.max_wait_ms <= 0 or sum(reads.sizes) >= wanted.min_bytes:
            response = self._respond(payload, wanted, reads)
            if response is None:
                return FALL_BACK
        if wanted.follows:
            # After the read: the response has the HWs from before, as in handlers.fetch. And not
            # before it is known to fit: the handler must find nothing recorded.
            self._record(wanted.partitions, wanted.offsets, wanted.replica_id)
        if response is None:
            self._park(bytes(payload), link, wanted, reads)
        return response

    def _follow(
        self, payload: memoryview, link: RequestConnection, wanted: Wanted, ends: Ends
    ) -> ResponseFrame | Fallback | None:
        """Handle the fetch of a follower that waits for any number of bytes, as most do, and has
        nearly everything.

        It waits until the end of this turn even if there are some, if the fetch acknowledges a
        produce: the next request of that producer is usually in the socket already, and is
        appended in this turn."""
        high_watermarks, to_read, positions = ends
        reads = None
        if to_read and wanted.is_limited:
            # The handler, which cuts sets at the limit, must find nothing recorded.
            reads = read(wanted, ends)
            if reads is None:
                return FALL_BACK
        acknowledges = self._record(wanted.partitions, wanted.offsets, wanted.replica_id)
        if not to_read or acknowledges:
            self._park_follower(bytes(payload), link, wanted, ends)
            return None
        response = respond_to_follower(payload, wanted, positions, high_watermarks)
        if response is not None:
            return response
        reads = reads or read(wanted, ends)
        if reads is None:
            return FALL_BACK
        if not any(reads.sizes):
            self._park(bytes(payload), link, wanted, reads)
            return None
        return self._respond(payload, wanted, reads) or FALL_BACK

    def _park_follower(
        self,
        payload: bytes,
        link: RequestConnection,
        wanted: Wanted,
        ends: Ends,
    ) -> None:
        """Wait until one of the partitions is longer. If some are already, wait until this turn
        ends; the response has the HWs of `ends` then, as an immediate one."""
        high_watermarks, to_read, positions = ends
        marks = high_watermarks if to_read else None

        def respond() -> None:
            response = respond_to_follower(memoryview(payload), wanted, positions, marks)
            if response is None:
                self._respond_later(payload, link, wanted, marks)
            else:
                link.send_response(response)

        waits = self._purgatories.follower_fetches
        wait = DelayedFollowerFetch(
            self._replica_manager.find,
            wanted.replica_id,
            wanted.partitions,
            wanted.offsets,
            answering(link, respond),
            has_news=bool(to_read),
        )
        waits.watch(wait, (), wanted.max_wait_ms)
        link.on_close = partial(waits.abandon, wait)
        if to_read:
            self._purgatories.wake_followers(
                [wanted.partitions[number].topic_partition for number in to_read]
            )

    def _respond_later(
        self,
        payload: bytes,
        link: RequestConnection,
        wanted: Wanted,
        high_watermarks: list[int] | None = None,
    ) -> None:
        """Respond to a parked request: read everything again. It has these HWs, if given."""
        view = memoryview(payload)
        ends = wanted.find_ends()
        found = None if ends is None else read(wanted, ends)
        if found is not None and high_watermarks is not None:
            found = found._replace(high_watermarks=high_watermarks)
        response = None if found is None else self._respond(view, wanted, found)
        if response is None:
            self._complete(view, link)
        else:
            link.send_response(response)

    def _park(self, payload: bytes, link: RequestConnection, wanted: Wanted, reads: Reads) -> None:
        """Wait for more data."""
        done = answering(link, partial(self._respond_later, payload, link, wanted))
        names = [partition.topic_partition for partition in wanted.partitions]
        starts: dict[TopicPartition, LogOffset | int]
        if wanted.min_bytes > 1:
            # Positions of now: a segment that is rolled meanwhile ends the wait.
            starts = {
                partition.topic_partition: partition.leader_log().position_of(offset)
                for partition, offset in zip(wanted.partitions, wanted.offsets, strict=True)
            }
        else:
            starts = dict(zip(names, wanted.offsets, strict=True))
        for place, found in reads.found.items():
            starts[names[place]] = found.log_offset
        follows = wanted.follows
        wait = DelayedFetch(
            self._replica_manager.partition,
            starts,
            wanted.min_bytes,
            done,
            from_follower=follows,
        )
        waits = self._purgatories.for_fetch(from_follower=follows)
        # Nothing can be read yet, so it is not satisfied: it is not checked.
        if not reads.found:
            waits.watch(wait, names, wanted.max_wait_ms)
        elif waits.add(wait, names, wanted.max_wait_ms):
            return
        link.on_close = partial(waits.abandon, wait)

    def _respond(self, payload: memoryview, wanted: Wanted, reads: Reads) -> ResponseFrame | None:
        """The frame, its sets still in their files; None if a frame cannot hold it, or if the sets
        must be converted by the handler."""
        sets: Mapping[int, DownConverted] | None = reads.found
        if wanted.wants_magic_0 and sets:
            sets = self._convert(reads)
            if sets is None:
                return None
        try:
            headers = kernel.write_fetched(payload, reads.high_watermarks, reads.sizes)
        except OverflowError:
            return None
        replica_state.count_fetches(wanted.partitions, None if wanted.follows else reads.sizes)
        if not sets:
            return headers[0]
        pieces: list[Piece] = []
        following = iter(headers)
        for found in sets.values():
            if found.size:
                pieces += next(following), found
        pieces += following
        return pieces

    def _convert(self, reads: Reads) -> dict[int, DownConverted] | None:
        """The sets in magic 0, whose sizes are put into `reads`; None if this is left to the
        handler."""
        if len(reads.found) > PARTITIONS_AT_ONCE or sum(reads.sizes) > LOOKED_AT_AT_ONCE_BYTES:
            return None
        convert = DownConverter(self._runtime).convert
        sets: dict[int, DownConverted] = {}
        for place, found in reads.found.items():
            converted = sets[place] = convert(found)
            if isinstance(converted, ConvertedSet) and converted.in_thread:
                return None
            reads.sizes[place] = converted.size
        return sets


def respond_to_follower(
    payload: memoryview,
    wanted: Wanted,
    positions: list[int],
    high_watermarks: list[int] | None = None,
) -> bytes | None:
    """The frame with copies of the sets; None if it would be large, or needs a look at files. Then
    the sets stay in their files, or the handler must take it."""
    return replica_state.respond_to_follower(
        payload,
        wanted.partitions,
        wanted.offsets,
        wanted.limits,
        positions,
        min(COPIED_BYTES_MAX, wanted.max_bytes - 1),
        high_watermarks,
    )


def read(wanted: Wanted, ends: Ends) -> Reads | None:
    """Read every partition; None if one of them needs the handler."""
    follows, left = wanted.follows, wanted.max_bytes
    high_watermarks, to_read, _ = ends
    sizes = [0] * len(high_watermarks)
    slices: dict[int, LogSlice] = {}
    for number in to_read:
        partition, limit = wanted.partitions[number], wanted.limits[number]
        try:
            read_slice = partition.read(
                wanted.offsets[number], min(limit, left), committed_only=not follows
            )
        except ApiError:
            return None  # the handler gets the same error and responds with it
        size = read_slice.size
        if wanted.is_limited:
            if size >= min(limit, left) and not read_slice.has_whole_entry:
                return None  # the handler knows whether that message may exceed the limits
            left -= size
        sizes[number] = size
        slices[number] = read_slice
    return Reads(high_watermarks, sizes, slices)
