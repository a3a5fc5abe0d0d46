"""AppendQueue: the appends of one partition that wait for a native job, in order.

A large compressed set must be unpacked, numbered and packed again, which takes long enough to be
done in a thread. Its offsets must be known before (inner offsets are absolute), so while one such
job is out nothing else may be appended: later appends queue here. When the job is back, leadership
and log end are checked again, for both may have changed meanwhile. The fsync of flush.messages is
such a job too: what it covers is acknowledged after it, and so is what follows. A partition has a
queue only while something is in it. What else runs in threads: ARCHITECTURE.md, "Who runs where".
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka08.config import LONG_MAX
from kafka08.errors import NotLeaderForPartition
from kafka08.protocol import message_set
from kafka08.runtime import BrokerRuntime

if TYPE_CHECKING:
    from kafka08.broker.partition import Partition
    from kafka08.log.log import Log
    from kafka08.log.slices import AppendInfo

NATIVE_MIN_BYTES: Final = 64 << 10
"""Compressed sets below this are handled inline: a hop to a thread and back costs 45 µs."""

logger = logging.getLogger(__name__)

AppendDone = Callable[["AppendInfo | None", Exception | None], None]
"""Called in the hub with what was appended, or with the error."""


@dataclass(frozen=True, slots=True)
class QueuedAppend:
    """One append in the queue: its own copy of the set, for the request's buffer is reused."""

    message_set: bytearray
    required_acks: int
    done: AppendDone

    def tell(self, info: AppendInfo | None, error: Exception | None = None) -> None:
        """Call `done`. What it raises is logged: the appends behind have nothing to do with it."""
        try:
            self.done(info, error)
        except Exception:
            logger.exception("Uncaught exception while answering an append")

    def fail(self, error: BaseException) -> None:
        """Tell that its native job failed."""
        self.tell(None, error if isinstance(error, Exception) else RuntimeError(error))


class AppendQueue:
    """Made for a partition by the first append that `needs_queue`; gone when the last is done."""

    def __init__(self, partition: Partition, runtime: BrokerRuntime) -> None:
        self._partition = partition
        self._runtime = runtime
        self._waiting: deque[QueuedAppend] = deque()
        self._busy = False

    def submit(self, data: bytearray, required_acks: int, done: AppendDone) -> None:
        """Append after everything that is in the queue already. Never switches."""
        self._partition.append_queue = self
        self._waiting.append(QueuedAppend(data, required_acks, done))
        self._go_on()

    def _go_on(self) -> None:
        """Append until a job is out or nothing is left."""
        while self._waiting and not self._busy:
            append = self._waiting.popleft()
            if needs_native(append.message_set):
                self._start(append)
            else:
                self._append_inline(append)
        if not self._busy:
            self._partition.append_queue = None

    def _append_inline(self, append: QueuedAppend) -> None:
        try:
            log = self._partition.check_append(append.required_acks)
            info = log.append(append.message_set, flush=False)
        except Exception as error:  # noqa: BLE001 - carried to who waits for this append
            append.tell(None, error)
        else:
            self._finish(append, log, info)

    def _start(self, append: QueuedAppend) -> None:
        """Send the set out to be packed for the offsets it will have, if it may be appended."""
        try:
            log = self._partition.check_append(append.required_acks)
        except Exception as error:  # noqa: BLE001 - carried to who waits for this append
            append.tell(None, error)
            return
        epoch, base_offset = self._partition.leader_epoch, log.log_end_offset

        def finished(prepared: message_set.PreparedSet, error: BaseException | None) -> None:
            self._busy = False
            try:
                if error is None:
                    self._commit(append, prepared, epoch, base_offset)
                else:
                    append.fail(error)
            finally:
                self._go_on()

        self._busy = True
        self._runtime.run_native_later(
            finished,
            log.config.prepare,
            append.message_set,
            base_offset,
            self._runtime.time_ms(),
        )

    def _commit(
        self,
        append: QueuedAppend,
        prepared: message_set.PreparedSet,
        epoch: int,
        base_offset: int,
    ) -> None:
        """Append the packed set if this broker still leads in the same epoch."""
        partition = self._partition
        try:
            log = partition.check_append(append.required_acks)
            if partition.leader_epoch != epoch or log.log_end_offset != base_offset:
                raise NotLeaderForPartition(
                    f"leadership of {partition.topic_partition} changed during the append"
                )
            info = log.append_prepared(prepared, flush=False)
        except Exception as error:  # noqa: BLE001 - carried to who waits for this append
            append.tell(None, error)
        else:
            self._finish(append, log, info)

    def _finish(self, append: QueuedAppend, log: Log, info: AppendInfo) -> None:
        """What was appended is acknowledged, after its fsync if that is due."""
        self._partition.count_in(info)
        flush = log.owed_flush()
        if flush is None:
            self._acknowledge(append, info)
            return

        def flushed(_: object, error: BaseException | None) -> None:
            self._busy = False
            try:
                if error is None:
                    flush.complete()
                    self._acknowledge(append, info)
                else:
                    append.fail(error)
            finally:
                self._go_on()

        self._busy = True
        self._runtime.run_native_later(flushed, flush.sync)

    def _acknowledge(self, append: QueuedAppend, info: AppendInfo) -> None:
        if self._partition.is_leader:
            self._partition.maybe_raise_high_watermark()
        append.tell(info)


def needs_queue(partition: Partition, data: bytes | bytearray | memoryview) -> bool:
    """Whether an append may take a native job: packing, or the fsync of flush.messages."""
    log = partition.log
    if log is not None and log.config.flush_messages < LONG_MAX and log.may_owe_flush(data):
        return True
    return len(data) >= NATIVE_MIN_BYTES and message_set.begins_compressed(data)


def needs_native(data: bytes | bytearray | memoryview) -> bool:
    """Whether a set is worth a thread: large, and compressed as far as its first entry tells."""
    return len(data) >= NATIVE_MIN_BYTES and message_set.begins_compressed(data)
