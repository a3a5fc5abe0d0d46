"""TopicConfigChanges: applies changed topic configurations while the broker runs.

A tool writes /config/topics/<topic> and then a sequential znode under /config/changes with the
topic's name. Each broker watches the children, reads new ones and updates the configuration of the
topic's logs. A broker that applies a change also removes notifications older than 15 minutes.
Source: kafka.server.TopicConfigManager 0.8.2.2.
"""

from __future__ import annotations

import logging
from typing import Final

from kafka08.errors import SessionLost, ZooKeeperError
from kafka08.levels import NEWEST
from kafka08.log.manager import LogManager
from kafka08.protocol_version import LATEST, ProtocolVersion
from kafka08.runtime import BrokerRuntime, Greenlet
from kafka08.runtime.uncaught import uncaught
from kafka08.topic_name import fault_of
from kafka08.zk import nodes, paths
from kafka08.zk.session import SessionEvent
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

EXPIRATION_MS: Final = 15 * 60 * 1000
RETRY_S: Final = 1.0


class TopicConfigChanges:
    """Applies changes in their order, each once, in one greenlet."""

    def __init__(
        self,
        runtime: BrokerRuntime,
        store: ClusterStore,
        log_manager: LogManager,
        protocol_version: ProtocolVersion = LATEST[NEWEST],
    ) -> None:
        """protocol_version   inter.broker.protocol.version"""
        self._runtime = runtime
        self._protocol_version = protocol_version
        self._zk = store.zk
        self._store = store
        self._log_manager = log_manager
        self._events = runtime.queue()
        self._last_executed = -1
        self._task: Greenlet | None = None

    def start(self) -> None:
        """Apply existing changes and start to watch."""
        self._events.put(None)
        self._zk.add_session_listener(self._on_session_event)
        self._task = self._runtime.spawn(self._run, name="topic-config-changes")

    def stop(self) -> None:
        if self._task is not None:
            self._task.kill()

    def _on_session_event(self, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED:
            self._events.put(event)  # the watch was lost with the old session

    def _run(self) -> None:
        while True:
            self._events.get()
            try:
                self._process(self._zk.watch_children(paths.CONFIG_CHANGES, self._events.put))
            except ZooKeeperError as error:
                logger.error(
                    "Error processing config change: %s. Trying again in %g s", error, RETRY_S
                )
            except Exception as error:  # noqa: BLE001 - later changes must be seen
                uncaught(self._runtime, error, logger, "Error processing config change")
            else:
                continue
            self._runtime.sleep(RETRY_S)
            self._events.put(None)

    def _process(self, names: list[str]) -> None:
        """Apply the new notifications among `names`; other znodes are ignored."""
        notifications = sorted(
            name for name in names if name.removeprefix(paths.CONFIG_CHANGE_PREFIX).isdecimal()
        )
        changed = False
        for name in notifications:
            number = int(name.removeprefix(paths.CONFIG_CHANGE_PREFIX))
            if number > self._last_executed:
                try:
                    changed |= self._apply(name, number)
                except SessionLost:
                    raise  # not an error of the change itself, which is read again
                except Exception as error:  # noqa: BLE001 - later changes must be applied
                    text = "Config change %d cannot be applied. Alter it again"
                    uncaught(self._runtime, error, logger, text, number)
                self._last_executed = number
        if changed:
            self._purge(notifications)

    def _apply(self, name: str, number: int) -> bool:
        """Apply one; returns whether it was applied. Where a topic has no logs, its configuration
        is read before one is created."""
        node = self._zk.get_or_none(f"{paths.CONFIG_CHANGES}/{name}")
        if node is None:
            return False
        try:
            change = nodes.decode_config_change(node.data)
            topic = change.name
            if change.entity_type != "topics":
                return False
            if fault := fault_of(topic):
                text = fault.encode(errors="backslashreplace").decode()  # it may be no UTF-8
                logger.error("Config change %d is ignored: %s", number, text)
                return False
            overrides = self._store.topic_config(topic)
            if not self._log_manager.is_configured(topic):
                return False
            self._log_manager.update_topic_config(topic, overrides)
            self._check_format(topic)
        except SessionLost:
            raise
        except ZooKeeperError as error:
            logger.error("Config change %d is ignored: %s", number, error)
            return False
        logger.info(
            "Processed topic config change %d for topic %s, setting new config to %s.",
            number,
            topic,
            overrides,
        )
        return True

    def _check_format(self, topic: str) -> None:
        """Warn of a message format that brokers of the protocol version do not know. It is used, as
        by 0.10.2.2, which says that it is not."""
        config = self._log_manager.config_of(topic)
        if config.magic > self._protocol_version.magic:
            logger.warning(
                "Topic %s: message.format.version %s is newer than inter.broker.protocol.version "
                "%s: its messages are converted for every replica on an older broker. To correct "
                "it: kafka08 topic alter %s --config message.format.version=%s",
                topic,
                config.message_format_version,
                self._protocol_version,
                topic,
                self._protocol_version,
            )

    def _purge(self, names: list[str]) -> None:
        """Remove notifications that every broker had time to read."""
        for name in names:
            path = f"{paths.CONFIG_CHANGES}/{name}"
            stat = self._zk.stat(path)
            if stat is None:
                continue
            # In the order of their numbers: all that follow are younger.
            if self._runtime.time_ms() - stat.created_ms <= EXPIRATION_MS:
                return
            logger.debug("Purging config change notification %s", name)
            self._zk.delete_recursive(path)
