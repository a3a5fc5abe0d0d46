"""LogCreator: logs for partitions that come to this broker, with their topics' configurations.

Source: kafka.cluster.Partition.getOrCreateReplica 0.8.2.2, which reads the configuration of each
partition's topic from ZooKeeper in turn.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kafka08.errors import Closed, SessionLost
from kafka08.log.files import make_directories
from kafka08.log.manager import LogManager
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.yielding import yielding_batches
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.log.log import Log
    from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

ZOOKEEPER_RETRY_S: Final = 1.0
"""Pause before topic configurations are read again."""


class LogCreator:
    """Applies topics' configurations and creates logs. Both switch, and raise Closed once `stop`
    was called: the logs are about to be closed then."""

    def __init__(
        self, broker_id: int, runtime: BrokerRuntime, log_manager: LogManager, store: ClusterStore
    ) -> None:
        self._broker_id = broker_id
        self._runtime = runtime
        self._log_manager = log_manager
        self._store = store
        self._stopping = False

    def configure(self, topics: Sequence[str]) -> None:
        """Apply the overrides in ZooKeeper to topics, all read in one burst. A topic whose change
        arrives while they are read has newer ones already, and keeps them."""
        manager = self._log_manager
        before = {topic: manager.begin_config(topic) for topic in topics}
        configs = self._read_configs(topics) if topics else {}
        for turn in yielding_batches(topics, self._runtime):
            self._check()
            for topic in turn:
                if manager.config_of(topic) is before[topic]:
                    manager.update_topic_config(topic, configs.get(topic, {}))

    def get_or_create(self, topic_partition: TopicPartition) -> Log:
        """The log of a partition. Of all calls to the disk the one that makes its directory takes
        longest, often some milliseconds: other tasks run meanwhile."""
        manager = self._log_manager
        if manager.get(topic_partition) is None:
            path = manager.new_path(topic_partition)
            self._runtime.run_native(make_directories, manager.disk, path)
            self._check()
        return manager.get_or_create(topic_partition)

    def stop(self) -> None:
        """Create no more logs."""
        self._stopping = True

    def _read_configs(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        """Their overrides, however long ZooKeeper is unavailable: a controller sends a state once,
        and does not check the result."""
        while True:
            self._check()
            try:
                return self._store.topic_configs(topics)
            except SessionLost as error:
                logger.warning(
                    "Broker %d continues once ZooKeeper is back: %s", self._broker_id, error
                )
                self._runtime.sleep(ZOOKEEPER_RETRY_S)

    def _check(self) -> None:
        if self._stopping:
            raise Closed(f"broker {self._broker_id} is stopping and creates no logs")
