"""Fetch: reads from partitions, at once or when there is enough.

The response is immediate if the wait is not positive, the request is empty, min_bytes can be read,
or any partition has an error; otherwise the request is parked as a DelayedFetch. Consumers
(replica_id -1) read from the leader up to the HW, followers (>= 0) up to the LEO. A follower's
offset moves HW and ISR before the response, which has the HW from before; a broker that is not
assigned gets -1 for everything, and one whose offset may be of an earlier leadership gets 6 once.
Message sets are sent from their files. Source: KafkaApis.handleFetchRequest 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from kafka08.broker.purgatory.delayed_fetch import DelayedFetch
from kafka08.broker.replication.grouped_errors import GroupedErrors
from kafka08.broker.requests.call import Call, NoResponse
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import (
    ApiError,
    FileRefused,
    NotLeaderForPartition,
    OffsetOutOfRange,
    StorageError,
    UnknownError,
    UnknownTopicOrPartition,
    code_of,
)
from kafka08.protocol.fetch import (
    LIMITED_VERSION,
    NO_HIGH_WATERMARK,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
    PartitionData,
    response_pieces,
)
from kafka08.protocol.grouping import by_partition
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches_if_many
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.broker.replica.partition import Partition
    from kafka08.broker.replication.replica_manager import ReplicaManager
    from kafka08.log.slices import LogSlice
    from kafka08.network.server_connection import ResponseFrame

logger = logging.getLogger(__name__)

Reads: TypeAlias = dict[TopicPartition, "PartitionData[LogSlice]"]
Sets: TypeAlias = "Mapping[TopicPartition, PartitionData[Any]]"
"""Slices, or converted sets in their place."""
Respond: TypeAlias = "Callable[[Sets], ResponseFrame]"


class FetchReader(Protocol):
    """How the partitions of one response are read, in the order of the request, and sent."""

    def read_partition(
        self, manager: ReplicaManager, tp: TopicPartition, wanted: FetchPartition, /
    ) -> tuple[LogSlice, int]:
        """Slice and HW of one partition; raises what ReplicaManager.read_from_log raises."""

    def ends_wait(self, reads: Reads, /) -> bool:
        """Whether the response is immediate because of errors."""

    def finish(self, reads: Reads, call: Call, respond: Respond, /) -> ResponseFrame | NoResponse:
        """The response that `respond` makes of the sets to send, now or later."""


class PerPartitionReader:
    """Each partition up to its own limit."""

    def __init__(self, request: FetchRequest) -> None:
        self._replica_id = request.replica_id

    def read_partition(
        self, manager: ReplicaManager, tp: TopicPartition, wanted: FetchPartition
    ) -> tuple[LogSlice, int]:
        return manager.read_from_log(tp, wanted.offset, wanted.max_bytes, self._replica_id)

    def ends_wait(self, reads: Reads) -> bool:
        return any(data.error_code for data in reads.values())

    def finish(self, reads: Reads, call: Call, respond: Respond) -> ResponseFrame:
        return respond(reads)


def handle(
    broker: BrokerContext,
    request: FetchRequest,
    call: Call,
    reading: Callable[[FetchRequest], FetchReader] = PerPartitionReader,
) -> ResponseFrame | NoResponse:
    wanted = by_partition(request.topics)
    if len(wanted) <= PARTITIONS_AT_ONCE:
        return read(broker, request, wanted, call, reading)
    return call.run_in_greenlet("Fetch", lambda: read(broker, request, wanted, call, reading))


def read(
    broker: BrokerContext,
    request: FetchRequest,
    wanted: dict[TopicPartition, FetchPartition],
    call: Call,
    reading: Callable[[FetchRequest], FetchReader],
) -> ResponseFrame | NoResponse:
    """Switches if there are more than PARTITIONS_AT_ONCE partitions."""
    first = reading(request)
    reads = read_all(broker, request, wanted, call, first)
    if request.replica_id >= 0:
        # After the reads: the response has the HWs from before.
        record_positions(broker, request.replica_id, wanted, reads, call)
    readable = sum(data.message_set.size for data in reads.values() if data.message_set is not None)
    if (
        request.max_wait_ms <= 0
        or not wanted
        or readable >= request.min_bytes
        or first.ends_wait(reads)
    ):
        return respond(broker, request, reads, call, first)
    return park(broker, request, reads, call, reading)


def record_positions(
    broker: BrokerContext,
    replica_id: int,
    wanted: dict[TopicPartition, FetchPartition],
    reads: Reads,
    call: Call,
) -> None:
    """Record a follower's positions. A partition that `doubts` its offset, or was deleted during
    the read, gets an error alone. So does one of which it is not a replica: a leftover of a dead
    broker's move would otherwise stop the replication of all others (0.8.2.2 returns the error for
    every partition of the request)."""
    refused = GroupedErrors()
    replicas: list[Partition] = []
    offsets: list[int] = []
    for topic_partition, data in reads.items():
        # An offset out of range is checked too: of an earlier leadership it is error 6, not 1.
        if data.message_set is None and data.error_code != OffsetOutOfRange.code:
            continue
        offset = wanted[topic_partition].offset
        try:
            partition = broker.replica_manager.partition(topic_partition)
            partition.check_replica(replica_id, offset)
            partition.check_connection(call.connection)
        except UnknownError as error:
            report(error, topic_partition, offset, call)
            reads[topic_partition] = without_set(topic_partition, error.code)
            continue
        except (NotLeaderForPartition, UnknownTopicOrPartition) as error:
            refused.add(topic_partition, error)
            reads[topic_partition] = without_set(topic_partition, error.code)
            continue
        if data.message_set is not None:
            replicas.append(partition)
            offsets.append(offset)
    log_refused(refused, call)
    broker.replica_manager.record_follower_fetches(replicas, offsets, replica_id)


def park(
    broker: BrokerContext,
    request: FetchRequest,
    reads: Reads,
    call: Call,
    reading: Callable[[FetchRequest], FetchReader],
) -> ResponseFrame | NoResponse:
    """Wait for more data of the partitions that were read, then read everything again."""

    def done() -> None:
        response = complete(broker, request, call, reading)
        if not isinstance(response, NoResponse):
            call.respond_encoded(response)

    starts = {
        topic_partition: data.message_set.log_offset
        for topic_partition, data in reads.items()
        if data.message_set is not None
    }
    follows = request.replica_id >= 0
    manager = broker.replica_manager
    finish = call.answering(done)
    wait = DelayedFetch(manager.partition, starts, request.min_bytes, finish, from_follower=follows)
    waits = manager.purgatories.for_fetch(from_follower=follows)
    if not waits.add(wait, starts, request.max_wait_ms):
        call.when_closed(lambda: waits.abandon(wait))
    return NoResponse.PARKED


def complete(
    broker: BrokerContext,
    request: FetchRequest,
    call: Call,
    reading: Callable[[FetchRequest], FetchReader] = PerPartitionReader,
) -> ResponseFrame | NoResponse:
    """The response to a parked request, with the data available now."""
    wanted = by_partition(request.topics)

    def read_again() -> ResponseFrame | NoResponse:
        last = reading(request)
        found = read_all(broker, request, wanted, call, last)
        return respond(broker, request, found, call, last)

    if len(wanted) <= PARTITIONS_AT_ONCE:
        return read_again()
    return call.run_in_greenlet("Fetch", read_again)


def respond(
    broker: BrokerContext, request: FetchRequest, reads: Reads, call: Call, reading: FetchReader
) -> ResponseFrame | NoResponse:
    """The response with all sets, which are counted."""
    if request.replica_id >= 0:
        for topic_partition, data in reads.items():
            if data.error_code:
                partition = broker.replica_manager.find(topic_partition)
                if partition is not None:
                    partition.tell(call.connection)

    def with_sets(sets: Sets) -> ResponseFrame:
        broker.replica_manager.count_out(sets, is_follower=request.replica_id >= 0)
        return encode(sets, call)

    return reading.finish(reads, call, with_sets)


def read_all(
    broker: BrokerContext,
    request: FetchRequest,
    wanted: dict[TopicPartition, FetchPartition],
    call: Call,
    reading: FetchReader,
) -> Reads:
    """Read every partition; an error of one becomes its code only. Switches if there are more than
    PARTITIONS_AT_ONCE."""
    reads: Reads = {}
    refused = GroupedErrors()
    turns = yielding_batches_if_many(list(wanted.items()), broker.runtime)
    for topic_partition, partition in chain.from_iterable(turns):
        try:
            found, high_watermark = reading.read_partition(
                broker.replica_manager, topic_partition, partition
            )
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 - becomes the partition's error code
            code = refuse_read(error, topic_partition, partition, broker, request, call, refused)
            reads[topic_partition] = without_set(topic_partition, code)
        else:
            reads[topic_partition] = PartitionData(
                topic_partition.partition, 0, high_watermark, found
            )
    log_refused(refused, call)
    return reads


def refuse_read(
    error: Exception,
    topic_partition: TopicPartition,
    wanted: FetchPartition,
    broker: BrokerContext,
    request: FetchRequest,
    call: Call,
    refused: GroupedErrors,
) -> int:
    """Count and log an error of one partition, or put it into `refused`; returns its code."""
    failure = error_for_response(error, topic_partition, broker, request)
    if isinstance(failure, FileRefused) or not isinstance(
        failure, NotLeaderForPartition | UnknownTopicOrPartition
    ):
        report(failure, topic_partition, wanted.offset, call)
    else:
        refused.add(topic_partition, failure)
    if (known := broker.replica_manager.find(topic_partition)) is not None:
        known.count_unread(failure)
    return code_of(failure)


def without_set(topic_partition: TopicPartition, error_code: int) -> PartitionData[LogSlice]:
    return PartitionData(topic_partition.partition, error_code, NO_HIGH_WATERMARK, None)


def log_refused(refused: GroupedErrors, call: Call) -> None:
    for partitions, reason in refused:
        logger.warning(
            "Fetch request with correlation id %d from client %s on %s failed due to %s",
            call.header.correlation_id,
            call.header.client_id,
            partitions,
            reason,
            extra=call.cause,
        )


def error_for_response(
    error: Exception, topic_partition: TopicPartition, broker: BrokerContext, request: FetchRequest
) -> Exception:
    """The error for the response. OffsetOutOfRange makes a consumer forget its position, so only
    the leader may send it to one. A broker that was suspended for longer than its session does not
    know its successors yet, whose logs may be longer. 0.8.2.2 sends it all the same."""
    is_consumer = request.replica_id < 0
    if (
        isinstance(error, OffsetOutOfRange)
        and is_consumer
        and broker.unconfirmed_leaderships.is_unconfirmed(topic_partition)
    ):
        return NotLeaderForPartition(
            f"{error} The ZooKeeper session of broker {broker.config.broker_id} may have expired, "
            "or has: another broker may lead"
        )
    return error


def report(error: Exception, topic_partition: TopicPartition, offset: int, call: Call) -> None:
    header = call.header
    logger.error(
        "Error when processing fetch request for partition %s offset %d from %s with correlation "
        "id %d. Possible cause: %s",
        topic_partition,
        offset,
        header.client_id,
        header.correlation_id,
        error,
        exc_info=None if isinstance(error, ApiError) else error,
        extra=call.cause,
    )


def encode(reads: Sets, call: Call) -> ResponseFrame:
    """The encoded response, with its message sets still in their files."""
    version = call.request.version
    if version >= LIMITED_VERSION:
        # The order of the request shows which partitions the limit has cut off.
        neighbours = groupby(reads.items(), key=lambda read: read[0].topic)
        in_order = [(topic, [data for _, data in group]) for topic, group in neighbours]
        return response_pieces(call.header.correlation_id, in_order, version)
    topics: dict[str, list[PartitionData[Any]]] = {}
    for topic_partition, data in reads.items():
        topics.setdefault(topic_partition.topic, []).append(data)
    return response_pieces(call.header.correlation_id, list(topics.items()), version)


def refuse(request: FetchRequest, code: int) -> FetchResponse:
    return FetchResponse(
        [
            FetchTopicResponse(
                topic.topic,
                [
                    FetchPartitionResponse(partition.partition, code, NO_HIGH_WATERMARK, b"")
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
