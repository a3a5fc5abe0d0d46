"""DelayedDeletion: a deletion of records that waits until every live replica starts above them.

It completes when no partition is pending. For a pending partition:
    A  this broker no longer leads it (or no longer has it): that error
    B  the lowest log start of its live replicas has reached the offset
Source: kafka.server.DelayedDeleteRecords 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kafka08.broker.purgatory.purgatory import DelayedOperation
from kafka08.errors import NO_ERROR, ApiError
from kafka08.protocol.delete_records import NO_LOW_WATERMARK
from kafka08.structs import TopicPartition


class Deletion(NamedTuple):
    """The lowest log start of a partition's live replicas, and the error code."""

    low_watermark: int
    code: int = NO_ERROR


Deletions = dict[TopicPartition, Deletion]


class DelayedDeletion(DelayedOperation):
    """Waits for its partitions; calls `done` in the hub, also after its timeout.

    low_watermark   of a partition, or raises the error of one that is gone
    pending         partition → the offset that its replicas must reach
    results         of the partitions that are not pending
    """

    __slots__ = ("_low_watermark", "pending", "results")

    def __init__(
        self,
        low_watermark: Callable[[TopicPartition], int],
        pending: Mapping[TopicPartition, int],
        done: Callable[[], object],
    ) -> None:
        self._low_watermark = low_watermark
        self.complete = done
        self.pending = dict(pending)
        self.results: Deletions = {}

    def is_satisfied(self) -> bool:
        for tp in list(self.pending):
            self.is_satisfied_by(tp)
        return not self.pending

    def is_satisfied_by(self, key: TopicPartition) -> bool:
        required = self.pending.get(key)
        if required is not None:
            try:
                found = Deletion(self._low_watermark(key))
            except ApiError as error:
                found = Deletion(NO_LOW_WATERMARK, error.code)
            if found.code or found.low_watermark >= required:
                self.results[key] = found
                del self.pending[key]
        return not self.pending
