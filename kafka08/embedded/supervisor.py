"""Supervisor: the main loop of `kafka08 up`.

When a broker dies, it reports that and continues, and it keeps the state up to date that other
commands read. It executes the requests of `kafka08 up restart | kill | stop`, since the brokers are
children of its process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka08.embedded.broker import EmbeddedBroker
from kafka08.embedded.broker_state import BrokerState
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.embedded.control import ControlServer, Verb
from kafka08.embedded.detached import ClusterDirectory, ClusterState
from kafka08.errors import KafkaError

logger = logging.getLogger(__name__)

POLL_S = 0.2


class Supervisor:
    """Watches one cluster that has been started.

    directory  the cluster's directory, claimed by this process
    control    receives the requests of other commands
    tell       is called with the state of each broker that dies
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        directory: ClusterDirectory,
        control: ControlServer,
        tell: Callable[[BrokerState], None],
    ) -> None:
        self._cluster = cluster
        self._directory = directory
        self._control = control
        self._tell = tell

    def announce(self) -> ClusterState:
        """Write the state that other commands read."""
        cluster = self._cluster
        return self._directory.announce(
            cluster.zookeeper.connect_string,
            cluster.bootstrap,
            tuple(broker.state for broker in cluster.brokers),
        )

    def run(self, is_stopping: Callable[[], bool]) -> None:
        """Watch and serve until `is_stopping`. KafkaError, with the end of a log, if ZooKeeper or
        the last running broker has died."""
        while not is_stopping():
            self._control.serve(self.execute, POLL_S)
            self.look()

    def look(self) -> None:
        """Check which processes have died since the last call."""
        self._cluster.zookeeper.check_alive()
        dead = [broker for broker in self._cluster.brokers if broker.note_death()]
        if not dead:
            return
        self._keep_state()
        for broker in dead:
            self._tell(broker.state)
        if not any(broker.running for broker in self._cluster.brokers):
            raise KafkaError(f"no broker is running: {dead[-1].process.describe_failure()}")

    def execute(self, verb: Verb, broker_id: int) -> str:
        """Execute a request and return the broker's new state; a broker that does not run is not
        stopped again. KafkaError for an unknown id, and for a broker that cannot start."""
        broker = self._find(broker_id)
        if verb == "restart":
            self._restart(broker)
        elif broker.running:
            broker.kill() if verb == "kill" else broker.stop()
        self._keep_state()
        return str(broker.state)

    def _restart(self, broker: EmbeddedBroker) -> None:
        if not broker.running:
            # It registers again when its old session has expired, which may take some seconds.
            self._cluster.expire_session(broker)
        try:
            self._cluster.restart(broker)
        except KafkaError:
            # The requester gets the error; the cluster continues, even without any broker.
            broker.note_death()
            self._keep_state()
            raise

    def _keep_state(self) -> None:
        """`announce`, unless the disk is full: the cluster itself continues."""
        try:
            self.announce()
        except OSError as error:
            logger.warning("`kafka08 status` shows an old state of the brokers: %s", error)

    def _find(self, broker_id: int) -> EmbeddedBroker:
        brokers = {broker.id: broker for broker in self._cluster.brokers}
        if broker_id not in brokers:
            there = ", ".join(map(str, brokers))
            raise KafkaError(f"there is no broker {broker_id}; the cluster has: {there}")
        return brokers[broker_id]
