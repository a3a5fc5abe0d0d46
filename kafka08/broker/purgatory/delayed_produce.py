"""DelayedProduce: an append that waits until enough replicas have it.

It completes when no partition is pending. For a pending partition:
    A  this broker no longer leads it (or no longer has it): that error
    B  enough in-sync replicas have everything up to its end: success, or 20 if the ISR has become
       smaller than the topic's minimum
On timeout partitions that are still pending get error 7, although appended. Source:
kafka.server.DelayedProduce 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kafka08.broker.purgatory.purgatory import DelayedOperation
from kafka08.broker.replica.partition import Partition
from kafka08.errors import NO_ERROR, ApiError, Refusal, RequestTimedOut
from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.structs import TopicPartition


@dataclass(slots=True)
class AppendResult:
    """The result for one partition's set. Never changed.

    base_offset   offset of its first message; NO_OFFSET if the set was empty or not appended
    next_offset   the offset after its last message, which replicas must reach; NO_OFFSET if the
                  wait for them is over
    error         why it was not appended, or what followed the append; None: success
    log_append_time_ms    this broker's timestamp (LogAppendTime); -1 if there is none
    """

    base_offset: int
    next_offset: int
    error: Refusal | None = None
    log_append_time_ms: int = NO_TIMESTAMP

    @property
    def error_code(self) -> int:
        return NO_ERROR if self.error is None else self.error.code


AppendResults = dict[TopicPartition, AppendResult]
AppendErrors = dict[TopicPartition, Refusal]
"""Errors of partitions after the append."""


def with_errors(results: AppendResults, errors: AppendErrors) -> AppendResults:
    """The results, with these errors."""
    return {
        tp: replace(result, error=errors[tp]) if tp in errors else result
        for tp, result in results.items()
    }


class DelayedProduce(DelayedOperation):
    """Waits for its partitions; calls `done` with the errors, in the hub.

    partition   finds a partition, or raises the error of one that is gone
    pending     partition → the offset after its set, for unsettled partitions
    """

    __slots__ = ("_done", "_errors", "_partition", "_pending", "_required_acks")

    def __init__(
        self,
        partition: Callable[[TopicPartition], Partition],
        required_acks: int,
        pending: dict[TopicPartition, int],
        done: Callable[[AppendErrors], object],
    ) -> None:
        self._partition = partition
        self._required_acks = required_acks
        self._pending = pending
        self._errors: AppendErrors = {}
        self._done = done

    def is_satisfied(self) -> bool:
        for tp in list(self._pending):
            self.is_satisfied_by(tp)
        return not self._pending

    def is_satisfied_by(self, key: TopicPartition) -> bool:
        pending = self._pending
        required = pending.get(key)
        if required is not None:
            try:
                partition = self._partition(key)
                if not partition.acknowledged(required, self._required_acks):
                    return False
            except ApiError as error:
                self._errors[key] = Refusal.of(error)
            del pending[key]
        return not pending

    def complete(self) -> None:
        for tp in self._pending:
            timed_out = RequestTimedOut(f"{tp} within the request's timeout")
            self._errors[tp] = Refusal.of(timed_out)
        self._done(self._errors)
