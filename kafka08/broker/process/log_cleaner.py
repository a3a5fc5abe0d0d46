"""CleanerWorkers: the greenlets that compact logs.

Reading, mapping and copying are native jobs beside the event loop, which only decides, renames and
writes one small file. Source: kafka.log.LogCleaner.CleanerThread 0.8.2.2.
"""

from __future__ import annotations

import logging
from typing import Final

from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.broker.settings.config import BrokerConfig
from kafka08.log.cleaner import LogCleaner
from kafka08.log.throttle import Throttle
from kafka08.runtime import BrokerRuntime, Greenlet
from kafka08.runtime.uncaught import uncaught

logger = logging.getLogger("kafka.log.LogCleaner")

SHORTEST_BACKOFF_S: Final = 0.01


class CleanerWorkers:
    """log.cleaner.threads greenlets, from `start` to `stop`, if log.cleaner.enable is set."""

    def __init__(
        self, config: BrokerConfig, runtime: BrokerRuntime, replica_manager: ReplicaManager
    ) -> None:
        self._replica_manager = replica_manager
        self._runtime = runtime
        self._count = config.log_cleaner_threads if config.log_cleaner_enable else 0
        self._backoff_s = max(SHORTEST_BACKOFF_S, config.log_cleaner_backoff_ms / 1000)
        self.cleaner = LogCleaner(
            replica_manager.log_manager,
            config.cleaner_config(),
            committed=replica_manager.committed_on_disk,
            clock=runtime,
            throttle=Throttle(config.log_cleaner_io_max_bytes_per_second, runtime),
            native=runtime.run_native,
        )
        self._tasks: list[Greenlet] = []

    def start(self) -> None:
        if self._count:
            logger.info("Starting the log cleaner")
            self._replica_manager.log_manager.cleaner_points.create_files()
        self._tasks = [
            self._runtime.spawn(self._work, name=f"kafka-log-cleaner-{number}")
            for number in range(self._count)
        ]

    def stop(self) -> None:
        """Kill them in their waits; a pass in progress is dropped. Call it before closing logs."""
        for task in self._tasks:
            task.kill()
        self._tasks.clear()

    def _work(self) -> None:
        while True:
            try:
                while self.cleaner.clean_one():
                    pass
            except Exception as error:  # noqa: BLE001 - a root
                uncaught(self._runtime, error, logger, "Error in the log cleaner")
            self._runtime.sleep(self._backoff_s)
