"""Brokers that can open no more files and connections for a while, and what is left of that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafka08.broker.replica.partition import Partition
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.runtime import World

STUCK_S: Final = 10.0
"""Longer than a broker that starts takes to make the logs of its replicas and to lead them."""


class Descriptors:
    """Which brokers lack them, and which ones did."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lacked: dict[SimBroker, float] = {}
        """When all replicas of the broker were current last."""

    def use_up(self, broker: SimBroker) -> None:
        broker.disk.lacks_descriptors = True
        self._world.network.without_descriptors[broker.host] = None
        self._lacked[broker] = self._world.network.scheduler.now

    def release(self, broker: SimBroker) -> None:
        broker.disk.lacks_descriptors = False
        self._world.network.without_descriptors.pop(broker.host, None)

    def stuck(self) -> Iterator[SimBroker]:
        """Brokers that could not make the log of a replica, or lead it. Each must start again, as
        its log says: the controller does not send the state again."""
        now = self._world.network.scheduler.now
        for broker, since in list(self._lacked.items()):
            if not broker.is_running or all(
                self._is_current(broker, partition) for partition in broker.partitions()
            ):
                self._lacked[broker] = now
            elif now - since > STUCK_S:
                del self._lacked[broker]
                yield broker

    def _is_current(self, broker: SimBroker, partition: Partition) -> bool:
        """Whether a replica has its log and, if it leads, its present epoch."""
        state = self._world.zookeeper.leader_and_isr(partition.topic_partition)
        is_behind = (
            state is not None
            and state.leader == broker.id
            and state.leader_epoch > partition.leader_epoch
        )
        return partition.log is not None and not is_behind
