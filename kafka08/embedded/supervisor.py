"""Supervisor: the main loop of `kafka08 up`.

When a broker dies, it reports that and continues, and it keeps the state up to date that other
commands read. It has the requests of other commands executed (cluster_control.py), since the
brokers are children of its process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka08.embedded.broker_state import BrokerState
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.embedded.cluster_control import ClusterControl
from kafka08.embedded.control import ControlServer
from kafka08.embedded.detached import ClusterDirectory, ClusterState
from kafka08.errors import KafkaError

logger = logging.getLogger(__name__)

POLL_S = 0.2


class Supervisor:
    """Watches one cluster that has been started.

    directory  the cluster's directory, claimed by this process
    control    receives the requests of other commands
    tell       is called with the state of each broker that dies
    http       the address of the control server for other programs; "" without one
    verbs      what may be asked of the cluster
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
        self.http = ""
        self.verbs = ClusterControl(cluster, self._keep_state)

    def announce(self) -> ClusterState:
        """Write the state that other commands read."""
        cluster = self._cluster
        return self._directory.announce(
            cluster.zookeeper.connect_string,
            cluster.bootstrap,
            tuple(broker.state for broker in cluster.brokers),
            self.http,
        )

    def run(self, is_stopping: Callable[[], bool]) -> None:
        """Watch and serve until `is_stopping`. KafkaError, with the end of a log, if ZooKeeper or
        the last running broker has died."""
        while not is_stopping():
            self._control.serve(self.verbs.execute, POLL_S)
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

    def _keep_state(self) -> None:
        """`announce`, unless the disk is full: the cluster itself continues."""
        try:
            self.announce()
        except OSError as error:
            logger.warning("`kafka08 status` shows an old state of the brokers: %s", error)
