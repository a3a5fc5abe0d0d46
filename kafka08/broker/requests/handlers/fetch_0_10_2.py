"""Fetch at 0.10.2: version 3 limits the whole response, and keeps the order of the request.

Each partition is read up to the smaller of its own limit and the rest of the response's. The first
message of the response is whole, however large; after that, a partition whose first message does
not fit returns nothing. Topics unknown to this broker come last, and do not end the wait for data
of others. A fetch between the HW and the LEO is empty, not -1. Versions 0 and 1 get magic 0 only:
sets with other messages are converted (converted_set). Reads and waits refer to the log's bytes,
whatever is sent. Source: ReplicaManager (readFromLocalLog), KafkaApis.handleFetchRequest 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.converted_set import LOOKED_AT_AT_ONCE_BYTES, DownConvertedResponse
from kafka08.broker.requests.handlers import fetch
from kafka08.errors import UnknownTopicOrPartition
from kafka08.kernel.types import ENTRY_HEADER
from kafka08.protocol.fetch import LIMITED_VERSION, MAGIC_1_VERSION
from kafka08.runtime.yielding import PARTITIONS_PER_BATCH, yielding_batches
from kafka08.structs import DEBUGGING_CONSUMER, TopicPartition

if TYPE_CHECKING:
    from kafka08.broker.replica.partition import Partition
    from kafka08.broker.replication.replica_manager import ReplicaManager
    from kafka08.log.slices import LogSlice
    from kafka08.network.server_connection import ResponseFrame
    from kafka08.protocol.fetch import FetchPartition, FetchRequest


class UnlimitedReader:
    """Partitions one by one, each up to its own limit. Never switches."""

    def __init__(self, broker: BrokerContext, request: FetchRequest) -> None:
        self._runtime = broker.runtime
        self._metadata_cache = broker.metadata_cache
        self._replica_id = request.replica_id

    def read_partition(
        self, manager: ReplicaManager, tp: TopicPartition, wanted: FetchPartition
    ) -> tuple[LogSlice, int]:
        """Like ReplicaManager.read_from_log."""
        debugs = self._replica_id == DEBUGGING_CONSUMER
        if debugs and tp.topic not in self._metadata_cache:
            raise UnknownTopicOrPartition(f"topic {tp.topic} is not known here")
        partition = manager.hosted_partition(tp) if debugs else manager.leader_partition(tp)
        if self._replica_id < 0 and wanted.offset > partition.high_watermark:
            # 0 bytes, up to the LEO: empty, and out of range only beyond that.
            return partition.read(wanted.offset, 0, committed_only=False), partition.high_watermark
        return self.take(partition, wanted), partition.high_watermark

    def ends_wait(self, reads: fetch.Reads) -> bool:
        known = [data for tp, data in reads.items() if tp.topic in self._metadata_cache]
        return not known or any(data.error_code for data in known)

    def finish(
        self, reads: fetch.Reads, call: Call, respond: fetch.Respond
    ) -> ResponseFrame | NoResponse:
        return respond(reads)

    def take(self, partition: Partition, wanted: FetchPartition) -> LogSlice:
        return self._up_to(partition, wanted, wanted.max_bytes)

    def _up_to(self, partition: Partition, wanted: FetchPartition, max_bytes: int) -> LogSlice:
        committed_only = self._replica_id < 0
        return partition.read(wanted.offset, max_bytes, committed_only=committed_only)


class DownConvertingReader(UnlimitedReader):
    """Reads for consumers that know only magic 0."""

    def finish(
        self, reads: fetch.Reads, call: Call, respond: fetch.Respond
    ) -> ResponseFrame | NoResponse:
        """NoResponse if there are many sets, or a thread must examine large ones or convert the
        first messages of one."""
        old = DownConvertedResponse(reads, self._runtime, call.host)

        def sized() -> ResponseFrame | NoResponse:
            if old.find_sizes(call.answering(lambda: call.respond_encoded(respond(old.sets)))):
                return respond(old.sets)
            return NoResponse.PARKED

        def look() -> ResponseFrame | NoResponse:
            self._runtime.run_native(old.convert, list(reads))
            return sized()

        def take_turns() -> ResponseFrame | NoResponse:
            for turn in yielding_batches(list(reads), self._runtime):
                old.convert(turn)
            return sized()

        found = (data.message_set for data in reads.values())
        if sum(one.size for one in found if one is not None) > LOOKED_AT_AT_ONCE_BYTES:
            return call.run_in_greenlet("Fetch", look)
        if len(reads) > PARTITIONS_PER_BATCH:
            return call.run_in_greenlet("Fetch", take_turns)
        return take_turns()


class LimitedReader(UnlimitedReader):
    """Reads with a limit for the whole response.

    `_left` is the rest of that limit, in bytes. While nothing was read (`_is_empty`) the next
    message may exceed every limit.
    """

    def __init__(self, broker: BrokerContext, request: FetchRequest) -> None:
        super().__init__(broker, request)
        self._left = request.max_bytes
        self._is_empty = True

    def read_partition(
        self, manager: ReplicaManager, tp: TopicPartition, wanted: FetchPartition
    ) -> tuple[LogSlice, int]:
        try:
            return super().read_partition(manager, tp, wanted)
        finally:
            self._left = max(0, self._left)  # 0.10: a negative limit fails only what is read first

    def take(self, partition: Partition, wanted: FetchPartition) -> LogSlice:
        limit = min(wanted.max_bytes, self._left)
        found = self._up_to(partition, wanted, limit)
        if found.size == limit and not found.has_whole_entry:
            # A message that does not fit: whole in an empty response, else left out.
            head = self._up_to(partition, wanted, ENTRY_HEADER.size).bytes()
            if len(head) == ENTRY_HEADER.size:
                whole = ENTRY_HEADER.size + ENTRY_HEADER.unpack(head)[1]
                if whole > limit:
                    found = self._up_to(partition, wanted, whole if self._is_empty else 0)
        if found.size:
            self._is_empty = False
            self._left = max(0, self._left - found.size)
        return found


def handle(broker: BrokerContext, request: FetchRequest, call: Call) -> ResponseFrame | NoResponse:
    return fetch.handle(broker, request, call, reading_of(broker, request))


def complete(
    broker: BrokerContext, request: FetchRequest, call: Call
) -> ResponseFrame | NoResponse:
    """Like fetch.complete."""
    return fetch.complete(broker, request, call, reading_of(broker, request))


def reading_of(
    broker: BrokerContext, request: FetchRequest
) -> Callable[[FetchRequest], UnlimitedReader]:
    """The way to read a request of its version; puts its topics in order."""
    # A stable sort: all others keep the order of the request.
    request.topics.sort(key=lambda topic: topic.topic not in broker.metadata_cache)
    if request.version < MAGIC_1_VERSION:
        return partial(DownConvertingReader, broker)
    if request.version < LIMITED_VERSION:
        return partial(UnlimitedReader, broker)
    return partial(LimitedReader, broker)
