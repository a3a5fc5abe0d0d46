"""A whole cluster by one call: ZooKeeper and some broker processes on this machine.

    with EmbeddedCluster(brokers=3) as cluster:
        admin = AdminClient(zookeeper=cluster.zookeeper.connect_string)

For tests, the demo and `kafka08 up`. All processes start at the same time; brokers wait for
ZooKeeper by themselves. Nothing is left running, whichever way this process ends (guard.py).
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kafka08.client.cluster import ClusterClient
from kafka08.config import load_properties
from kafka08.embedded.broker import PROPERTIES, EmbeddedBroker
from kafka08.embedded.guard import Guard
from kafka08.embedded.ports import free_ports, is_free
from kafka08.embedded.zookeeper import ZooKeeperServer
from kafka08.errors import KafkaError
from kafka08.structs import Broker
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore

log = logging.getLogger(__name__)

START_SECONDS = 60.0
_POLL_SECONDS = 0.02

DEFAULTS: dict[str, str] = {
    # A broker may be up before ZooKeeper is, on a slow machine by far.
    "zookeeper.connection.timeout.ms": "30000",
    # Brokers keep one replica for now; the default of 3 would only be warned about.
    "offsets.topic.replication.factor": "1",
}
"""What an embedded broker has set besides Kafka's own defaults; `config` wins over it."""


class EmbeddedCluster:
    """ZooKeeper and `brokers` brokers with ids 0, 1, … on 127.0.0.1.

    config      Kafka keys for every broker
    data_dir    kept when given, and used again by a later cluster, at the same addresses if they
                are free; None: temporary, removed at stop
    """

    def __init__(
        self,
        brokers: int = 3,
        config: Mapping[str, Any] | None = None,
        data_dir: Path | str | None = None,
    ) -> None:
        self._temporary = data_dir is None
        self.data_dir = Path(data_dir or tempfile.mkdtemp(prefix="kafka08-cluster-")).absolute()
        self._count = brokers
        self._config = DEFAULTS | {key: str(value) for key, value in (config or {}).items()}
        self._guard = Guard(self.data_dir if self._temporary else None)
        self.zookeeper = ZooKeeperServer(
            self.data_dir / "zookeeper", durable=not self._temporary, guard=self._guard
        )
        self.brokers: list[EmbeddedBroker] = []

    @property
    def bootstrap(self) -> str:
        """`host:port,host:port` of all brokers, as metadata.broker.list takes it."""
        return ",".join(f"{broker.host}:{broker.port}" for broker in self.brokers)

    def start(self) -> None:
        """Start everything and wait until every broker answers with the whole cluster.

        KafkaError, with the end of the log of the process that failed, when it does not come up.
        """
        self.zookeeper.begin_start()
        self._start_brokers()
        connect = self.zookeeper.connect_string
        self.zookeeper.await_ready()
        if self.zookeeper.connect_string != connect:
            log.warning("ZooKeeper had to take another port; starting the brokers again")
            for broker in self.brokers:
                broker.kill()
            self._start_brokers()
        self.await_ready()

    def _start_brokers(self) -> None:
        fresh = free_ports(self._count, self.zookeeper.host)
        ports = [self._earlier_port(number) or port for number, port in enumerate(fresh)]
        self.brokers = [
            EmbeddedBroker(
                number,
                port,
                host=self.zookeeper.host,
                directory=self.data_dir / f"broker-{number}",
                zookeeper_connect=self.zookeeper.connect_string,
                config=self._config,
                guard=self._guard,
            )
            for number, port in enumerate(ports)
        ]
        for broker in self.brokers:
            broker.start()

    def _earlier_port(self, number: int) -> int | None:
        """The port this broker had in an earlier cluster on the same directory, if it is free.

        Its znode may still stand after a crash, and only the same address may take it over.
        """
        properties = self.data_dir / f"broker-{number}" / PROPERTIES
        if not properties.exists():
            return None
        port = int(load_properties(properties)["port"])
        return port if is_free(self.zookeeper.host, port) else None

    def await_ready(
        self, brokers: Sequence[EmbeddedBroker] | None = None, timeout: float = START_SECONDS
    ) -> None:
        """Until the brokers (None: those that were started) are registered, a controller is there,
        and each answers and knows all the others. KafkaError when one ends or time is up."""
        waited = [b for b in self.brokers if b.expected_running] if brokers is None else brokers
        if not waited:
            return
        deadline = time.monotonic() + timeout
        with ZkClient(self.zookeeper.connect_string, connection_timeout_ms=10_000) as zk:
            store = ClusterStore(zk)
            while not self._registered(store, waited):
                self._check_start(waited, deadline, timeout)
                time.sleep(_POLL_SECONDS)
            # 0.8: brokers hear of each other with the first partition, not before.
            expected = self._expected() if store.topics() else set()
        for broker in waited:
            while not _knows(broker, expected):
                self._check_start(waited, deadline, timeout)
                time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Stop brokers cleanly, then ZooKeeper, and remove what was temporary. Harmless twice."""
        for broker in self.brokers:
            broker.begin_stop()
        for broker in self.brokers:
            broker.stop()
        self.zookeeper.stop()
        self._guard.close()
        if self._temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def restart(self, broker: EmbeddedBroker) -> None:
        """Stop one broker cleanly (if it runs), start it again, and wait until it is ready."""
        broker.stop()
        broker.start()
        self.await_ready()

    def check_alive(self) -> None:
        """KafkaError, with the end of its log, for a process that ended although nobody asked."""
        self.zookeeper.check_alive()
        for broker in self.brokers:
            broker.check_alive()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _registered(self, store: ClusterStore, wanted: Sequence[EmbeddedBroker]) -> bool:
        registered = store.brokers()
        return store.controller() is not None and all(
            registered.get(broker.id) == broker.address for broker in wanted
        )

    def _expected(self) -> set[Broker]:
        return {broker.address for broker in self.brokers if broker.expected_running}

    def _check_start(
        self, brokers: Sequence[EmbeddedBroker], deadline: float, timeout: float
    ) -> None:
        self.check_alive()
        if time.monotonic() > deadline:
            late = [b for b in brokers if not b.accepts_connections()] or list(brokers)
            reports = "\n\n".join(b.process.describe_failure() for b in late)
            raise KafkaError(f"the cluster is not ready in {timeout:.0f} s\n{reports}")


def _knows(broker: EmbeddedBroker, expected: set[Broker]) -> bool:
    """Whether a client that asks this broker alone gets an answer with the `expected` ones."""
    client = ClusterClient([(broker.host, broker.port)], client_id="kafka08-embedded")
    try:
        client.refresh()
        return expected <= set(client.brokers())
    except KafkaError:
        return False
    finally:
        client.close()
