"""CleanedTransactions: what a pass of the cleaner keeps of transactions. Pure.

    a batch of an aborted transaction    goes, and its keys supersede nothing
    a batch of a committed one           as any other
    a marker                             stays while the pass meets a batch of its transaction,
                                         then as long as a tombstone, and as its producer's last
    an entry of the abort index          stays while the pass meets a batch of its transaction

The batch that has a producer's last sequence stays without its records. A pass ends below the first
open transaction, so each one in it was committed unless an index has it.

One object sees a pass from the log start on, over all its segments. 0.11.0.3 begins anew with each
segment: it removes a marker early that is in another segment than its data, which are then open for
ever (KAFKA-8351). Source: kafka.log.CleanedTransactionMetadata 0.11.0.3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kafka08.format import Batch
from kafka08.log.aborted_transactions import AbortedTransaction

UNKNOWN: Final = -1


class LastAppend(NamedTuple):
    """The last offsets of a producer's last batch (UNKNOWN: any may be it), and of its last batch
    or marker."""

    batch_offset: int
    offset: int


class CleanedTransactions:
    """aborted     the entries of all indexes of the log
    producers   those that the log knows; of others nothing is kept
    """

    def __init__(
        self, aborted: Iterable[AbortedTransaction], producers: Mapping[int, LastAppend]
    ) -> None:
        self._producers = producers
        self._aborted: dict[int, tuple[list[int], list[int]]] = {}
        for entry in sorted(aborted, key=lambda one: one.first_offset):
            firsts, lasts = self._aborted.setdefault(entry.producer_id, ([], []))
            firsts.append(entry.first_offset)
            lasts.append(entry.last_offset)
        self._met: set[int] = set()
        self._with_batches: set[int] = set()

    def is_aborted(self, batch: Batch) -> bool:
        """Whether a batch belongs to an aborted transaction."""
        if not batch.is_transactional:
            return False
        firsts, lasts = self._aborted.get(batch.producer_id, ((), ()))
        number = bisect_right(firsts, batch.base_offset) - 1
        return number >= 0 and batch.base_offset < lasts[number]

    def meet(self, batch: Batch) -> None:
        """The pass has come to a batch that is no marker."""
        if batch.is_transactional:
            self._met.add(batch.producer_id)

    def keeps_marker(self, batch: Batch, *, keep_tombstones: bool) -> bool:
        """Whether a marker stays."""
        has_batches = batch.producer_id in self._met
        self._met.discard(batch.producer_id)
        if has_batches:
            self._with_batches.add(batch.base_offset)
        known = self._producers.get(batch.producer_id)
        is_last = known is not None and known.offset == batch.last_offset
        return has_batches or keep_tombstones or is_last

    def keeps_entry(self, entry: AbortedTransaction) -> bool:
        """Whether an entry stays in the index of its segment, which the pass has copied."""
        return entry.last_offset in self._with_batches

    def has_last_sequence(self, batch: Batch) -> bool:
        """Whether a batch may have the last sequence of a producer that the log knows."""
        known = self._producers.get(batch.producer_id)
        return known is not None and batch.last_offset >= known.batch_offset
