"""FastProduce: Produce of any number of partitions, without objects for topics and partitions.

The kernel reads the request, appends its sets from the receive buffer as the rules of
`replica_state` allow, and encodes the response. Sets that it does not append go through
Partition.append. handlers.produce handles the rest, and gets the results of the appended sets:

    an unknown or repeated partition
    an internal topic
    a set that needs a native job, or queues behind one (inline_appends)
    the responses to an invalid set
    more than PARTITIONS_AT_ONCE partitions, which it handles in batches
    acks other than -1, 0 and 1

With acks -1 the response is encoded at once, and sent when the replicas have all messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka08 import kernel
from kafka08.broker.appends.inline_appends import InlineAppends
from kafka08.broker.purgatory.delayed_produce import (
    AppendErrors,
    AppendResult,
    AppendResults,
    DelayedProduce,
    with_errors,
)
from kafka08.broker.replica.replica_state import append_sets, unacknowledged
from kafka08.broker.requests.call import Call, answering
from kafka08.broker.requests.fallback import FALL_BACK, Fallback
from kafka08.broker.requests.handlers import produce
from kafka08.errors import ApiError
from kafka08.kernel.types import NO_TIMESTAMP, Buffer
from kafka08.protocol.codec import decode_header
from kafka08.protocol.produce import ProduceRequest
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE
from kafka08.structs import NO_OFFSET

if TYPE_CHECKING:
    from kafka08.broker.replica.partition import Partition
    from kafka08.broker.requests.context import BrokerContext
    from kafka08.log.slices import AppendInfo
    from kafka08.network.server_connection import RequestConnection, ResponseFrame
    from kafka08.structs import TopicPartition

ALL_IN_SYNC: Final = -1
HEAD_BYTES: Final = 256
"""The part of a parked request that is kept for its header: a log line cuts a longer client id."""


class FastProduce:
    """Handles payloads of Produce requests. Raises StorageError like Partition.append.

    count   of the requests, with those that it left to the handler
    """

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._replica_manager = broker.replica_manager
        self._purgatories = broker.replica_manager.purgatories
        self._partitions = broker.replica_manager.by_topic_name
        self._time_ms = broker.runtime.time_ms
        self.count = 0

    def __call__(
        self, payload: memoryview, link: RequestConnection
    ) -> ResponseFrame | Fallback | None:
        """The response, None if the request is parked, or Fallback with what the handler must
        finish. Never switches."""
        self.count += 1
        request = kernel.read_produce(payload, self._partitions, PARTITIONS_AT_ONCE)
        if request is None or not -1 <= request[0] <= 1:
            return FALL_BACK
        acks, timeout_ms, found, starts, sizes = request
        now_ms = self._time_ms()
        base_offsets = append_sets(payload, found, starts, sizes, acks, now_ms)
        appended = pending = None
        unappended = [
            (number, payload[starts[number] : starts[number] + sizes[number]])
            for number, base_offset in enumerate(base_offsets)
            if base_offset < 0
        ]
        if not unappended:
            self._purgatories.wake_fetches([one.topic_partition for one in found])
            response = kernel.write_produced(payload, base_offsets)
            if acks == ALL_IN_SYNC:
                pending = unacknowledged(found)
        else:
            appended = self._append_remaining(found, base_offsets, unappended, acks, now_ms)
            # The handler gets these results: no set must be appended again.
            if len(appended.names) < len(found):
                return Fallback(appended.results())
            self._purgatories.wake_fetches(appended.names)
            response = kernel.write_produced(payload, appended.base_offsets, appended.times_ms)
            if acks == ALL_IN_SYNC:
                pending = appended.pending(found)
        if acks == 0:
            return b""
        if not pending:
            return response
        results = partial(results_of, found, base_offsets) if appended is None else appended.results
        return self._wait(payload, link, timeout_ms, pending, results, response)

    def _append_remaining(
        self,
        found: Sequence[Partition],
        base_offsets: Sequence[int],
        unappended: Sequence[tuple[int, memoryview]],
        acks: int,
        now_ms: int,
    ) -> Appended:
        """Append the sets that the kernel has not appended, as (index, set), except those for the
        handler. Returns all appended sets of the request."""
        inline = InlineAppends()
        appended = Appended([], [], [], [], {})
        infos = {
            number: self._append_alone(inline, found[number], data, acks, now_ms, appended.refused)
            for number, data in unappended
        }
        for number, (partition, base_offset) in enumerate(zip(found, base_offsets, strict=True)):
            if base_offset >= 0:
                # The log still ends with this set: a partition occurs once, and nothing switches.
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

    def _append_alone(
        self,
        inline: InlineAppends,
        partition: Partition,
        data: Buffer,
        acks: int,
        now_ms: int,
        refused: AppendResults,
    ) -> AppendInfo | None:
        """Append a set that the kernel left; None if it is refused, or left to the handler. A set
        that was refused must not be appended again: its bytes may have got their timestamps."""
        if partition.is_internal:
            return None
        try:
            return inline.append(partition, data, acks, now_ms)
        except ApiError as error:
            name = partition.topic_partition
            refused[name] = self._broker.appender.refused_result(name, error, len(data))
            return None

    def _wait(
        self,
        payload: memoryview,
        link: RequestConnection,
        timeout_ms: int,
        pending: dict[TopicPartition, int],
        results: Callable[[], AppendResults],
        response: bytes,
    ) -> ResponseFrame | None:
        """Park the request until the replicas have everything before the `pending` offsets.
        `results`: for its response if one of them has an error then."""
        head = bytes(payload[:HEAD_BYTES])

        def done(errors: AppendErrors) -> None:
            if errors:
                header = decode_header(head)
                request = ProduceRequest(ALL_IN_SYNC, timeout_ms, [], version=header.version)
                call = Call(self._broker, link, header, request, produce.refuse)
                produce.finish(request, with_errors(results(), errors), call)
            else:
                link.send_response(response)

        waits = self._purgatories.for_produce(ALL_IN_SYNC)
        find = self._replica_manager.partition
        wait = DelayedProduce(find, ALL_IN_SYNC, pending, answering(link, done))
        waits.watch(wait, list(pending), timeout_ms)
        link.on_close = partial(waits.abandon, wait)
        return None


def results_of(found: Sequence[Partition], base_offsets: Sequence[int]) -> AppendResults:
    """The results of sets that the kernel has appended."""
    return {
        partition.topic_partition: AppendResult(base_offset, NO_OFFSET)
        for partition, base_offset in zip(found, base_offsets, strict=True)
    }


class Appended(NamedTuple):
    """The appended sets: for each its partition, its first offset, the offset after it, and its
    LogAppendTime (-1 if none). `refused` are the results of others that have an error."""

    names: list[TopicPartition]
    base_offsets: list[int]
    end_offsets: list[int]
    times_ms: list[int]
    refused: AppendResults

    def results(self) -> AppendResults:
        """All of them in the form of handlers.produce."""
        appended = {
            tp: AppendResult(base_offset, end_offset, log_append_time_ms=time_ms)
            for tp, base_offset, end_offset, time_ms in zip(*self[:4], strict=True)
        }
        return appended | self.refused

    def pending(self, found: Sequence[Partition]) -> dict[TopicPartition, int]:
        """The end offsets that the HWs of their partitions have not reached."""
        return {
            tp: end_offset
            for tp, end_offset, partition in zip(self.names, self.end_offsets, found, strict=True)
            if partition.high_watermark < end_offset
        }
