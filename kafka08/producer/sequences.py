"""Sequences: the numbers by which brokers from 0.11 on store each record of a partition once.

Pure. A batch keeps the producer id, epoch and sequence with which it was first sent: a broker that
has stored it knows it by them. After a batch has ended without being stored, the numbers behind it
can never be taken: then the partition goes on from 0 under the next epoch, of the same id. But not
before it is known that no batch behind it is stored, or such a batch would be stored twice: until
then they are sent again one by one, as they were. The broker refuses the first that it lacks
(OutOfOrderSequence), and with it all behind.

In a transaction only the coordinator gives epochs: what ends without being stored fails it, nothing
more of it is sent, and the abort gets the next identity (`restart`).

A broker that knows nothing of a producer takes its first batch whatever the sequence (from 2.5 on).
So the first one goes alone: behind one that the leader has refused, because it led not yet, the
second would be stored in its place.

A topic of an older message format has no place for the numbers (UnsupportedForMessageFormat). Where
they are wanted and not required, its partition goes on without: one request at a time, in order.

Source: org.apache.kafka.clients.producer.internals.TransactionManager 2.8.2, which begins the next
epoch without waiting, and sends five batches to a broker that does not know it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import takewhile
from typing import Final

from kafka08.config import INT_MAX
from kafka08.errors import (
    ApiError,
    KafkaError,
    NotEnoughReplicas,
    OutOfOrderSequence,
    UnknownError,
    UnknownProducerId,
    UnsupportedForMessageFormat,
)
from kafka08.producer.batch import RecordBatch
from kafka08.producer.idempotence import EPOCH_MAX, UNACKNOWLEDGED_MAX, Identity

UNNUMBERED: Final = (-1, -1, -1)
"""`sent_as` of a batch that had a sequence, and is sent without."""


def is_numbered(batch: RecordBatch) -> bool:
    """Whether the broker that a batch was sent to stores it once."""
    return batch.sent_as is not None and batch.sent_as is not UNNUMBERED


def may_be_stored(error: KafkaError) -> bool:
    """Whether a batch with this error may be in the log. One that passes may have come up after the
    append, while the leader waited for its followers: that it leads no more
    (NotLeaderForPartition), or has no replica any more (UnknownTopicOrPartition)."""
    if not isinstance(error, ApiError) or type(error) is UnknownError:
        return True
    return error.retriable and type(error) is not NotEnoughReplicas


class Sequences:
    """Those of one partition. The caller holds the accumulator's lock.

    is_required   False: without them where the topic cannot have them
    identity      with which the next batch is sent; None before the first
    unacked       the batches that have a sequence and no result yet, in their order
    """

    __slots__ = ("_is_broken", "_is_refused", "_is_required", "_is_unsure", "_known_as", "_next",
                 "identity", "unacked")  # fmt: skip

    def __init__(self, *, is_required: bool = True) -> None:
        self._is_required = is_required
        self._is_refused = False
        """The topic cannot have them."""
        self.identity: Identity | None = None
        self.unacked: deque[RecordBatch] = deque()
        self._next = 0
        self._known_as: int | None = None
        """The producer id with which the partition has stored a batch."""
        self._is_broken = False
        """A batch has ended: those behind it need the next epoch."""
        self._is_unsure = False
        """Some of those may be stored."""

    @property
    def are_used(self) -> bool:
        """Whether the partition's batches get them, as far as is known."""
        return self.identity is not None and not self._is_refused

    def may_send(self, batch: RecordBatch, in_flight: int) -> bool:
        """Whether the first batch of the queue may be sent, with so many in flight. A batch that is
        sent again goes before those behind it, by itself."""
        if self._is_refused:
            if in_flight:
                return False
            for one in self.unacked:
                one.sent_as = UNNUMBERED
            self.unacked.clear()
            return True
        if self._is_broken and not in_flight and (not self._is_unsure or not self.unacked):
            self._begin_epoch()
        if batch.sent_as is not None:
            return batch is self.unacked[0] and not (self._is_broken and in_flight)
        if not self.unacked:
            return not self._is_broken
        is_known = self.identity is not None and self.identity.producer_id == self._known_as
        return is_known and not self._is_broken and len(self.unacked) < UNACKNOWLEDGED_MAX

    def give(self, batch: RecordBatch, identity: Identity) -> None:
        """Number a batch that is sent for the first time; `identity`: the newest one."""
        if self._is_refused:
            return
        if self.identity is None or (
            not self.unacked and identity.producer_id != self.identity.producer_id
        ):
            self.identity, self._next = identity, 0
        batch.sent_as = (*self.identity, self._next)
        self._next = (self._next + batch.count) & INT_MAX
        self.unacked.append(batch)

    def put_back(self, batch: RecordBatch, queued: deque[RecordBatch]) -> None:
        """Return a batch with a sequence to its place among those that will be sent."""
        before = {id(one) for one in takewhile(lambda one: one is not batch, self.unacked)}
        place = sum(1 for _ in takewhile(lambda one: id(one) in before, queued))
        queued.insert(place, batch)

    def replace(self, batch: RecordBatch, parts: Iterable[RecordBatch]) -> None:
        """Other batches have its sequences now, in their order."""
        if batch in self.unacked:
            place = self.unacked.index(batch)
            del self.unacked[place]
            for number, part in enumerate(parts, place):
                self.unacked.insert(number, part)

    def passes(self, batch: RecordBatch, error: KafkaError) -> bool | None:
        """Whether a batch with this error is sent again, whatever the number of its attempts; None:
        as without sequences."""
        if batch not in self.unacked:
            return None
        if isinstance(error, UnsupportedForMessageFormat) and not self._is_required:
            self._is_refused = True
            return True
        if isinstance(error, OutOfOrderSequence):
            if batch is not self.unacked[0]:
                return True  # one in front of it is on its way
            if self._is_broken:
                self._is_unsure = False
                return True
            return False  # the broker lacks what it had
        if isinstance(error, UnknownProducerId):
            self._known_as = None
            if batch is not self.unacked[0]:
                return True
            if batch.attempts:
                return None  # it may have been stored before it was forgotten
            self._is_broken, self._is_unsure = True, False
            return True
        return None

    def end(self, batch: RecordBatch, error: KafkaError | None) -> None:
        """The batch has its result."""
        if batch.sent_as is None or batch not in self.unacked:
            return
        self.unacked.remove(batch)
        if error is None:
            self._known_as = batch.sent_as[0]
        else:
            # An attempt before this one may have stored it, and so those behind it.
            self._is_unsure = self._is_unsure or batch.attempts > 0 or may_be_stored(error)
            self._is_broken = True

    def restart(self) -> None:
        """Begin anew with the next identity."""
        self.unacked.clear()
        self.identity = None
        self._is_broken = self._is_unsure = False

    def _begin_epoch(self) -> None:
        for batch in self.unacked:
            batch.sent_as = None
        self.unacked.clear()
        self._next = 0
        self._is_broken = self._is_unsure = False
        if self.identity is not None:
            producer_id, epoch = self.identity
            self.identity = Identity(producer_id, epoch + 1) if epoch < EPOCH_MAX else None
