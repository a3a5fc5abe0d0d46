"""RefusedStates: what LeaderAndIsr requests said of partitions for which the system refused a file.

A controller sends a state once, and does not look at its error. So the broker keeps the state and
applies it again, until it succeeds or a later request replaces it. 0.8.2.2 halts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from kafka08.errors import FileRefused
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.structs import TopicPartition

RETRY_MS: Final = 10_000
"""Time between two attempts."""

state_change_log = logging.getLogger("state.change.logger")


class RefusedStates:
    """At most one state for each partition: that of its latest leader epoch."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._states: dict[TopicPartition, PartitionStateInfo] = {}

    def __iter__(self) -> Iterator[PartitionStateInfo]:
        return iter(list(self._states.values()))

    def tried(self, state: PartitionStateInfo, error: FileRefused | None) -> None:
        """The broker has tried to apply a state. The first error of a state is logged."""
        topic_partition = TopicPartition(state.topic, state.partition)
        kept = self._states.get(topic_partition)
        if kept is not None and kept.leader_epoch > state.leader_epoch:
            return  # a request that was late
        if error is None:
            self.forget(topic_partition)
            return
        if kept is not state:
            state_change_log.error(
                "Broker %d refuses partition %s: %s. Remove the cause, and this broker tries again "
                "within %d s; or delete the topic",
                self._broker_id,
                topic_partition,
                error,
                RETRY_MS // 1000,
            )
        self._states[topic_partition] = state

    def forget(self, topic_partition: TopicPartition) -> None:
        """The controller has stopped the replica, or elected another leader."""
        self._states.pop(topic_partition, None)
