"""IsrChangeNotifications: tells the controller which ISRs this broker has changed.

The controller reads the new states and sends them to all brokers. One notification has all changes
so far; it is written once no ISR has changed for BLACKOUT_S, or none was written for
INTERVAL_S. A controller of 0.8 never reads or removes notifications, so none is written for
it; the next controller reads all states anyway. Source:
ReplicaManager.maybePropagateIsrChanges 0.9.0.1 and 0.10.2.2.
"""

from __future__ import annotations

import logging
from typing import Final

from kafka08.errors import ZooKeeperError
from kafka08.runtime import BrokerRuntime
from kafka08.structs import TopicPartition
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

CHECK_MS: Final = 2500
BLACKOUT_S: Final = 5.0
INTERVAL_S: Final = 60.0


class IsrChangeNotifications:
    """The ISR changes of one broker that are not in a notification yet."""

    def __init__(self, runtime: BrokerRuntime, store: ClusterStore) -> None:
        self._runtime = runtime
        self._store = store
        self._changed: set[TopicPartition] = set()
        self._last_change = self._last_written = runtime.monotonic()

    def record(self, topic_partition: TopicPartition) -> None:
        """The new ISR of a partition is in ZooKeeper. Never switches."""
        self._changed.add(topic_partition)
        self._last_change = self._runtime.monotonic()

    def propagate(self) -> None:
        """Write a notification if it is due; called every CHECK_MS. Switches. After a failure the
        changes are in the next one."""
        now = self._runtime.monotonic()
        is_quiet = now - self._last_change > BLACKOUT_S
        if not self._changed or not (is_quiet or now - self._last_written > INTERVAL_S):
            return
        # Taken before the write switches: a change recorded meanwhile is for the next notification.
        changed, self._changed = self._changed, set()
        try:
            if self._store.controller_reads_isr_changes():
                self._store.notify_of_isr_changes(sorted(changed))
        except ZooKeeperError as error:
            logger.warning(
                "Cannot notify the controller of %d ISR changes: %s. Trying again later",
                len(changed),
                error,
            )
            self._changed |= changed
        else:
            self._last_written = now
