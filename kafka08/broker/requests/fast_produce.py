"""FastProduce: Produce of any number of partitions, without objects for topics and partitions.

The kernel reads the request, appends its sets from the receive buffer as the rules of
`replica_state` allow, and encodes the response. Sets that it leaves are appended by the Appender.
If there is an error to respond with, or a set must wait for a native job (inline_appends), it also
finishes the request, from the sets and results so far.

handlers.produce decodes and handles a request with

    an unknown or repeated partition
    more than PARTITIONS_AT_ONCE partitions, which it handles in batches
    acks other than -1, 0 and 1
    a set that is not one record batch, or that its transaction does not let pass (version 3)

With acks -1 the response is encoded at once, and sent when the replicas have all messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

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
from kafka08.protocol.codec import VERSION_LOW_BYTE, decode_header
from kafka08.protocol.produce import (
    MAGIC_2_VERSION,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE
from kafka08.structs import NO_OFFSET

if TYPE_CHECKING:
    from kafka08.broker.replica.partition import Partition
    from kafka08.broker.requests.context import BrokerContext
    from kafka08.kernel.types import Buffer
    from kafka08.network.server_connection import RequestConnection, ResponseFrame
    from kafka08.structs import TopicPartition

ALL_IN_SYNC: Final = -1
LENGTH: Final = Struct(">h")
CLIENT_ID_POSITION: Final = 8
"""Behind key, version and correlation id."""
NULL_LENGTH: Final = -1
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
        """The response, None if the request is parked, or Fallback, with nothing done, if the
        handler must take it. Never switches."""
        self.count += 1
        request = kernel.read_produce(payload, self._partitions, PARTITIONS_AT_ONCE)
        if request is None or not -1 <= request[0] <= 1:
            return FALL_BACK
        acks, timeout_ms, found, starts, sizes = request
        if payload[VERSION_LOW_BYTE] >= MAGIC_2_VERSION:
            transactional_id = transactional_id_of(payload)
            if transactional_id is not None:
                sets = [payload[at : at + size] for at, size in zip(starts, sizes, strict=True)]
                if not self._are_in_transaction(transactional_id, found, sets):
                    return FALL_BACK
        base_offsets = append_sets(payload, found, starts, sizes, acks, self._time_ms())
        if NO_OFFSET in base_offsets:
            sets = [payload[at : at + size] for at, size in zip(starts, sizes, strict=True)]
            return self._append_rest(payload, link, acks, timeout_ms, found, sets, base_offsets)
        self._purgatories.wake_fetches([one.topic_partition for one in found])
        if acks == 0:
            return b""
        response = kernel.write_produced(payload, base_offsets)
        pending = unacknowledged(found) if acks == ALL_IN_SYNC else None
        if not pending:
            return response
        results = partial(results_of, found, base_offsets)
        return self._wait(payload, link, timeout_ms, pending, results, response)

    def _are_in_transaction(
        self, transactional_id: str, found: list[Partition], sets: list[memoryview]
    ) -> bool:
        """Whether each partition is in the transaction of its set."""
        names = [one.topic_partition for one in found]
        begin = self._broker.transaction_checks.begin
        return not begin(transactional_id, dict(zip(names, sets, strict=True)))

    def _append_rest(
        self,
        payload: memoryview,
        link: RequestConnection,
        acks: int,
        timeout_ms: int,
        found: list[Partition],
        sets: list[memoryview],
        base_offsets: list[int],
    ) -> ResponseFrame | None:
        """Append the sets that have no offset yet, and respond."""
        append_now, inline = self._broker.appender.append_now, InlineAppends()
        results: AppendResults = {}
        pending: dict[TopicPartition, int] = {}
        succeeded = True
        for partition, data, base_offset in zip(found, sets, base_offsets, strict=True):
            name, result = partition.topic_partition, None
            if base_offset >= 0:
                # The log still ends with this set: a partition occurs once, and nothing switches.
                result = AppendResult(base_offset, partition.leader_log().log_end_offset)
            elif not partition.is_internal:  # which some clients may append to
                result = append_now(inline, name, data, acks)
            if result is None or result.error is not None:
                succeeded = False
            elif partition.high_watermark < result.next_offset:
                pending[name] = result.next_offset
            if result is not None:
                results[name] = result
        if not succeeded:
            by_name = {one.topic_partition: data for one, data in zip(found, sets, strict=True)}
            request, call = self._call(payload, link, acks, timeout_ms, by_name)
            return call.answer(
                lambda: produce.append(self._broker, request, call, by_name, results)
            )
        self._purgatories.wake_fetches(list(results))
        if acks == 0:
            return b""
        response = kernel.write_produced(
            payload,
            [result.base_offset for result in results.values()],
            [result.log_append_time_ms for result in results.values()],
        )
        if acks != ALL_IN_SYNC or not pending:
            return response
        return self._wait(payload, link, timeout_ms, pending, lambda: results, response)

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
                request, call = self._call(head, link, ALL_IN_SYNC, timeout_ms, {})
                produce.finish(request, with_errors(results(), errors), call)
            else:
                link.send_response(response)

        waits = self._purgatories.for_produce(ALL_IN_SYNC)
        find = self._replica_manager.partition
        wait = DelayedProduce(find, ALL_IN_SYNC, pending, answering(link, done))
        waits.watch(wait, list(pending), timeout_ms)
        link.on_close = partial(waits.abandon, wait)
        return None

    def _call(
        self,
        head: Buffer,
        link: RequestConnection,
        acks: int,
        timeout_ms: int,
        sets: Mapping[TopicPartition, Buffer],
    ) -> tuple[ProduceRequest, Call]:
        """The request as the handler sees it, with these sets. `head`: at least its header."""
        header = decode_header(head)
        topics: dict[str, list[ProducePartition]] = {}
        for name, data in sets.items():
            topics.setdefault(name.topic, []).append(ProducePartition(name.partition, data))
        request = ProduceRequest(
            acks,
            timeout_ms,
            [ProduceTopic(topic, partitions) for topic, partitions in topics.items()],
            version=header.version,
        )
        return request, Call(self._broker, link, header, request, produce.refuse)


def results_of(found: list[Partition], base_offsets: list[int]) -> AppendResults:
    """The results of sets that the kernel has appended."""
    return {
        partition.topic_partition: AppendResult(base_offset, NO_OFFSET)
        for partition, base_offset in zip(found, base_offsets, strict=True)
    }


def transactional_id_of(payload: memoryview) -> str | None:
    """The transactional id of a Produce request of version 3 that the kernel could read; it comes
    behind the client id."""
    (client_id_bytes,) = LENGTH.unpack_from(payload, CLIENT_ID_POSITION)
    at = CLIENT_ID_POSITION + LENGTH.size + max(0, client_id_bytes)
    (size,) = LENGTH.unpack_from(payload, at)
    at += LENGTH.size
    return None if size == NULL_LENGTH else str(payload[at : at + size], "utf-8", "replace")
