"""The controller election: the broker whose session holds /controller is controller.

    no one ── our create succeeds ──▶ we ──── znode gone or another's, session over ──▶ on_resigned
      │                                └───── resign(): the znode is deleted ──▶ no one
      └────── another broker's znode ──▶ watch it, try again when it goes

Passive: a watch or the owner's session listener posts, and the owner calls `refresh` (or
`session_expired`) from its own greenlet; the two callbacks run there, one transition at a time. An
old controller that has not noticed yet is fenced by /controller_epoch, not here. When a call
raises SessionLost, the owner calls again at the next session event.

Source: kafka.server.ZookeeperLeaderElector 0.8.2.2, but a znode of our id from an earlier session
does not make us controller (there it does, without an election), and is waited for by its watch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.errors import KafkaError, NodeExists, ZooKeeperError
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient

logger = logging.getLogger(__name__)


class ControllerElection:
    """One broker's part in the election.

    post          called by the watch of /controller, in the adapter's callback worker: arrange for
                  `refresh` to be called by the owner
    on_elected    this broker now is controller; if it raises a KafkaError, it resigns again
    on_resigned   this broker no longer is controller (its znode is gone already)
    """

    def __init__(
        self,
        zk: ZkClient,
        broker_id: int,
        *,
        post: Callable[[], None],
        on_elected: Callable[[], None],
        on_resigned: Callable[[], None],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.controller_id: int | None = None
        """The controller's broker id at the last read; None if there was none."""
        self._zk = zk
        self._broker_id = broker_id
        self._post = post
        self._on_elected = on_elected
        self._on_resigned = on_resigned
        self._clock = clock
        self._elected = False

    @property
    def is_controller(self) -> bool:
        return self._elected

    def refresh(self) -> bool:
        """Read /controller again and create it if it is free; True if this broker is controller."""
        while True:
            node = self._zk.watch_data(paths.CONTROLLER, self._changed)
            if node is None:
                # If we were controller our znode is gone: that term ends before another begins.
                self._has_resigned(None)
                if self._try():
                    return self._become_controller()
                continue
            self.controller_id = _controller_of(node.data)
            if self._elected and not self.holds_znode():
                self._has_resigned(self.controller_id)
                continue
            return self._elected

    def session_expired(self) -> bool:
        """Our znode went with the old session: resign if we were controller, then try again. The
        watch may have been faster and elected us in the new session already: then stay."""
        if not (self._elected and self.holds_znode()):
            self._has_resigned(None)
        return self.refresh()

    def resign(self) -> None:
        """Resign: delete /controller if it is ours, so that the other brokers' watches fire."""
        self._elected = False
        self.controller_id = None
        if self.holds_znode():
            self._zk.delete(paths.CONTROLLER, missing_ok=True)

    def _try(self) -> bool:
        mine = nodes.ControllerNode(self._broker_id, self._clock.time_ms())
        try:
            self._zk.create_ephemeral(paths.CONTROLLER, nodes.encode_controller(mine))
        except NodeExists:
            return False
        return True

    def _become_controller(self) -> bool:
        self._elected = True
        self.controller_id = self._broker_id
        logger.info("broker %d successfully elected as controller", self._broker_id)
        try:
            self._on_elected()
        except KafkaError as error:
            logger.error("broker %d cannot be controller, resigning: %s", self._broker_id, error)
            self.resign()
        return self._elected

    def _has_resigned(self, successor: int | None) -> None:
        self.controller_id = successor
        if self._elected:
            self._elected = False
            logger.info("broker %d is no longer controller", self._broker_id)
            self._on_resigned()

    def holds_znode(self) -> bool:
        """Whether /controller is of this broker's present session."""
        stat = self._zk.stat(paths.CONTROLLER)
        return stat is not None and stat.ephemeral_owner == self._zk.session_id

    def _changed(self, path: str) -> None:
        self._post()


def _controller_of(text: str | None) -> int | None:
    try:
        return nodes.decode_controller(text).broker_id
    except ZooKeeperError as error:
        logger.warning("%s: %s", paths.CONTROLLER, error)
        return None
