"""Producers: what a partition knows of each producer with an id, and its open transactions. Pure.

The leader checks a batch of a client before it appends it:

    a negative sequence                                         2
    the epoch is below the known one                            47
    a batch outside of a transaction while one is open          48
    one of the last BATCHES_MAX batches again                   Repeated: nothing is appended
    a new epoch, or an unknown producer, and a sequence not 0   45
    any other sequence than the one behind the last             45

Sequences count records, from 0 to 2^31 - 1 and again from 0. A batch without an epoch is not
checked. Followers and recovery take batches as they are, so that a new leader knows the same.

A marker (control batch) ends a producer's transaction and keeps its last sequence; batches before
it are no longer repeated ones. 0.11.0.3 remembers one batch, and answers the repeat of an older one
with 45, after which today's Java producer numbers its batches again and appends them twice. It also
forgets a producer whose last batch is deleted, or has an old timestamp; here the time of arrival
counts. Source: kafka.log.ProducerStateManager 0.11.0.2 and 1.0.0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafka08.errors import (
    InvalidMessage,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from kafka08.log.aborted_transactions import AbortedTransaction

BATCHES_MAX: Final = 5
"""Of a producer that are recognized when they come again: as many as clients have in flight."""
SEQUENCE_MAX: Final = 2**31 - 1
NO_SEQUENCE: Final = -1
NO_EPOCH: Final = -1
NO_COORDINATOR_EPOCH: Final = -1
NO_OFFSET: Final = -1


class SequencedBatch(NamedTuple):
    """A record batch of a producer with an id. `last_sequence` follows from the number of
    records."""

    producer_id: int
    epoch: int
    base_sequence: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    is_transactional: bool = False

    @property
    def last_sequence(self) -> int:
        return (self.base_sequence + self.last_offset - self.base_offset) & SEQUENCE_MAX


class Marker(NamedTuple):
    """The control batch that ends a producer's transaction."""

    producer_id: int
    epoch: int
    commits: bool
    coordinator_epoch: int
    offset: int
    timestamp_ms: int


class TransactionEnd(NamedTuple):
    """A coordinator's decision on a producer's transaction, which becomes a marker."""

    producer_id: int
    producer_epoch: int
    commits: bool
    coordinator_epoch: int


class Repeated(NamedTuple):
    """A batch that is in the log already: its first offset and its largest timestamp."""

    base_offset: int
    max_timestamp_ms: int


class KnownBatch(NamedTuple):
    """The part of a batch that recognizes it."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    max_timestamp_ms: int


class ProducerEntry(NamedTuple):
    """A producer as a snapshot has it (kafka08.log.producer_snapshot). The last batch is that of
    its last append, or its marker as one of one record; `last_sequence` is NO_SEQUENCE for a
    producer that is known by a marker alone."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    first_offset: int
    """Of its open transaction; NO_OFFSET without one."""


@dataclass(slots=True)
class _Producer:
    """ended_by    the marker that was appended last, if nothing was appended since
    batches     the last ones since the last marker, at most BATCHES_MAX
    arrived_ms  when its last batch or marker was appended here, or the log was loaded
    """

    epoch: int
    last_sequence: int = NO_SEQUENCE
    last_offset: int = NO_OFFSET
    offset_delta: int = 0
    timestamp_ms: int = -1
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    first_offset: int = NO_OFFSET
    arrived_ms: int = 0
    batches: deque[KnownBatch] = field(default_factory=lambda: deque(maxlen=BATCHES_MAX))
    ended_by: Marker | None = None


