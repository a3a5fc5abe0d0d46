"""UnconfirmedLeaderships: which partitions other brokers may lead since this one lost its session.

The controller elects other leaders when a broker's ZooKeeper session ends. The broker hears of them
only from its requests, which may be late, or never arrive. Until then it would go on leading, with
a new session: 0.8.2.2 does. So when it registers again, each partition that it leads is in doubt,
until

    - the controller has named its leader, over a connection that it opened since, or
    - ZooKeeper, asked every second, names a successor: the leadership ends, or
    - ZooKeeper has named this broker CHECKS times: the controller does not seem to have noticed.

Partitions are in doubt, too, while the session may have expired. A broker in doubt sends nothing
that only the leader may know.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka08.broker.cluster.metadata_cache import MetadataCache
from kafka08.broker.replica.partition import Partition
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.errors import ZooKeeperError
from kafka08.network.server_connection import NUMBERS
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.runtime import BrokerRuntime, Greenlet
from kafka08.runtime.uncaught import uncaught
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches
from kafka08.structs import LeaderAndIsr, TopicPartition

if TYPE_CHECKING:
    from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

CHECK_S: Final = 1.0
CHECKS: Final = 10


class Led(NamedTuple):
    """A partition that this broker led when it registered again: its leader epoch, and its state in
    the metadata. A topic that is created again has other partitions."""

    partition: Partition
    leader_epoch: int
    known: PartitionStateInfo | None


class UnconfirmedLeaderships:
    """The partitions of one broker that are in doubt."""

    def __init__(
        self,
        runtime: BrokerRuntime,
        store: ClusterStore,
        cache: MetadataCache,
        replica_manager: ReplicaManager,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._cache = cache
        self._replica_manager = replica_manager
        self._session: int | None = None
        """The session that `_led` is about."""
        self._since = -1
        """Connections with a lower number were accepted before it began."""
        self._led: dict[TopicPartition, Led] = {}
        self._checks = 0
        self._task: Greenlet | None = None
        self._is_asking = False

    def is_unconfirmed(self, topic_partition: TopicPartition) -> bool:
        """Whether another broker may lead a partition that this one believes to lead. Never
        switches."""
        zk = self._store.zk
        return (
            not zk.may_have_session
            # Connected again in another session, in which it is about to register.
            or zk.session_id != self._session
            or self._is_in_doubt(topic_partition)
        )

    def session_begins(self) -> None:
        """This broker is about to register, in a new session. Never switches."""
        self._session = self._store.zk.session_id
        # Drawn from the numbers of connections: those accepted from now on have a higher one.
        self._since = next(NUMBERS)
        self._checks = 0
        self._led = {}
        self._doubt(self._replica_manager)

    @contextmanager
    def hearing(self, states: Iterable[PartitionStateInfo], connection: int) -> Iterator[None]:
        """Around a request of the controller that names leaders, over a connection with that
        number. If it was accepted before the session began, the controller may have sent this
        before it noticed the end of the last one: what was in doubt stays so."""
        doubted: list[Partition] = []
        if self._led and connection < self._since:
            named = (TopicPartition(state.topic, state.partition) for state in states)
            doubted = [self._led[tp].partition for tp in named if tp in self._led]
        try:
            yield
        finally:
            # The request has raised their epochs, which ends a doubt, also if it fails behind that:
            # begin it again under the new ones.
            self._doubt(doubted)

    def _doubt(self, partitions: Iterable[Partition]) -> None:
        self._led |= {
            partition.topic_partition: Led(
                partition,
                partition.leader_epoch,
                self._cache.partition_state(partition.topic_partition),
            )
            for partition in partitions
            if partition.is_leader
        }
        if self._led and not self._is_asking:
            self._is_asking = True
            self._task = self._runtime.spawn(self._run, name="unconfirmed-leaderships")

    def stop(self) -> None:
        """Stop asking."""
        if self._task is not None:
            self._task.kill()

    def _run(self) -> None:
        """Ask until nothing is in doubt, then end."""
        try:
            while self._led:
                self._check()
                self._runtime.sleep(CHECK_S)
                self._led = {tp: led for tp, led in self._led.items() if self._is_in_doubt(tp)}
        finally:
            self._is_asking = False

    def _check(self) -> None:
        """Ask ZooKeeper once, and stop leading what others lead. Switches."""
        led = self._led
        states: dict[TopicPartition, LeaderAndIsr] = {}
        try:
            self._store.catch_up()
            for turn in yielding_batches(list(led), self._runtime, PARTITIONS_AT_ONCE):
                found = self._store.leader_and_isr(turn)
                self._hear(led, found)
                states |= found
        except ZooKeeperError as error:
            logger.warning(
                "Cannot check who leads %d partitions: %s. Trying again in %g s",
                len(led),
                error,
                CHECK_S,
            )
            return
        except Exception as error:  # noqa: BLE001 - a leader must hear of its successor
            text = "Error while checking who leads %d partitions"
            uncaught(self._runtime, error, logger, text, len(led))
            return
        if led is not self._led:
            return  # another session has begun meanwhile
        self._checks += 1
        # The third case of the header. A state of a later epoch that names no other leader keeps
        # the doubt: a request with it is still to come.
        if self._checks >= CHECKS:
            self._led = {
                tp: one
                for tp, one in led.items()
                if tp in states and states[tp].leader_epoch > one.leader_epoch
            }

    def _hear(
        self,
        led: Mapping[TopicPartition, Led],
        states: Mapping[TopicPartition, LeaderAndIsr],
    ) -> None:
        """Stop leading what others lead. Never switches."""
        for tp, state in states.items():
            # Not what was deleted, and created again, while its state was on the way.
            if self._replica_manager.find(tp) is led[tp].partition:
                self._replica_manager.on_leader_announced(tp, state)

    def _is_in_doubt(self, topic_partition: TopicPartition) -> bool:
        led = self._led.get(topic_partition)
        partition = self._replica_manager.find(topic_partition)
        return (
            led is not None
            and partition is led.partition
            and partition.is_leader
            and partition.leader_epoch == led.leader_epoch
            and self._cache.partition_state(topic_partition) is led.known
        )
