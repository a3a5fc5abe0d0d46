"""Producers: what a partition knows of each producer with an id, and its open transactions. Pure.

The leader checks a batch of a client before it appends it:

    a negative sequence                                         2
    the epoch is below the known one                            47
    a batch outside of a transaction while one is open          48
    one of the last BATCHES_MAX batches again                   Repeated: nothing is appended
    the first batch of a transaction that was not begun here    48
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
from collections.abc import Iterable, Mapping
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
from kafka08.log.cleaned_transactions import LastAppend

BATCHES_MAX: Final = 5
"""Of a producer that are recognized when they come again: as many as clients have in flight."""
UNREPLICATED_MAX: Final = 1000
"""Transactions whose markers the HW may not have passed: where no reader asks for the last stable
offset, nothing tells. Then they count as one, up to the last of these markers."""
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

    @property
    def end(self) -> TransactionEnd:
        return TransactionEnd(self.producer_id, self.epoch, self.commits, self.coordinator_epoch)


class TransactionEnd(NamedTuple):
    """A coordinator's decision on a producer's transaction, which becomes a marker."""

    producer_id: int
    producer_epoch: int
    commits: bool
    coordinator_epoch: int


class Repeated(NamedTuple):
    """A batch that is in the log already: its offsets and its largest timestamp."""

    base_offset: int
    last_offset: int
    max_timestamp_ms: int


class KnownBatch(NamedTuple):
    """The part of a batch that recognizes it."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    max_timestamp_ms: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + ((self.last_sequence - self.base_sequence) & SEQUENCE_MAX)


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
    batch_offset  last offset of its last batch, also before a marker; NO_OFFSET: unknown
    """

    epoch: int
    last_sequence: int = NO_SEQUENCE
    last_offset: int = NO_OFFSET
    offset_delta: int = 0
    timestamp_ms: int = -1
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    arrived_ms: int = 0
    batches: deque[KnownBatch] = field(default_factory=lambda: deque(maxlen=BATCHES_MAX))
    ended_by: Marker | None = None
    batch_offset: int = NO_OFFSET

    def batches_of_entry(self) -> list[KnownBatch]:
        """The batch that the entry of a snapshot describes."""
        if self.last_sequence == NO_SEQUENCE:
            return []
        return [
            KnownBatch(
                (self.last_sequence - self.offset_delta) & SEQUENCE_MAX,
                self.last_sequence,
                self.last_offset - self.offset_delta,
                self.timestamp_ms,
            )
        ]


class Producers:
    """The producers of one partition."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        self._open: dict[int, int] = {}
        """Producer id → first offset of its open transaction, which a new epoch does not end."""
        self._unreplicated: list[tuple[int, int]] = []
        """First offset and marker of each transaction whose marker the HW has not passed yet."""
        self._begun: dict[int, int] = {}
        """Producer id → epoch of each transaction that may have its first batch here."""

    def __len__(self) -> int:
        return len(self._producers)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._producers

    # Batches

    def check_set(self, batches: Iterable[SequencedBatch]) -> Repeated | None:
        """Whether the leader appends a client's set with these batches: None, or the place where it
        is already. Errors as `check`, also for a set of which only a part is there."""
        found: list[Repeated | None] = []
        before: dict[int, SequencedBatch] = {}
        for batch in batches:
            found.append(self.check(batch, before.get(batch.producer_id)))
            before[batch.producer_id] = batch
        repeated = [one for one in found if one is not None]
        if not repeated:
            return None
        if len(repeated) < len(found):
            raise OutOfOrderSequence("a set with batches that are in the log, and others")
        return Repeated(repeated[0].base_offset, *repeated[-1][1:])

    def check(self, batch: SequencedBatch, before: SequencedBatch | None = None) -> Repeated | None:
        """Whether the leader appends a client's batch: None, or the place where it is already.
        `before`: the producer's last batch in the same set, which is not appended yet.
        InvalidProducerEpoch, InvalidTxnState, InvalidMessage, OutOfOrderSequence."""
        if batch.base_sequence < 0:
            raise InvalidMessage(f"producer {batch.producer_id}: sequence {batch.base_sequence}")
        if batch.epoch == NO_EPOCH:
            return None
        self.check_epoch(batch.producer_id, batch.epoch)
        known = self._producers.get(batch.producer_id)
        self._check_transaction(batch)
        expected = 0
        if known is not None and batch.epoch == known.epoch:
            expected = known.last_sequence + 1 & SEQUENCE_MAX
            if before is None and batch.base_sequence == expected:
                return None  # None of the last ones has it.
            for one in known.batches:
                if (one.base_sequence, one.last_sequence) == (
                    batch.base_sequence,
                    batch.last_sequence,
                ):
                    return Repeated(one.base_offset, one.last_offset, one.max_timestamp_ms)
        if before is not None and before.epoch == batch.epoch:
            expected = before.last_sequence + 1 & SEQUENCE_MAX
        if batch.base_sequence != expected:
            raise OutOfOrderSequence(
                f"producer {batch.producer_id} epoch {batch.epoch}: sequence "
                f"{batch.base_sequence}, but {expected} is next"
            )
        return None

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """InvalidProducerEpoch if a producer with this epoch has a successor."""
        known = self._producers.get(producer_id)
        if known is not None and epoch < known.epoch:
            raise InvalidProducerEpoch(
                f"producer {producer_id}: epoch {epoch} is below {known.epoch}"
            )

    def _check_transaction(self, batch: SequencedBatch) -> None:
        is_open = batch.producer_id in self._open
        if is_open and not batch.is_transactional:
            raise InvalidTxnState(f"producer {batch.producer_id} has an open transaction")
        begun = self._begun.get(batch.producer_id)
        if batch.is_transactional and not is_open and begun != batch.epoch:
            raise InvalidTxnState(
                f"producer {batch.producer_id} epoch {batch.epoch} has no transaction here"
            )

    def append(self, batch: SequencedBatch, now_ms: int) -> None:
        """A batch was appended, or copied from the leader, or read from the log."""
        known = self._producers.get(batch.producer_id)
        if known is None or known.epoch != batch.epoch:
            known = self._begin_epoch(batch.producer_id, batch.epoch, known)
        known.last_sequence = last_sequence = batch.last_sequence
        known.last_offset = known.batch_offset = batch.last_offset
        known.offset_delta = batch.last_offset - batch.base_offset
        known.timestamp_ms = batch.max_timestamp_ms
        known.arrived_ms = now_ms
        known.ended_by = None
        known.batches.append(
            KnownBatch(
                batch.base_sequence, last_sequence, batch.base_offset, batch.max_timestamp_ms
            )
        )
        if batch.is_transactional:
            self._open.setdefault(batch.producer_id, batch.base_offset)

    def _begin_epoch(self, producer_id: int, epoch: int, former: _Producer | None) -> _Producer:
        """The producer with no sequence yet."""
        found = self._producers[producer_id] = _Producer(epoch)
        if former is not None:
            found.coordinator_epoch = former.coordinator_epoch
        return found

    # Transactions

    def has_begun(self, producer_id: int, epoch: int) -> bool:
        """Whether a batch of a transaction of the producer is taken."""
        return producer_id in self._open or self._begun.get(producer_id) == epoch

    def begin_transaction(self, producer_id: int, epoch: int) -> None:
        """The coordinator has this partition in a transaction of the producer: its batches are
        taken, until a marker."""
        self._begun[producer_id] = epoch

    def check_marker(self, end: TransactionEnd) -> Repeated | None:
        """Whether the leader appends a coordinator's marker: None, or the place of the one that it
        has appended last, which comes again after a timeout. InvalidProducerEpoch,
        TransactionCoordinatorFenced."""
        self.check_epoch(end.producer_id, end.producer_epoch)
        known = self._producers.get(end.producer_id)
        if known is None:
            return None
        if end.coordinator_epoch < known.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"producer {end.producer_id}: coordinator epoch {end.coordinator_epoch} is "
                f"below {known.coordinator_epoch}"
            )
        last = known.ended_by
        if last is None or last.end != end:
            return None
        return Repeated(last.offset, last.offset, last.timestamp_ms)

    def append_marker(self, marker: Marker, now_ms: int) -> AbortedTransaction | None:
        """A marker was appended, or copied, or read; returns the entry of the index of aborted
        transactions if it aborts. One without a transaction has itself as its only offset."""
        known = self._producers.get(marker.producer_id)
        if known is None or known.epoch != marker.epoch:
            known = self._begin_epoch(marker.producer_id, marker.epoch, known)
        first = self._open.pop(marker.producer_id, None)
        if first is None:
            first = marker.offset
        else:
            if len(self._unreplicated) == UNREPLICATED_MAX:
                firsts = [one for one, _ in self._unreplicated]
                self._unreplicated = [(min(firsts), self._unreplicated[-1][1])]
            self._unreplicated.append((first, marker.offset))
        self._begun.pop(marker.producer_id, None)
        known.batches.clear()
        known.ended_by = marker
        known.last_offset, known.offset_delta = marker.offset, 0
        known.timestamp_ms = marker.timestamp_ms
        known.coordinator_epoch = marker.coordinator_epoch
        known.arrived_ms = now_ms
        if marker.commits:
            return None
        stable = min(self._open.values(), default=marker.offset + 1)
        return AbortedTransaction(marker.producer_id, first, marker.offset, stable)

    def last_appends(self) -> dict[int, LastAppend]:
        """producer id → its last batch, and its last entry."""
        return {
            producer_id: LastAppend(known.batch_offset, known.last_offset)
            for producer_id, known in self._producers.items()
        }

    @property
    def open_transactions(self) -> Mapping[int, int]:
        """producer id → first offset of its open transaction."""
        return self._open

    def high_watermark_rose(self, high_watermark: int) -> None:
        """Transactions whose markers lie below are complete."""
        self._unreplicated = [one for one in self._unreplicated if one[1] >= high_watermark]

    def last_stable_offset(self, high_watermark: int, log_start_offset: int) -> int:
        """The first offset that a reader of committed messages must not see: that of the first
        transaction that is open, or whose marker is not replicated; else the HW."""
        if not self._open and not self._unreplicated:
            return high_watermark
        self.high_watermark_rose(high_watermark)
        firsts = [*self._open.values(), *(first for first, _ in self._unreplicated)]
        if not firsts:
            return high_watermark
        return min(max(min(firsts), log_start_offset), high_watermark)

    def log_start_rose(self, log_start_offset: int) -> None:
        """Messages below were deleted. Producers stay known, with their epochs. A transaction with
        nothing left in the log is over; one with a part left begins there."""
        for producer_id, first in list(self._open.items()):
            if self._producers[producer_id].last_offset < log_start_offset:
                del self._open[producer_id]
            else:
                self._open[producer_id] = max(first, log_start_offset)
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
            if producer_id not in self._open and now_ms - known.arrived_ms >= after_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return expired

    # Snapshots

    def known_batches(self) -> list[tuple[int, KnownBatch]] | None:
        """Producer id and batch of all that are recognized; None if the entries say as much."""
        if all(known.batches_of_entry() == list(known.batches) for known in self._all()):
            return None
        return [(id_, one) for id_, known in self._producers.items() for one in known.batches]

    def _all(self) -> Iterable[_Producer]:
        return self._producers.values()

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
                self._open.get(producer_id, NO_OFFSET),
            )
            for producer_id, known in self._producers.items()
        ]

    @classmethod
    def of_snapshot(
        cls,
        entries: Iterable[ProducerEntry],
        now_ms: int,
        batches: Iterable[tuple[int, KnownBatch]] | None = None,
    ) -> Producers:
        """The producers of a snapshot; the batches behind it are appended afterwards. Without
        `batches`, as in one of 0.11.0.3, only the last of each producer is recognized."""
        found = cls()
        for entry in entries:
            found._producers[entry.producer_id] = _Producer(
                entry.epoch,
                entry.last_sequence,
                entry.last_offset,
                entry.offset_delta,
                entry.timestamp_ms,
                entry.coordinator_epoch,
                now_ms,
            )
            if entry.first_offset != NO_OFFSET:
                found._open[entry.producer_id] = entry.first_offset
        for producer_id, batch in batches or ():
            if producer_id in found:
                found._producers[producer_id].batches.append(batch)
        if batches is None:
            for known in found._all():
                known.batches += known.batches_of_entry()
        return found