class Producers:
    """The producers of one partition."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        self._unreplicated: list[tuple[int, int]] = []
        """First offset and marker of each transaction whose marker the HW has not passed yet."""

    def __len__(self) -> int:
        return len(self._producers)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._producers

    # Batches

    def check(self, batch: SequencedBatch) -> Repeated | None:
        """Whether the leader appends a client's batch: None, or the place where it is already.
        InvalidProducerEpoch, InvalidTxnState, InvalidMessage, OutOfOrderSequence."""
        if batch.base_sequence < 0:
            raise InvalidMessage(f"producer {batch.producer_id}: sequence {batch.base_sequence}")
        if batch.epoch == NO_EPOCH:
            return None
        known = self._producers.get(batch.producer_id)
        if known is not None and batch.epoch < known.epoch:
            raise InvalidProducerEpoch(
                f"producer {batch.producer_id}: epoch {batch.epoch} is below {known.epoch}"
            )
        if known is not None and known.first_offset != NO_OFFSET and not batch.is_transactional:
            raise InvalidTxnState(f"producer {batch.producer_id} has an open transaction")
        if known is None or batch.epoch > known.epoch:
            expected = 0
        else:
            for one in known.batches:
                if (one.base_sequence, one.last_sequence) == (
                    batch.base_sequence,
                    batch.last_sequence,
                ):
                    return Repeated(one.base_offset, one.max_timestamp_ms)
            expected = (known.last_sequence + 1) & SEQUENCE_MAX
        if batch.base_sequence != expected:
            raise OutOfOrderSequence(
                f"producer {batch.producer_id} epoch {batch.epoch}: sequence "
                f"{batch.base_sequence}, but {expected} is next"
            )
        return None

    def append(self, batch: SequencedBatch, now_ms: int) -> None:
        """A batch was appended, or copied from the leader, or read from the log."""
        known = self._producers.get(batch.producer_id)
        if known is None or known.epoch != batch.epoch:
            known = self._begin_epoch(batch.producer_id, batch.epoch, known)
        known.last_sequence = batch.last_sequence
        known.last_offset = batch.last_offset
        known.offset_delta = batch.last_offset - batch.base_offset
        known.timestamp_ms = batch.max_timestamp_ms
        known.arrived_ms = now_ms
        known.ended_by = None
        known.batches.append(
            KnownBatch(
                batch.base_sequence,
                batch.last_sequence,
                batch.base_offset,
                batch.max_timestamp_ms,
            )
        )
        if batch.is_transactional and known.first_offset == NO_OFFSET:
            known.first_offset = batch.base_offset

    def _begin_epoch(self, producer_id: int, epoch: int, former: _Producer | None) -> _Producer:
        """The producer with no sequence yet. An open transaction stays open until its marker."""
        found = self._producers[producer_id] = _Producer(epoch)
        if former is not None:
            found.coordinator_epoch = former.coordinator_epoch
            found.first_offset = former.first_offset
        return found

    # Transactions

    def check_marker(self, marker: Marker) -> bool:
        """Whether the leader appends a coordinator's marker: False for the one that it has appended
        last, which comes again after a timeout. InvalidProducerEpoch,
        TransactionCoordinatorFenced."""
        known = self._producers.get(marker.producer_id)
        if known is None:
            return True
        if marker.epoch < known.epoch:
            raise InvalidProducerEpoch(
                f"producer {marker.producer_id}: epoch {marker.epoch} is below {known.epoch}"
            )
        if marker.coordinator_epoch < known.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"producer {marker.producer_id}: coordinator epoch {marker.coordinator_epoch} is "
                f"below {known.coordinator_epoch}"
            )
        last = known.ended_by
        return last is None or (last.epoch, last.coordinator_epoch, last.commits) != (
            marker.epoch,
            marker.coordinator_epoch,
            marker.commits,
        )

    def append_marker(self, marker: Marker, now_ms: int) -> AbortedTransaction | None:
        """A marker was appended, or copied, or read; returns the entry of the index of aborted
        transactions if it aborts. One without a transaction has itself as its only offset."""
        known = self._producers.get(marker.producer_id)
        if known is None or known.epoch != marker.epoch:
            known = self._begin_epoch(marker.producer_id, marker.epoch, known)
        first = marker.offset if known.first_offset == NO_OFFSET else known.first_offset
        if known.first_offset != NO_OFFSET:
            self._unreplicated.append((first, marker.offset))
        known.first_offset = NO_OFFSET
        known.batches.clear()
        known.ended_by = marker
        known.last_offset, known.offset_delta = marker.offset, 0
        known.timestamp_ms = marker.timestamp_ms
        known.coordinator_epoch = marker.coordinator_epoch
        known.arrived_ms = now_ms
        if marker.commits:
            return None
        stable = min(self._open_offsets(), default=marker.offset + 1)
        return AbortedTransaction(marker.producer_id, first, marker.offset, stable)

    def _open_offsets(self) -> Iterator[int]:
        return (
            known.first_offset
            for known in self._producers.values()
            if known.first_offset != NO_OFFSET
        )

    @property
    def open_transactions(self) -> dict[int, int]:
        """producer id → first offset of its open transaction."""
        return {
            producer_id: known.first_offset
            for producer_id, known in self._producers.items()
            if known.first_offset != NO_OFFSET
        }

    def high_watermark_rose(self, high_watermark: int) -> None:
        """Transactions whose markers lie below are complete."""
        self._unreplicated = [one for one in self._unreplicated if one[1] >= high_watermark]

    def last_stable_offset(self, high_watermark: int, log_start_offset: int) -> int:
        """The first offset that a reader of committed messages must not see: that of the first
        transaction that is open, or whose marker is not replicated; else the HW."""
        firsts = [*self._open_offsets(), *(first for first, _ in self._unreplicated)]
        if not firsts:
            return high_watermark
        return min(max(min(firsts), log_start_offset), high_watermark)

    def log_start_rose(self, log_start_offset: int) -> None:
        """Messages below were deleted. Producers stay known, with their epochs. A transaction with
        nothing left in the log is over; one with a part left begins there."""
        for known in self._producers.values():
            if NO_OFFSET < known.first_offset < log_start_offset:
                is_over = known.last_offset < log_start_offset
                known.first_offset = NO_OFFSET if is_over else log_start_offset
        self._unreplicated = [
            (max(first, log_start_offset), last)
            for first, last in self._unreplicated
            if last >= log_start_offset
        ]

    def expire(self, now_ms: int, after_ms: int) -> list[int]:
        """Forget the producers whose last append is `after_ms` ago and that have no open
        transaction; returns their ids."""
        expired = [
            producer_id
            for producer_id, known in self._producers.items()
            if known.first_offset == NO_OFFSET and now_ms - known.arrived_ms >= after_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return expired

    # Snapshots

    def entries(self) -> list[ProducerEntry]:
        """For a snapshot."""
        return [
            ProducerEntry(
                producer_id,
                known.epoch,
                known.last_sequence,
                known.last_offset,
                known.offset_delta,
                known.timestamp_ms,
                known.coordinator_epoch,
                known.first_offset,
            )
            for producer_id, known in self._producers.items()
        ]

    @classmethod
    def of_snapshot(cls, entries: Iterable[ProducerEntry], now_ms: int) -> Producers:
        """The producers of a snapshot; the batches behind it are appended afterwards. Only the last
        batch of each is known, so the snapshot should lie BATCHES_MAX batches back."""
        found = cls()
        for entry in entries:
            known = _Producer(
                entry.epoch,
                entry.last_sequence,
                entry.last_offset,
                entry.offset_delta,
                entry.timestamp_ms,
                entry.coordinator_epoch,
                entry.first_offset,
                now_ms,
            )
            if entry.last_sequence != NO_SEQUENCE:
                known.batches.append(
                    KnownBatch(
                        (entry.last_sequence - entry.offset_delta) & SEQUENCE_MAX,
                        entry.last_sequence,
                        entry.last_offset - entry.offset_delta,
                        entry.timestamp_ms,
                    )
                )
            found._producers[entry.producer_id] = known
        return found
