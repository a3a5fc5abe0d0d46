"""The rule that a move has a result: a request to move a partition stays in ZooKeeper until the
partition is assigned as requested, or the controller has a reason to refuse it.

The reasons are those of 0.8.2.2: the topic is gone or being deleted, the partition never had a
leader, or a requested broker was not alive, or being stopped. A controller learns late of a broker
that is back, so the broker may have been away a while ago. A refused move that another controller
had begun leaves its old and its new replicas assigned, as in 0.8.2.2; `topic_checks` awaits that
all are in sync.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from kafka08.errors import ZooKeeperError
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.recovery_conditions import assignment_of
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths

CHECK_S: Final = 0.1
AWAY_S: Final = 20.0
"""A broker that was away in so many seconds may be refused as the target of a move."""


class MoveChecks:
    """on_violation   called with a sentence that describes a violation"""

    def __init__(
        self,
        scheduler: Scheduler,
        zookeeper: SimZooKeeper,
        brokers: Sequence[SimBroker],
        on_violation: Callable[[str], object],
    ) -> None:
        self._scheduler = scheduler
        self._zookeeper = zookeeper
        self._brokers = brokers
        self._on_violation = on_violation
        self._wanted: Mapping[TopicPartition, tuple[int, ...]] = {}
        self._registrations: dict[int, int] = {}
        """Broker id → the zxid of its registration."""
        self._away: dict[int, float] = {}
        """Broker id → when it was last seen without a registration, with a new one, or stopping."""
        self._watch_periodically()

    def _watch_periodically(self) -> None:
        self._watch_registrations()
        self._scheduler.call_later(CHECK_S, self._watch_periodically)

    def _watch_registrations(self) -> None:
        for broker in self._brokers:
            znode = self._zookeeper.server.find(paths.broker(broker.id))
            is_new = znode is not None and znode.czxid != self._registrations.get(broker.id)
            if znode is None or is_new or broker.is_stopping:
                self._away[broker.id] = self._scheduler.now
            if znode is not None:
                self._registrations[broker.id] = znode.czxid

    def check(self, writer: str) -> None:
        """The request was written or removed, perhaps without an effect."""
        self._watch_registrations()
        znode = self._zookeeper.server.find(paths.REASSIGN_PARTITIONS)
        now: Mapping[TopicPartition, tuple[int, ...]] = {}
        if znode is not None and znode.data is not None:
            with suppress(ZooKeeperError):  # a stranger's
                now = nodes.decode_reassignment(znode.data.decode())
        for tp, replicas in self._wanted.items():
            if tp not in now:
                self._check_end(tp, replicas, writer)
        self._wanted = now

    def _check_end(self, tp: TopicPartition, wanted: tuple[int, ...], writer: str) -> None:
        find = self._zookeeper.server.find
        if find(paths.topic(tp.topic)) is None or find(paths.delete_topic(tp.topic)) is not None:
            return
        has = assignment_of(self._zookeeper, tp.topic).get(tp.partition)
        if has is None or has == wanted or self._zookeeper.leader_and_isr(tp) is None:
            return
        latest = max(self._away.get(broker_id, 0.0) for broker_id in wanted)
        if self._scheduler.now - latest > AWAY_S:
            self._on_violation(
                f"{writer} removed the request to move {tp} to {list(wanted)}, but it is assigned "
                f"to {list(has)}, and all of these brokers are registered"
            )
