"""MissedRestart: finds out that the controller has not noticed that this process is a new one.

A broker that was killed is registered again within milliseconds of the end of its former session. A
controller of the JVM compares the ids in /brokers/ids when its event thread is free, finds the same
ones as before, and sends nothing: this process gets no partition, and no other broker leads those
of the former one. (0.8.2.2 itself sleeps a session timeout before it registers again.) So a broker
waits for the states of its logs, and for metadata, which clients ask it for also if it has no log.
If some of this does not come, though ZooKeeper has it, it leaves /brokers/ids for as long as a
session timeout, and comes back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafka08.broker.cluster.registration import RegistrationKeeper
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.errors import ZooKeeperError
from kafka08.runtime import BrokerRuntime, Greenlet
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

CHECK_S: Final = 5.0
"""Two checks with the same result: a controller that is still sending states is left alone."""
ATTEMPTS: Final = 3
"""Each is twice as long away. More would not help where a state is missing for another reason."""


class MissedRestart:
    """Watches over the states of the partitions that have a log when this broker registers.

    has_metadata   whether a controller has sent any
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        store: ClusterStore,
        replica_manager: ReplicaManager,
        registration: RegistrationKeeper,
        has_metadata: Callable[[], bool],
        *,
        away_s: float,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._replica_manager = replica_manager
        self._registration = registration
        self._has_metadata = has_metadata
        self._away_s = away_s
        self._loaded: list[TopicPartition] = []
        self._task: Greenlet | None = None

    def start(self) -> None:
        """Begin, right after the first registration. Later sessions of this process keep its
        states."""
        self._loaded = list(self._replica_manager.log_manager.logs)
        self._task = self._runtime.spawn(self._watch, name="missed-restart")

    def stop(self) -> None:
        if self._task is not None:
            self._task.kill()

    def _watch(self) -> None:
        attempts, before = 0, -1
        while True:
            self._runtime.sleep(CHECK_S)
            try:
                missing = self._missing()
            except ZooKeeperError as error:
                logger.warning("Cannot check for a missed restart yet: %s", error)
                continue
            if missing == 0:
                return
            if missing is None or missing != before:
                before = -1 if missing is None else missing
                continue
            if attempts == ATTEMPTS:
                break
            seconds = self._away_s * 2**attempts
            attempts, before = attempts + 1, -1
            logger.warning(
                "The controller has not sent the states of %d partitions to broker %d: it has "
                "probably not seen the restart. The broker leaves /brokers/ids for %g s",
                missing,
                self._replica_manager.broker_id,
                seconds,
            )
            self._registration.register_anew(seconds)
        logger.error(
            "Broker %d still lacks states of partitions. Stop it, and start "
            "it when /brokers/ids does not have it any more, or restart the controller",
            self._replica_manager.broker_id,
        )

    def _missing(self) -> int | None:
        """The number of partitions without a state, though they are assigned to this broker; of all
        partitions if it has no metadata; None while there is no controller that could have sent
        them. Switches. ZooKeeperError."""
        manager, me = self._replica_manager, self._replica_manager.broker_id
        left = [tp for tp in self._loaded if manager.find(tp) is None]
        if not left and self._has_metadata():
            return 0
        controller = self._store.controller()
        if controller is None or controller.broker_id not in self._store.broker_ids():
            return None
        if controller.broker_id == me:
            return 0  # it has just begun its term, with a look at all partitions
        if not left:
            return sum(map(len, self._store.readable_assignments().values()))
        assignments = self._store.readable_assignments(sorted({tp.topic for tp in left}))
        deleted = set(self._store.topics_to_delete())
        return sum(
            me in assignments.get(tp.topic, {}).get(tp.partition, ())
            for tp in left
            if tp.topic not in deleted
        )
