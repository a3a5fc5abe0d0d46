"""The rule that a parked request is answered: none waits beyond its timeout, and none for what is
there already. A request that misses its event would be answered at its timeout, and nobody would
notice but by the delay.

Checked ten times a second. The checks read the memory of the brokers, between two of their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kafka08.broker.purgatory.delayed_fetch import DelayedFetch, DelayedFollowerFetch
from kafka08.broker.purgatory.delayed_produce import DelayedProduce
from kafka08.broker.purgatory.purgatory import DelayedOperation
from kafka08.broker.replica.partition import Partition
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Scheduler
from kafka08.structs import TopicPartition

CHECK_S: Final = 0.1
CHECKS: Final = 2
"""In so many checks, one after the other, a request may be seen that could be answered."""
OVERDUE_MS: Final = 100.0


class ParkedChecks:
    """on_violation   called with a sentence that describes a violation"""

    def __init__(
        self,
        scheduler: Scheduler,
        brokers: Sequence[SimBroker],
        on_violation: Callable[[str], object],
    ) -> None:
        self._scheduler = scheduler
        self._brokers = brokers
        self._on_violation = on_violation
        self._seen: dict[DelayedOperation, int] = {}
        """Requests that could be answered → in how many checks."""
        self._check_periodically()

    def _check_periodically(self) -> None:
        before, self._seen = self._seen, {}
        for broker in self._brokers:
            process = broker.process
            if process is not None and not process.is_dead and not process.is_stopped:
                self._check(broker, process, before)
        self._scheduler.call_later(CHECK_S, self._check_periodically)

    def _check(
        self, broker: SimBroker, process: Process, before: dict[DelayedOperation, int]
    ) -> None:
        late = process.monotonic() * 1000 - OVERDUE_MS
        for operation, due in broker.parked():
            if due < late:
                self._on_violation(
                    f"{process.name}: a request is parked {late + OVERDUE_MS - due:.0f} ms beyond "
                    f"its timeout: {type(operation).__name__}"
                )
            elif (ready := _ready(broker, operation)) is not None:
                count = self._seen[operation] = before.get(operation, 0) + 1
                if count > CHECKS:
                    self._on_violation(
                        f"{process.name}: a {type(operation).__name__} of {ready} is parked, "
                        "though it could be answered"
                    )


def _ready(broker: SimBroker, operation: DelayedOperation) -> TopicPartition | None:
    """A partition for which a request could be answered; None if there is none."""
    if isinstance(operation, DelayedProduce):
        pending = operation._pending.items()
        reached = [
            tp
            for tp, end in pending
            if (of := _led(broker, tp)) is not None and of.high_watermark >= end
        ]
        is_negative = operation._required_acks < 0
        return reached[0] if is_negative and 0 < len(reached) == len(pending) else None
    return next(_readable(broker, operation), None)


def _readable(broker: SimBroker, operation: DelayedOperation) -> Iterator[TopicPartition]:
    if isinstance(operation, DelayedFollowerFetch):
        for partition, offset in zip(operation._partitions, operation._offsets, strict=True):
            log = partition.log
            if (
                partition.is_leader
                and log is not None
                and log.log_end_offset > offset
                # What flush.messages has synced first is announced to followers after that.
                and log.log_end_offset - log.recovery_point < log.config.flush_messages
            ):
                yield partition.topic_partition
    elif isinstance(operation, DelayedFetch) and operation._min_bytes <= 1:
        for tp, start in operation._starts.items():
            offset = start if isinstance(start, int) else start.offset
            led = _led(broker, tp)
            if led is None or led.log is None or operation._from_follower:
                continue
            end = led.last_stable_offset if operation._stable_only else led.high_watermark
            if end > offset:
                yield tp


def _led(broker: SimBroker, tp: TopicPartition) -> Partition | None:
    partition = broker.partition(tp)
    return partition if partition is not None and partition.is_leader else None
