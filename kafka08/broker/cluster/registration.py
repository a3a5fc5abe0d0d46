"""RegistrationKeeper: keeps this broker's ephemeral znode in /brokers/ids.

Created at start, and again in each new ZooKeeper session, because the znodes of the old session are
gone with it. A broker that finds its id taken then, by one at another address, halts. Source:
kafka.server.KafkaHealthcheck 0.8.2.2.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable
from contextlib import suppress

from kafka08.errors import BrokerIdTaken, Closed, ZooKeeperError
from kafka08.runtime import BrokerRuntime, Greenlet
from kafka08.runtime.uncaught import uncaught
from kafka08.structs import Broker
from kafka08.zk.client import ZkClient
from kafka08.zk.nodes import ADDRESS_ALONE, Advertised
from kafka08.zk.session import SessionEvent
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)


class RegistrationKeeper:
    """Keeps `broker`, with its other advertised data, registered while it runs.

    before  called with the client before each registration, which is in a new session
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        store: ClusterStore,
        broker: Broker,
        before: Callable[[ZkClient], object],
        *,
        retry_s: float,
        advertised: Advertised = ADDRESS_ALONE,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._broker = broker
        self._before = before
        self._advertised = advertised
        self._retry_s = retry_s
        self._events = runtime.queue()
        self._task: Greenlet | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Register; switches. BrokerIdTaken if another broker holds the id; Closed after `stop`."""
        # First: the session may end before the znode is made, in the next one.
        self._store.zk.add_session_listener(self._events.put)
        self._register()
        if self._is_stopped:
            raise Closed(f"broker {self._broker.id} was stopped while it registered")
        self._task = self._runtime.spawn(self._keep, name="broker-registration")

    def stop(self) -> None:
        """Stop registering. The znode expires with the session."""
        self._is_stopped = True
        if self._task is not None:
            self._task.kill()

    def register_anew(self, away_s: float) -> None:
        """Leave /brokers/ids for a while, so that a controller sees it, and register again.
        Switches."""
        try:
            self._store.withdraw_broker(self._broker.id)
        except ZooKeeperError as error:  # it may have left all the same
            logger.warning("Cannot tell whether broker %d has left: %s", self._broker.id, error)
        self._runtime.sleep(away_s)
        while not self._is_stopped and not self._register_again():
            self._runtime.sleep(self._retry_s)

    def _register(self) -> None:
        self._before(self._store.zk)
        self._store.register_broker(
            self._broker, timestamp_ms=self._runtime.time_ms(), advertised=self._advertised
        )
        logger.info("Registered broker %d at %s:%d.", *self._broker)

    def _keep(self) -> None:
        """Register again after each expiry, until it succeeds: after every session event, and after
        a pause."""
        while True:
            if self._events.get() is not SessionEvent.EXPIRED:
                continue
            logger.info("re-registering broker info in ZK for broker %d", self._broker.id)
            while not self._register_again():
                with suppress(queue.Empty):
                    self._events.get(timeout=self._retry_s)
            logger.info("done re-registering broker")

    def _register_again(self) -> bool:
        """Register; False if it must be retried."""
        try:
            self._register()
        except BrokerIdTaken as error:
            # 0.8: it goes on. Then both lead the same partitions, and what this one fetches as a
            # replica counts as fetched by the other: acknowledged messages are lost.
            logger.critical(
                "Halting: another broker took the id %d while this one had no ZooKeeper session "
                "(%s). Stop one of them, or give it another id",
                self._broker.id,
                error,
            )
            self._runtime.halt(1)
            return False
        except ZooKeeperError as error:
            logger.warning("Cannot register again yet: %s", error)
            return False
        except Exception as error:  # noqa: BLE001 - clients cannot find an unregistered broker
            uncaught(self._runtime, error, logger, "Cannot register again yet")
            return False
        return True
