"""A group member's state, and why it cannot settle."""

from __future__ import annotations

import enum

from kafka08.consumer.zookeeper.session import SessionGate
from kafka08.errors import ConsumerRebalanceFailed, KafkaError
from kafka08.runtime import ClientRuntime


class ConsumerState(enum.Enum):
    """The values of `ConsumerConnector.state`."""

    NEW = "has no streams yet"
    REBALANCING = "computing or claiming its assignment"
    SETTLED = "owns its whole assignment"
    STALLED = "could not settle within rebalance.max.retries × rebalance.backoff.ms; still trying"
    SUSPENDED = "the ZooKeeper session is in doubt: nothing is delivered or committed"
    CLOSED = "shut down"


class ConsumerStatus:
    """Shared by the parts of one connector. Thread-safe.

    A stall has a number, so that each stream raises it once.
    """

    def __init__(self, consumer_id: str, gate: SessionGate, runtime: ClientRuntime) -> None:
        self._consumer_id = consumer_id
        self._gate = gate
        self._lock = runtime.rlock()
        """Re-entrant: a signal handler may shut down in a thread that holds it."""
        self._state = ConsumerState.NEW
        self._stalls = 0
        self._cause: KafkaError | None = None

    @property
    def state(self) -> ConsumerState:
        in_group = self._state not in {ConsumerState.NEW, ConsumerState.CLOSED}
        return ConsumerState.SUSPENDED if in_group and not self._gate.is_open else self._state

    @property
    def stall_cause(self) -> KafkaError | None:
        """Why the member is STALLED; None if it is not."""
        return self._cause

    def deadline(self) -> float:
        """Monotonic time until which messages may be returned."""
        return self._gate.deadline()

    def stall(self) -> tuple[int, KafkaError | None]:
        """The number of the latest stall and the error to raise for it; None if there is none."""
        with self._lock:
            return self._stalls, self._cause

    def rebalancing(self) -> None:
        with self._lock:
            if self._state in {ConsumerState.NEW, ConsumerState.SETTLED}:
                self._state = ConsumerState.REBALANCING

    def settled(self) -> None:
        with self._lock:
            self._state, self._cause = ConsumerState.SETTLED, None

    def stalled(self, cause: Exception) -> bool:
        """Note that the member cannot settle; False if that was known."""
        with self._lock:
            if self._state in {ConsumerState.STALLED, ConsumerState.CLOSED}:
                return False
            self._state = ConsumerState.STALLED
            self._stalls += 1
            self._cause = ConsumerRebalanceFailed(
                f"{self._consumer_id} can't rebalance, but keeps trying: {cause}"
            )
            self._cause.__cause__ = cause
            return True

    def closed(self) -> None:
        with self._lock:
            self._state, self._cause = ConsumerState.CLOSED, None
