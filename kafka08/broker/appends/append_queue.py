"""AppendQueue: one partition's appends that wait for a native job, in order.

Decompressing, numbering and recompressing a large set takes so long that it is done in a thread. It
must know its offsets before (inner offsets are absolute), so while such a job runs nothing else may
be appended: later appends queue here. When the job is done, leadership and log end are checked
again, since both may have changed. The fsync of flush.messages is also such a job: the appends that
it covers are acknowledged after it, and so are later ones; until then the HW stays below them, even
if followers have them already: they must be on the leader's disk, too, before a consumer reads them
(0.8.2.2 lets followers raise the HW during the fsync).

An append belongs to the leadership in which it was submitted. If another broker has led since, its
client may have gone on there, and the log may have another message at its offset: it fails.
0.8.2.2 appends and syncs under a lock that also a change of leadership takes.

A partition has a queue only while an append is in it. For other work in threads see
ARCHITECTURE.md, "Threads and greenlets".
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from kafka08.broker.replica.partition import Partition
from kafka08.config import LONG_MAX
from kafka08.errors import FileRefused, NotLeaderForPartition, UnpacksTooLarge
from kafka08.log.log import Log
from kafka08.log.slices import AppendInfo
from kafka08.protocol import message_set
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.uncaught import uncaught

logger = logging.getLogger(__name__)

AppendDone = Callable[[AppendInfo | None, Exception | None], None]
"""Called in the hub with the result of the append, or with the error."""
OwnAppend = Callable[[Log, int], AppendInfo]
"""(log, leader epoch) → the result of appending what the broker itself has made for the end of the
log, without a flush; or the offset where it is already."""


@dataclass(frozen=True, slots=True)
class QueuedAppend:
    """One append in the queue, with its own copy of the set, since the request's buffer is
    reused; or the function that makes it.

    led_until   of the partition: identifies the leadership
    """

    message_set: bytearray
    required_acks: int
    led_until: int
    done: AppendDone
    runtime: BrokerRuntime
    append_own: OwnAppend | None = None

    def complete(self, info: AppendInfo | None, error: Exception | None = None) -> None:
        """Call `done`. Its errors are logged: they must not affect later appends."""
        try:
            self.done(info, error)
        except Exception as failure:  # noqa: BLE001 - see above
            text = "Uncaught exception while answering an append"
            uncaught(self.runtime, failure, logger, text)

    def fail(self, error: BaseException) -> None:
        """Report that its native job failed."""
        self.complete(None, error if isinstance(error, Exception) else RuntimeError(error))


class AppendQueue:
    """Created by a partition's first append that takes too long for InlineAppends; `on_empty` is
    called after the last one."""

    def __init__(
        self, partition: Partition, runtime: BrokerRuntime, on_empty: Callable[[], object]
    ) -> None:
        self._partition = partition
        self._runtime = runtime
        self._on_empty = on_empty
        self._waiting: deque[QueuedAppend] = deque()
        self._busy = False

    def submit(self, data: bytearray, required_acks: int, done: AppendDone) -> None:
        """Append after everything in the queue. Never switches."""
        led_until = self._partition.led_until
        self._add(QueuedAppend(data, required_acks, led_until, done, self._runtime))

    def submit_own(self, append_own: OwnAppend, done: AppendDone) -> None:
        """Call `append_own`, for acks -1, after everything in the queue. Never switches."""
        led_until = self._partition.led_until
        self._add(QueuedAppend(bytearray(), -1, led_until, done, self._runtime, append_own))

    def _add(self, append: QueuedAppend) -> None:
        self._partition.is_queued = True
        self._waiting.append(append)
        self._run_next()

    def _run_next(self) -> None:
        """Append until a job is running or the queue is empty."""
        while self._waiting and not self._busy:
            self._append(self._waiting.popleft())
        if not self._busy:
            self._partition.is_queued = False
            self._on_empty()

    def _append(self, append: QueuedAppend) -> None:
        """Append the set at once, or start the job for one that must be unpacked or compressed."""
        data = append.message_set
        info = None
        try:
            log = self._partition.check_append(append.required_acks)
            if self._partition.led_until != append.led_until:
                raise self._leadership_changed()
            if append.append_own is not None:
                info = append.append_own(log, self._partition.leader_epoch)
            elif not log.config.repacks(data):
                # It must be unpacked after all: a job does that.
                with suppress(UnpacksTooLarge):
                    # `_finish` syncs, in a native job: here it would block the hub.
                    epoch = self._partition.leader_epoch
                    info = log.append(data, max_unpacked_bytes=0, leader_epoch=epoch, flush=False)
        except Exception as error:  # noqa: BLE001 - reported to the caller of this append
            append.complete(None, error)
            return
        if info is None:
            self._start(append, log)
        else:
            self._finish(append, log, info)

    def _start(self, append: QueuedAppend, log: Log) -> None:
        """Start the job that prepares the set for its offsets."""
        epoch, base_offset = self._partition.leader_epoch, log.log_end_offset

        def finished(prepared: message_set.PreparedSet, error: BaseException | None) -> None:
            self._busy = False
            try:
                if error is None:
                    self._commit(append, prepared, epoch, base_offset)
                else:
                    append.fail(error)
            finally:
                self._run_next()

        self._busy = True
        self._runtime.run_native_later(
            finished,
            log.config.prepare,
            append.message_set,
            base_offset,
            self._runtime.time_ms(),
            message_set.MAX_UNPACKED_BYTES,
            epoch,
        )

    def _commit(
        self,
        append: QueuedAppend,
        prepared: message_set.PreparedSet,
        epoch: int,
        base_offset: int,
    ) -> None:
        """Append the prepared set if this broker still leads in the same epoch."""
        partition = self._partition
        try:
            log = partition.check_append(append.required_acks)
            if partition.leader_epoch != epoch or log.log_end_offset != base_offset:
                raise self._leadership_changed()
            info = log.append_prepared(prepared, flush=False)
        except Exception as error:  # noqa: BLE001 - reported to the caller of this append
            append.complete(None, error)
        else:
            self._finish(append, log, info)

    def _finish(self, append: QueuedAppend, log: Log, info: AppendInfo) -> None:
        """Acknowledge the append, after its fsync if one is due. If that is refused, followers may
        copy the messages, but the HW stays below them until a later fsync."""
        self._partition.count_in(info.count, len(append.message_set) or info.size)
        partition = self._partition
        not_on_disk = min(partition.high_watermark_max, info.first_offset)
        try:
            flush = log.owed_flush()
        except FileRefused as error:
            partition.high_watermark_max = not_on_disk
            append.complete(None, error)
            return
        if flush is None:
            self._acknowledge(append, info)
            return

        def flushed(_: object, error: BaseException | None) -> None:
            self._busy = False
            try:
                if error is None:
                    flush.complete()
                    partition.high_watermark_max = LONG_MAX
                    self._acknowledge(append, info)
                else:
                    append.fail(error)
            except FileRefused as refusal:
                append.fail(refusal)
            finally:
                self._run_next()

        self._busy = True
        partition.high_watermark_max = not_on_disk
        self._runtime.run_native_later(flushed, flush.sync)

    def _acknowledge(self, append: QueuedAppend, info: AppendInfo) -> None:
        """Report the append. If this broker follows now, its acks decide: 0 and 1 are successful,
        as in 0.8.2.2."""
        partition = self._partition
        if partition.is_leader:
            partition.maybe_raise_high_watermark()
            if partition.led_until != append.led_until:
                append.complete(None, self._leadership_changed())
                return
        append.complete(info)

    def _leadership_changed(self) -> NotLeaderForPartition:
        return NotLeaderForPartition(
            f"leadership of {self._partition.topic_partition} changed during the append"
        )
