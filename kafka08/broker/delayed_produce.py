"""DelayedProduce: an append that waits until enough replicas have it.

Over when no partition is pending any more. For a pending partition:
    A  this broker does not lead it any more (or does not have it): the error of that
    B  enough in-sync replicas have everything up to its end: success, or 20 if the ISR has become
       smaller than the topic's minimum meanwhile
Out of time, what is still pending is answered 7, although appended. Source:
kafka.server.DelayedProduce 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka08.broker.purgatory import DelayedOperation
from kafka08.errors import ApiError, RequestTimedOut
from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.broker.replica_manager import ReplicaManager


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What became of one partition's set.

    base_offset   offset of its first message; NO_OFFSET if the set was empty or not appended
    next_offset   the offset after its last message: what replicas must reach
    error         why not, or what happened after the append; None is success
    log_append_time_ms    the timestamp that this broker gave (LogAppendTime); -1 if it gave none
    """

    base_offset: int
    next_offset: int
    error: Exception | None = None
    log_append_time_ms: int = NO_TIMESTAMP


AppendResults = dict[TopicPartition, AppendResult]


class DelayedProduce(DelayedOperation):
    """Waits under its partitions; `done` hears the results, in the hub."""

    __slots__ = ("_done", "_pending", "_replica_manager", "_required_acks", "results")

    def __init__(
        self,
        replica_manager: ReplicaManager,
        required_acks: int,
        results: AppendResults,
        done: Callable[[AppendResults], object],
    ) -> None:
        self._replica_manager = replica_manager
        self._required_acks = required_acks
        self.results = results
        self._done = done
        self._pending = {tp for tp, result in results.items() if result.error is None}
        for tp in self._pending:
            self._settle(tp, RequestTimedOut(f"{tp} within the request's timeout"))

    def _settle(self, tp: TopicPartition, error: Exception | None) -> None:
        result = self.results[tp]
        self.results[tp] = AppendResult(
            result.base_offset, result.next_offset, error, result.log_append_time_ms
        )

    def is_satisfied(self) -> bool:
        self._pending = {tp for tp in self._pending if not self._check(tp)}
        return not self._pending

    def is_satisfied_by(self, key: Hashable) -> bool:
        if key in self._pending and self._check(key):
            self._pending.remove(key)
        return not self._pending

    def _check(self, tp: TopicPartition) -> bool:
        """Whether the partition needs no more waiting; its result is settled then."""
        try:
            partition = self._replica_manager.partition(tp)
            next_offset = self.results[tp].next_offset
            if not partition.acknowledged(next_offset, self._required_acks):
                return False
        except ApiError as error:
            self._settle(tp, error)
        else:
            self._settle(tp, None)
        return True

    def complete(self) -> None:
        self._done(self.results)
