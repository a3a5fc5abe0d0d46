"""FastProduce: Produce of any number of partitions, without objects for topics and partitions.

The kernel reads the request, appends its sets from the receive buffer and encodes the response
(kernel.append_produced). Sets that it does not append go through Partition.append. handlers.produce
handles the rest, and gets the results of the appended sets:

    an unknown or repeated partition
    an internal topic
    a set that needs a native job, or queues behind one (append_queue)
    an invalid set
    more than PARTITIONS_AT_ONCE partitions, which it handles in batches
    acks other than -1, 0 and 1

With acks -1 the response is encoded at once, and sent when the replicas have all messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka08 import kernel
from kafka08.broker.append_queue import needs_queue
from kafka08.broker.call import Call
from kafka08.broker.delayed_produce import (
    AppendErrors,
    AppendResult,
    AppendResults,
    DelayedProduce,
    with_errors,
)
from kafka08.broker.fallback import FALL_BACK, Fallback
from kafka08.broker.handlers import produce
from kafka08.broker.yielding import PARTITIONS_AT_ONCE
from kafka08.errors import ApiError
from kafka08.kernel.types import NO_TIMESTAMP, Buffer
from kafka08.protocol.codec import decode_header
from kafka08.protocol.produce import ProduceRequest

if TYPE_CHECKING:
    from kafka08.broker.context import BrokerContext
    from kafka08.broker.partition import Partition
    from kafka08.log.slices import AppendInfo
    from kafka08.network.server_connection import ResponseFrame, ServerConnection
    from kafka08.structs import TopicPartition

ALL_IN_SYNC: Final = -1


class FastProduce:
    """Handles payloads of Produce requests. Raises StorageError like Partition.append."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._replica_manager = broker.replica_manager
        self._partitions = broker.replica_manager.by_topic_name
        self._time_ms = broker.runtime.time_ms

    def __call__(
        self, payload: memoryview, link: ServerConnection
    ) -> ResponseFrame | Fallback | None:
        """The response, None if the request is parked, or Fallback with what the handler must
        finish. Never switches."""
        now_ms = self._time_ms()
        request = kernel.append_produced(payload, self._partitions, now_ms, PARTITIONS_AT_ONCE)
        if request is None:
            return FALL_BACK
        acks, timeout_ms, found, base_offsets, unappended, due, response = request
        for segment in due:
            segment.index_last_set()
        if response is not None:
            names = [one.topic_partition for one in found]
            self._replica_manager.wake_fetches(names)
            if acks != ALL_IN_SYNC or not must_wait(found):
                return response if acks else b""
            end_offsets = [one.leader_log().log_end_offset for one in found]
            times_ms = [NO_TIMESTAMP] * len(found)
            appended = Appended(names, base_offsets, end_offsets, times_ms)
        else:
            appended = append_remaining(found, base_offsets, unappended, acks, now_ms)
            self._replica_manager.wake_fetches(appended.names)
            if len(appended.names) < len(found):
                return Fallback(appended.results())
            response = kernel.write_produced(payload, appended.base_offsets, appended.times_ms)
            if acks != ALL_IN_SYNC or not must_wait(found):
                return response if acks else b""
        return self._wait(payload, link, timeout_ms, appended, response)

    def _wait(
        self,
        payload: memoryview,
        link: ServerConnection,
        timeout_ms: int,
        appended: Appended,
        response: bytes,
    ) -> ResponseFrame | None:
        """Park the request until the replicas have everything."""
        header = decode_header(payload)

        def done(errors: AppendErrors) -> None:
            if errors:
                request = ProduceRequest(ALL_IN_SYNC, timeout_ms, [], version=header.version)
                call = Call(self._broker, link, header, request, produce.refuse)
                produce.finish(request, with_errors(appended.results(), errors), call)
            else:
                link.on_close = None
                link.send_response(response)

        manager = self._replica_manager
        pending = dict(zip(appended.names, appended.end_offsets, strict=True))
        wait = DelayedProduce(manager, ALL_IN_SYNC, pending, done)
        waits = manager.produce_purgatory
        if not waits.add(wait, appended.names, timeout_ms):
            link.on_close = partial(waits.abandon, wait)
        return None


def must_wait(partitions: Sequence[Partition]) -> bool:
    """Whether the HW of one of them waits for other replicas."""
    return any(len(partition.maximal_isr) > 1 for partition in partitions)


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


def append_remaining(
    found: Sequence[Partition],
    base_offsets: Sequence[int],
    unappended: Sequence[tuple[int, memoryview]],
    acks: int,
    now_ms: int,
) -> Appended:
    """Append the sets that the kernel has not appended, as (index, set), except those for the
    handler. Returns all appended sets of the request."""
    infos = {number: append_alone(found[number], data, acks, now_ms) for number, data in unappended}
    appended = Appended([], [], [], [])
    for number, (partition, base_offset) in enumerate(zip(found, base_offsets, strict=True)):
        if base_offset >= 0:
            end_offset, time_ms = partition.leader_log().log_end_offset, NO_TIMESTAMP
        elif (info := infos[number]) is not None:
            base_offset, end_offset = info.first_offset, info.last_offset + 1
            time_ms = info.log_append_time_ms
        else:
            continue
        appended.names.append(partition.topic_partition)
        appended.base_offsets.append(base_offset)
        appended.end_offsets.append(end_offset)
        appended.times_ms.append(time_ms)
    return appended


def append_alone(partition: Partition, data: Buffer, acks: int, now_ms: int) -> AppendInfo | None:
    """Append a set that is not the rule; None if it is left to the handler."""
    if partition.append_queue is not None or partition.is_internal or needs_queue(partition, data):
        return None
    try:
        return partition.append(data, acks, now_ms)
    except ApiError:
        return None  # nothing was appended; the handler meets the same error
