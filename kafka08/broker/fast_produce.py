"""FastProduce: Produce of any number of partitions, without objects for topics and partitions.

The kernel cuts the request into sets, appends them from the receive buffer and writes the response.
A set that kernel.append_plain_sets skips goes through Partition.append. handlers.produce handles
the rest, and gets the results of the sets that were appended:

    an unknown or repeated partition
    an internal topic
    a set that needs a native job, or queues behind one (append_queue)
    a set that is refused
    more than PARTITIONS_AT_ONCE partitions, to which it appends in turns
    acks other than -1, 0 and 1

With acks -1 the response is written at once, and sent when the replicas have everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kafka08 import kernel
from kafka08.broker.append_queue import needs_queue
from kafka08.broker.call import Call
from kafka08.broker.delayed_produce import (
    AppendErrors,
    AppendResult,
    AppendResults,
    with_errors,
)
from kafka08.broker.handlers import produce
from kafka08.broker.turns import PARTITIONS_AT_ONCE
from kafka08.broker.unfinished import NOTHING_DONE, Unfinished
from kafka08.errors import ApiError
from kafka08.kernel.types import NO_TIMESTAMP, Buffer
from kafka08.protocol.codec import decode_header
from kafka08.protocol.produce import ProduceRequest

if TYPE_CHECKING:
    from kafka08.broker.context import BrokerContext
    from kafka08.broker.partition import Partition
    from kafka08.network.server_connection import ResponseFrame, ServerConnection
    from kafka08.structs import TopicPartition

ALL_IN_SYNC: Final = -1
LEGAL_ACKS: Final = (1, ALL_IN_SYNC, 0)


class FastProduce:
    """Handles payloads of Produce requests. Raises StorageError like Partition.append."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._replica_manager = broker.replica_manager
        self._partitions = broker.replica_manager.by_topic_name
        self._time_ms = broker.runtime.time_ms

    def __call__(
        self, payload: memoryview, link: ServerConnection
    ) -> ResponseFrame | Unfinished | None:
        """The response, None if the request is parked, or Unfinished with what the handler must
        finish. Never switches."""
        request = kernel.read_produce(payload, self._partitions)
        if request is None:
            return NOTHING_DONE
        acks, timeout_ms, found, sets = request
        if acks not in LEGAL_ACKS or len(found) > PARTITIONS_AT_ONCE:
            return NOTHING_DONE
        now_ms = self._time_ms()
        segments = [partition.segment_for(acks) for partition in found]
        base_offsets = kernel.append_plain_sets(segments, sets, now_ms)
        appended = names, firsts, ends, times_ms = Appended([], [], [], [])
        for partition, segment, data, base_offset in zip(
            found, segments, sets, base_offsets, strict=True
        ):
            if base_offset < 0 or segment is None:
                append_alone(partition, data, acks, now_ms, appended)
                continue
            end_offset = segment.end_offset
            partition.note_appended(end_offset - base_offset, len(data), end_offset)
            if segment.index_is_due:
                segment.index_last_set()
            names.append(partition.topic_partition)
            firsts.append(base_offset)
            ends.append(end_offset)
            times_ms.append(NO_TIMESTAMP)
        self._replica_manager.wake_all(appended.names)
        if len(appended.names) < len(found):
            return Unfinished(appended.results())
        if acks == 0:
            return b""
        answer = kernel.write_produced(payload, appended.base_offsets, appended.times_ms)
        if acks == ALL_IN_SYNC and any(len(partition.maximal_isr) > 1 for partition in found):
            return self._wait(payload, link, timeout_ms, appended, answer)
        return answer

    def _wait(
        self,
        payload: memoryview,
        link: ServerConnection,
        timeout_ms: int,
        appended: Appended,
        answer: bytes,
    ) -> ResponseFrame | None:
        """Park the request until the replicas have everything."""
        header = decode_header(payload)
        request = ProduceRequest(ALL_IN_SYNC, timeout_ms, [], version=header.version)
        call = Call(self._broker, link, header, request, produce.refuse)

        def done(errors: AppendErrors) -> None:
            if errors:
                produce.finish(request, with_errors(appended.results(), errors), call)
            else:
                call.answer_encoded(answer)

        pending = dict(zip(appended.names, appended.end_offsets, strict=True))
        self._replica_manager.appender.await_acks(ALL_IN_SYNC, pending, timeout_ms, done, call)
        return None


class Appended(NamedTuple):
    """The appended sets: for each its partition, its first offset, the offset after it, and its
    LogAppendTime (-1 if none)."""

    names: list[TopicPartition]
    base_offsets: list[int]
    end_offsets: list[int]
    times_ms: list[int]

    def results(self) -> AppendResults:
        """The same in the form of handlers.produce."""
        return {
            tp: AppendResult(base_offset, end_offset, log_append_time_ms=time_ms)
            for tp, base_offset, end_offset, time_ms in zip(*self, strict=True)
        }


def append_alone(
    partition: Partition, data: Buffer, acks: int, now_ms: int, appended: Appended
) -> None:
    """Append a set that the kernel skipped, unless the handler must take it."""
    if partition.append_queue is None and not partition.is_internal:
        if needs_queue(partition, data):
            return
        try:
            info = partition.append(data, acks, now_ms)
        except ApiError:
            return  # nothing was appended; the handler meets the same error
        appended.names.append(partition.topic_partition)
        appended.base_offsets.append(info.first_offset)
        appended.end_offsets.append(info.last_offset + 1)
        appended.times_ms.append(info.log_append_time_ms)
