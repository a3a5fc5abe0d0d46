"""Appender: appends message sets to partitions, and reports when enough replicas have them.

    append            a set for each of several partitions
    append_now        one set, if that takes little time
    append_internal   records of coordinators, as one set for an internal topic
    append_own        a batch that the broker makes for the end of a log, of a transaction
    await_acks        only the wait for the replicas

Source: kafka.server.ReplicaManager.appendMessages 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kafka08 import kernel
from kafka08.broker.appends.append_queue import AppendQueue, OwnAppend
from kafka08.broker.appends.inline_appends import InlineAppends
from kafka08.broker.purgatory.delayed_produce import (
    AppendErrors,
    AppendResult,
    AppendResults,
    DelayedProduce,
    with_errors,
)
from kafka08.broker.purgatory.purgatory import WhenClosed
from kafka08.broker.replica import replica_state
from kafka08.broker.replica.partition import Partition
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.errors import (
    ApiError,
    FileRefused,
    InvalidTopic,
    NotLeaderForPartition,
    Refusal,
    StorageError,
)
from kafka08.kernel.types import NO_TIMESTAMP, Messages
from kafka08.log.slices import AppendInfo
from kafka08.log_limit import caused_by
from kafka08.protocol.message_set import pack
from kafka08.protocol.types import Buffer
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches
from kafka08.structs import INTERNAL_TOPICS, NO_OFFSET, TopicPartition

logger = logging.getLogger(__name__)


class Appender:
    """Appends to one broker's partitions. Only a large `append` switches."""

    def __init__(self, replica_manager: ReplicaManager, runtime: BrokerRuntime) -> None:
        self._replica_manager = replica_manager
        self._purgatories = replica_manager.purgatories
        self._runtime = runtime
        self._queues: dict[Partition, AppendQueue] = {}
        """Of the partitions that have appends in a queue."""

    def append(
        self,
        sets: Mapping[TopicPartition, Buffer],
        *,
        required_acks: int,
        timeout_ms: float,
        done: Callable[[AppendResults], object],
        appended: AppendResults | None = None,
        when_closed: WhenClosed | None = None,
        internal_topics_allowed: bool = False,
    ) -> None:
        """Append one set to each partition; calls `done` with all results once the acks arrived.

        `done` is called in the hub, maybe before this returns, with one AppendResult per partition.
        With acks 0 or 1 it needs the local appends only; with negative acks the whole ISR, with
        n > 1 n in-sync replicas, or the timeout (RequestTimedOut, though appended). The sets' bytes
        are changed in place and not used after this returns. Internal topics are refused
        (InvalidTopic) unless allowed. Switches if there are more than PARTITIONS_AT_ONCE sets.

        `appended`: results of `sets` that have been appended or refused already; what waits for
        them is woken here, after the others are appended. If the client goes away first, the wait
        for acks is abandoned.
        """
        earlier = appended or {}
        results: AppendResults = {}
        waits = required_acks not in {0, 1}
        led_until = {tp: self._led_until(tp) for tp in earlier} if waits else {}

        def note(topic_partition: TopicPartition, result: AppendResult) -> None:
            results[topic_partition] = result
            if len(results) == len(sets):
                in_order = {tp: results[tp] for tp in sets}
                if waits:
                    self._wait(in_order, led_until, required_acks, timeout_ms, done, when_closed)
                else:
                    done(in_order)

        def take(now: AppendResults) -> None:
            self._purgatories.wake_all([tp for tp, one in now.items() if one.error is None])
            for tp, result in now.items():
                note(tp, result)

        if not sets:
            done(results)
        append_one = partial(self._append_one, internal=internal_topics_allowed)
        left = [tp for tp in sets if tp not in earlier]
        for turn in yielding_batches(left, self._runtime, PARTITIONS_AT_ONCE):
            if waits:
                # Before the append: the number of the leadership in which it is made.
                led_until.update((tp, self._led_until(tp)) for tp in turn)
            inline = InlineAppends()
            now = {
                tp: result
                for tp in turn
                if (result := append_one(inline, tp, sets[tp], required_acks, note))
            }
            take(earlier | now)
            earlier = {}
        if earlier:
            take(earlier)

    def append_internal(
        self,
        topic_partition: TopicPartition,
        records: Messages,
        *,
        codec: int,
        required_acks: int,
        timeout_ms: float,
        done: Callable[[AppendResult], object],
    ) -> None:
        """Append records of the broker itself, as one set of an internal topic, compressed with
        `codec` unless that is 0; from 0.10.2 on with the time of the append."""
        manager = self._replica_manager
        partition = manager.find(topic_partition)
        if partition is not None and not codec:
            result = self._append_records(partition, records, required_acks)
            if result is not None:
                # Alone in the ISR, the leader's append has raised the HW: there is nothing to wait
                # for.
                is_alone = len(partition.maximal_isr) == 1
                if required_acks in {0, 1} or (required_acks < 0 and is_alone):
                    done(result)
                else:
                    self._await_internal(topic_partition, result, required_acks, timeout_ms, done)
                return

        def note(_: TopicPartition, result: AppendResult) -> None:
            if result.error is None:
                self._await_internal(topic_partition, result, required_acks, timeout_ms, done)
            else:
                done(result)

        message_set = self._encode(topic_partition, records, codec)
        appended = self._append_one(
            InlineAppends(), topic_partition, message_set, required_acks, note, internal=True
        )
        if appended is not None:
            if appended.error is None:
                self._purgatories.wake(topic_partition)
            note(topic_partition, appended)

    def append_own(
        self,
        topic_partition: TopicPartition,
        append_own: OwnAppend,
        *,
        timeout_ms: float,
        done: Callable[[AppendResult], object],
        appended: Callable[[int], object] | None = None,
    ) -> None:
        """Append what the broker has made, and call `done` once the in-sync replicas have it, maybe
        before this returns. `appended` is called before that with its first offset, also if the
        replicas take too long."""

        def written(info: AppendInfo | None, error: Exception | None) -> None:
            if error is not None:
                done(self.refused_result(topic_partition, error, 0))
                return
            assert info is not None
            result = result_of(info)
            if appended is not None:
                appended(result.base_offset)
            self._purgatories.wake(topic_partition)
            self._await_internal(topic_partition, result, -1, timeout_ms, done)

        try:
            partition = self._replica_manager.partition(topic_partition)
            if partition.is_queued or partition.owes_flushes:
                self._queue_of(partition).submit_own(append_own, written)
                return
            info = partition.append_own(append_own)
        except Exception as error:  # noqa: BLE001 - those who wait for the append get it
            done(self.refused_result(topic_partition, error, 0))
        else:
            written(info, None)

    def _append_records(
        self, partition: Partition, records: Messages, required_acks: int
    ) -> AppendResult | None:
        """The result, also for an error; None if the records must be appended by `_append_one`."""
        try:
            now_ms = self._runtime.time_ms()
            base_offset = replica_state.append_records(partition, records, required_acks, now_ms)
            if base_offset < 0:
                return None
        except Exception as error:  # noqa: BLE001 - those who wait for the append get it
            return self.refused_result(partition.topic_partition, error, 0)
        self._purgatories.wake_fetches((partition.topic_partition,))
        return AppendResult(base_offset, base_offset + len(records))

    def _encode(self, topic_partition: TopicPartition, records: Messages, codec: int) -> bytearray:
        """The records as a set in the topic's format."""
        config = self._replica_manager.log_manager.config_of(topic_partition.topic)
        magic, count = config.magic, len(records)
        now_ms = self._runtime.time_ms() if magic else NO_TIMESTAMP
        keys: list[Any] = [key for key, _ in records]
        values: list[Any] = [value for _, value in records]
        plain = kernel.build_from_lists(keys, values, 0, count, magic, now_ms if magic else None)
        return pack(plain, codec, count - 1, magic, now_ms) if codec else plain

    def _await_internal(
        self,
        topic_partition: TopicPartition,
        result: AppendResult,
        required_acks: int,
        timeout_ms: float,
        done: Callable[[AppendResult], object],
    ) -> None:
        """Call `done` with the result of an append once enough replicas have it."""
        if self._is_settled(topic_partition, result.next_offset, required_acks):
            done(result)
            return

        def acknowledged(errors: AppendErrors) -> None:
            done(with_errors({topic_partition: result}, errors)[topic_partition])

        pending = {topic_partition: result.next_offset}
        self.await_acks(required_acks, pending, timeout_ms, acknowledged, None)

    def _append_one(
        self,
        inline: InlineAppends,
        topic_partition: TopicPartition,
        message_set: Buffer,
        required_acks: int,
        note: Callable[[TopicPartition, AppendResult], None],
        *,
        internal: bool = False,
    ) -> AppendResult | None:
        """The result, or None if the set is queued: `note` gets the result later."""
        result = self.append_now(
            inline, topic_partition, message_set, required_acks, internal=internal
        )
        if result is None:
            size = len(message_set)

            def appended(info: AppendInfo | None, error: Exception | None) -> None:
                if error is not None:
                    result = self.refused_result(topic_partition, error, size)
                else:
                    assert info is not None
                    result = result_of(info)
                # Also after an error: its fsync may have held the HW of the next leadership.
                self._purgatories.wake(topic_partition)
                note(topic_partition, result)

            partition = self._replica_manager.partition(topic_partition)
            self._queue_of(partition).submit(bytearray(message_set), required_acks, appended)
        return result

    def append_now(
        self,
        inline: InlineAppends,
        topic_partition: TopicPartition,
        message_set: Buffer,
        required_acks: int,
        *,
        internal: bool = False,
    ) -> AppendResult | None:
        """The result, also for an error; None if the set belongs into the partition's queue. The
        caller wakes what waits for it."""
        try:
            if topic_partition.topic in INTERNAL_TOPICS and not internal:
                raise InvalidTopic(f"Cannot append to internal topic {topic_partition.topic}")
            partition = self._replica_manager.partition(topic_partition)
            info = inline.append(partition, message_set, required_acks)
        except Exception as error:  # noqa: BLE001 - becomes the partition's error code
            return self.refused_result(topic_partition, error, len(message_set))
        return None if info is None else result_of(info)

    def _queue_of(self, partition: Partition) -> AppendQueue:
        queue = self._queues.get(partition)
        if queue is None:
            on_empty = partial(self._queues.pop, partition, None)
            queue = self._queues[partition] = AppendQueue(partition, self._runtime, on_empty)
        return queue

    def refused_result(
        self, topic_partition: TopicPartition, error: Exception, size: int
    ) -> AppendResult:
        """Count a set that was not appended. A storage error halts the broker; a bug is logged
        here, where its traceback ends."""
        if isinstance(error, StorageError):
            raise error  # at the root of this request, or native job
        text = "Cannot append to partition %s"
        if isinstance(error, FileRefused):  # what its client gets names no file
            logger.error(f"{text}: %s", topic_partition, error, extra=caused_by(""))
        elif not isinstance(error, ApiError):
            logger.error(text, topic_partition, exc_info=error)
        partition = self._replica_manager.find(topic_partition)
        if partition is not None:
            partition.count_refused(error, size)
        return AppendResult(NO_OFFSET, NO_OFFSET, Refusal.of(error))

    def _is_settled(self, topic_partition: TopicPartition, offset: int, acks: int) -> bool:
        """Whether no wait is needed: enough replicas have everything before `offset`."""
        if acks in {0, 1}:
            return True
        try:
            return self._replica_manager.partition(topic_partition).acknowledged(offset, acks)
        except ApiError:
            return False  # DelayedProduce finds the same error and reports it

    def _led_until(self, topic_partition: TopicPartition) -> int:
        """Partition.led_until, which identifies the leadership; -1 without a partition."""
        partition = self._replica_manager.find(topic_partition)
        return -1 if partition is None else partition.led_until

    def _wait(
        self,
        results: AppendResults,
        led_until: Mapping[TopicPartition, int],
        required_acks: int,
        timeout_ms: float,
        done: Callable[[AppendResults], object],
        when_closed: WhenClosed | None,
    ) -> None:
        """Wait for the acks of local appends. `led_until`: of each partition at its append. The
        others may have taken so long that the HW is of another leadership, in which it tells
        nothing about the append."""
        changed: AppendErrors = {
            tp: Refusal.of(NotLeaderForPartition(f"leadership of {tp} changed after the append"))
            for tp, result in results.items()
            if result.error is None and self._led_until(tp) != led_until[tp]
        }
        if changed:
            results = with_errors(results, changed)
        pending = {tp: result.next_offset for tp, result in results.items() if result.error is None}
        if not pending:
            done(results)
            return

        def acknowledged(errors: AppendErrors) -> None:
            done(with_errors(results, errors))

        self.await_acks(required_acks, pending, timeout_ms, acknowledged, when_closed)

    def await_acks(
        self,
        required_acks: int,
        pending: dict[TopicPartition, int],
        timeout_ms: float,
        done: Callable[[AppendErrors], object],
        when_closed: WhenClosed | None,
    ) -> None:
        """Call `done` with the errors by partition once enough replicas have everything before each
        offset, maybe before this returns. `when_closed` as for `append`."""
        keys = list(pending)
        wait = DelayedProduce(self._replica_manager.partition, required_acks, pending, done)
        waits = self._purgatories.for_produce(required_acks)
        if not waits.add(wait, keys, timeout_ms) and when_closed is not None:
            when_closed(lambda: waits.abandon(wait))


def result_of(info: AppendInfo) -> AppendResult:
    # 0.8: -1 and -1 for an empty set, so that offset 0 acknowledges it; a wrapper without messages
    # has the LEO and the offset before it.
    return AppendResult(
        info.first_offset, info.last_offset + 1, log_append_time_ms=info.log_append_time_ms
    )
