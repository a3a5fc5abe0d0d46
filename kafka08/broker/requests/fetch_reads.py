"""Reads: what a Fetch request finds in its partitions, and the two encoders of its response.

The kernel's needs the request's bytes, and no object for a topic or a partition. The codec's is for
a response with an error, and for requests that the codec has decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka08 import kernel
from kafka08.broker.replica.replica_state import log_starts_for
from kafka08.errors import ProtocolError
from kafka08.kernel.types import ENTRY_HEADER
from kafka08.protocol.fetch import (
    LIMITED_VERSION,
    MAGIC_2_VERSION,
    NO_HIGH_WATERMARK,
    NO_LAST_STABLE_OFFSET,
    PartitionData,
    response_pieces,
)

if TYPE_CHECKING:
    from kafka08.broker.replica.partition import Partition
    from kafka08.log.aborted_transactions import AbortedTransaction
    from kafka08.log.slices import LogSlice
    from kafka08.network.server_connection import Piece, ResponseFrame
    from kafka08.structs import TopicPartition


Added: TypeAlias = tuple[int, Sequence[tuple[int, int]] | None, int]
"""Last stable offset, aborted transactions, log start offset."""
Aborted: TypeAlias = "dict[int, list[AbortedTransaction]]"
"""Those of partitions that have some."""
Read: TypeAlias = "Callable[[int], LogSlice]"
"""Most bytes → the set from the fetch offset on."""


class Reads:
    """The findings of a fetch by partition, whose indexes are those in the request.

    high_watermarks   -1 after an error
    sizes             of the sets
    total             the sum of the sizes
    found             the slices of those that were read; a size limit may make one empty. In the
                      response they may be converted
    codes             the error codes of the others
    in_turns          the hub did other work between the reads
    """

    __slots__ = ("codes", "found", "high_watermarks", "in_turns", "sizes", "total")

    def __init__(self, high_watermarks: list[int]) -> None:
        self.high_watermarks = high_watermarks
        self.sizes = [0] * len(high_watermarks)
        self.total = 0
        self.found: dict[int, Any] = {}
        self.codes: dict[int, int] = {}
        self.in_turns = False

    def fail(self, number: int, code: int) -> None:
        """A partition has an error, and no set."""
        self.total -= self.sizes[number]
        self.sizes[number] = 0
        self.found.pop(number, None)
        self.high_watermarks[number] = NO_HIGH_WATERMARK
        self.codes[number] = code


def encode_by_kernel(
    payload: memoryview, partitions: list[Partition], reads: Reads, stable_only: bool
) -> ResponseFrame:
    """Encode the response to this request, which has no errors and no aborted transactions; its
    sets stay in their files. `stable_only`: for a reader of committed messages."""
    starts = log_starts_for(payload, partitions)
    stable = [one.last_stable_offset for one in partitions] if stable_only else None
    try:
        headers = kernel.write_fetched(payload, reads.high_watermarks, reads.sizes, starts, stable)
    except OverflowError as error:
        raise ProtocolError(f"FetchResponse: {error}") from error
    if not reads.total:
        return headers[0]
    pieces: list[Piece] = []
    following = iter(headers)
    for found in reads.found.values():
        if found.size:
            pieces += next(following), found
    pieces += following
    return pieces


def encode_by_codec(
    correlation_id: int,
    version: int,
    names: list[TopicPartition],
    reads: Reads,
    added: Callable[[int], Added],
) -> ResponseFrame:
    """Encode the response for partitions of these names, in the order of the request. `added`:
    called from version 4 on with each partition without an error."""
    codes, found = reads.codes, reads.found
    rows = [
        (
            name.topic,
            PartitionData(
                name.partition,
                codes.get(n, 0),
                mark,
                found.get(n),
                *(() if version < MAGIC_2_VERSION or n in codes else added(n)),
            ),
        )
        for n, (name, mark) in enumerate(zip(names, reads.high_watermarks, strict=True))
    ]
    if version >= LIMITED_VERSION:
        # The order of the request shows which partitions the limit has cut off.
        neighbours = groupby(rows, key=lambda row: row[0])
        in_order = [(topic, [data for _, data in group]) for topic, group in neighbours]
        return response_pieces(correlation_id, in_order, version)
    topics: dict[str, list[PartitionData[Any]]] = {}
    for topic, data in rows:
        topics.setdefault(topic, []).append(data)
    return response_pieces(correlation_id, list(topics.items()), version)


def aborted_in(partitions: list[Any], reads: Reads) -> Aborted:
    """The aborted transactions that overlap the sets, for a reader of committed messages."""
    if not reads.total:
        return {}
    return {
        number: aborted
        for number, found in reads.found.items()
        if (aborted := partitions[number].log.aborted_transactions(found))
    }


def added_since_0_11(partitions: list[Any], aborted: Aborted | None, number: int) -> Added:
    """The fields of a partition without an error that versions 4 and 5 added. `aborted`: None for a
    reader of uncommitted messages."""
    partition, log_start_offset = partitions[number], partitions[number].log.log_start_offset
    if aborted is None:
        return NO_LAST_STABLE_OFFSET, None, log_start_offset
    of_set = [(one.producer_id, one.first_offset) for one in aborted.get(number, ())]
    return partition.last_stable_offset, of_set, log_start_offset


def whole_message(read: Read, found: LogSlice, *, is_first: bool) -> LogSlice:
    """A set that its limit cuts. If that is within its first message: the whole message if it is
    the first of the response, else an empty set."""
    if found.has_whole_entry:
        return found
    head = read(ENTRY_HEADER.size).bytes()
    if len(head) == ENTRY_HEADER.size:
        whole = ENTRY_HEADER.size + ENTRY_HEADER.unpack(head)[1]
        if whole > found.size:
            return read(whole if is_first else 0)
    return found
