"""FastProduce: Produce of any number of partitions, without objects for topics and partitions.

The kernel cuts the request into sets and writes the answer; in between each set is appended where
it lies. What cannot be appended so is left to handlers.produce, with the results of what was:

    an unknown partition, or one that is named twice
    an internal topic
    a set that takes a native job, or stands behind one (append_queue)
    a set that is refused
    more than PARTITIONS_AT_ONCE partitions, which it appends to in turns

acks other than -1, 0 and 1 are left to it as well. With acks -1 the answer is written at once and
sent when the replicas have everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
from kafka08.protocol.codec import decode_header
from kafka08.protocol.produce import ProduceRequest

if TYPE_CHECKING:
    from kafka08.broker.context import BrokerContext
    from kafka08.broker.partition import Partition
    from kafka08.log.slices import AppendInfo
    from kafka08.network.server_connection import ResponseFrame, ServerConnection
    from kafka08.structs import TopicPartition

ALL_IN_SYNC: Final = -1
LEGAL_ACKS: Final = (1, ALL_IN_SYNC, 0)


class FastProduce:
    """Handles payloads of Produce requests. StorageError as Partition.append."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._replica_manager = broker.replica_manager
        self._partitions = broker.replica_manager.by_topic_name
        self._time_ms = broker.runtime.time_ms

    def __call__(
        self, payload: memoryview, link: ServerConnection
    ) -> ResponseFrame | Unfinished | None:
        """The answer, None if the request is parked, or what is left to the handler. Never
        switches."""
        request = kernel.read_produce(payload, self._partitions)
        if request is None:
            return NOTHING_DONE
        acks, timeout_ms, found, sets = request
        if acks not in LEGAL_ACKS or len(found) > PARTITIONS_AT_ONCE:
            return NOTHING_DONE
        now_ms = self._time_ms()
        appended: list[AppendInfo] = []
        done: list[Partition] = []
        names: list[TopicPartition] = []
        base_offsets: list[int] = []
        times_ms: list[int] = []
        for partition, data in zip(found, sets, strict=True):
            if (
                partition.append_queue is None
                and not partition.is_internal
                and not needs_queue(partition, data)
            ):
                try:
                    info = partition.append(data, acks, now_ms)
                except ApiError:
                    continue  # nothing was appended; the handler meets the same error
                appended.append(info)
                done.append(partition)
                names.append(partition.topic_partition)
                base_offsets.append(info.first_offset)
                times_ms.append(info.log_append_time_ms)
        self._replica_manager.wake_all(names)
        if len(done) < len(found):
            return Unfinished(results(done, appended))
        if acks == 0:
            return b""
        answer = kernel.write_produced(payload, base_offsets, times_ms)
        if acks == ALL_IN_SYNC and any(len(partition.maximal_isr) > 1 for partition in found):
            return self._wait(payload, link, timeout_ms, found, appended, answer)
        return answer

    def _wait(
        self,
        payload: memoryview,
        link: ServerConnection,
        timeout_ms: int,
        found: list[Partition],
        appended: list[AppendInfo],
        answer: bytes,
    ) -> ResponseFrame | None:
        """Park the request until the replicas have everything; the answer if they have it now."""
        header = decode_header(payload)
        request = ProduceRequest(ALL_IN_SYNC, timeout_ms, [], version=header.version)
        call = Call(self._broker, link, header, request, produce.refuse)

        def done(errors: AppendErrors) -> None:
            if errors:
                produce.finish(request, with_errors(results(found, appended), errors), call)
            else:
                call.answer_encoded(answer)

        pending = {
            partition.topic_partition: info.last_offset + 1
            for partition, info in zip(found, appended, strict=True)
        }
        self._replica_manager.appender.await_acks(ALL_IN_SYNC, pending, timeout_ms, done, call)
        return None


def results(partitions: list[Partition], appended: list[AppendInfo]) -> AppendResults:
    """The same as handlers.produce has it."""
    return {
        partition.topic_partition: AppendResult(
            info.first_offset, info.last_offset + 1, log_append_time_ms=info.log_append_time_ms
        )
        for partition, info in zip(partitions, appended, strict=True)
    }
