"""MarkerWriter: appends markers to partitions that this broker leads, for coordinators.

Each partition has its own code: 3 or 6 without the leadership, 43 for an older message format, 19
or 20 without enough in-sync replicas, 47 and 52 for a producer or a coordinator that was replaced,
7 if the replicas take too long. Then the marker is in the log, and the coordinator sends it again:
one that is the last entry of its producer already is 0, and is not appended again.

Offsets that a transaction committed are seen once their marker is replicated, before the
coordinator hears of it. Source: kafka.server.KafkaApis.handleWriteTxnMarkersRequest 0.11.0.2, which
appends every repeat, and lets a reader of offsets wait for another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from kafka08.broker.appends.appender import Appender
from kafka08.broker.purgatory.delayed_produce import AppendResult
from kafka08.clock import Clock
from kafka08.errors import NO_ERROR, UnsupportedForMessageFormat
from kafka08.log.coordinator_batches import marker_batch
from kafka08.log.log import Log
from kafka08.log.producers import TransactionEnd
from kafka08.log.slices import AppendInfo
from kafka08.structs import OFFSETS_TOPIC, TopicPartition


class TransactionalOffsets(Protocol):
    """The offsets of groups, as OffsetManager has them."""

    def end_transaction(self, partition: int, producer_id: int, commits: bool) -> None:
        """Count, or drop, the offsets that a producer has committed in a partition of
        `__consumer_offsets` since its last marker."""


class MarkerWriter:
    """The markers for one broker. Never switches.

    timeout_ms   the longest wait for the in-sync replicas
    """

    def __init__(
        self, clock: Clock, appender: Appender, offsets: TransactionalOffsets, timeout_ms: int
    ) -> None:
        self._clock = clock
        self._appender = appender
        self._offsets = offsets
        self._timeout_ms = timeout_ms

    def write(
        self,
        end: TransactionEnd,
        partitions: Sequence[TopicPartition],
        done: Callable[[TopicPartition, int], object],
    ) -> None:
        """Append a marker to each of the partitions; `done` is called once for each, maybe before
        this returns."""
        for tp in partitions:
            self._appender.append_own(
                tp,
                partial(append_marker, end, self._clock.time_ms()),
                timeout_ms=self._timeout_ms,
                done=partial(self._appended, end, tp, done),
            )

    def _appended(
        self,
        end: TransactionEnd,
        tp: TopicPartition,
        done: Callable[[TopicPartition, int], object],
        result: AppendResult,
    ) -> None:
        if result.error_code == NO_ERROR and tp.topic == OFFSETS_TOPIC:
            self._offsets.end_transaction(tp.partition, end.producer_id, end.commits)
        done(tp, result.error_code)


def append_marker(end: TransactionEnd, now_ms: int, log: Log, leader_epoch: int) -> AppendInfo:
    """Append the marker, or return the place where it is already. UnsupportedForMessageFormat,
    InvalidProducerEpoch, TransactionCoordinatorFenced."""
    if not log.config.stores_records:
        raise UnsupportedForMessageFormat(f"{log.name} cannot have transactions")
    repeated = log.records.producers.check_marker(end)
    if repeated is not None:
        return AppendInfo(repeated.base_offset, repeated.last_offset, 0, 0)
    made = marker_batch(end, log.log_end_offset, leader_epoch, now_ms)
    return log.append_prepared(*made, flush=False)
