"""ControllerConnection: refuses requests that arrive over a connection that the controller gave up.

A controller sends to a broker over one connection at a time, one request after the other. When it
takes the broker for dead and finds it alive again, it opens another connection, while what it had
sent over the first may still be on its way. 0.8.2.2 applies such a request whenever it arrives:
brokers then name an old leader until the partition's next change, and a late StopReplica deletes a
replica that the controller has since made again.
"""

from __future__ import annotations

from kafka08.errors import StaleControllerEpoch


class ControllerConnection:
    """The newest connection over which the newest controller has sent a request to this broker."""

    __slots__ = ("_epoch", "_number")

    def __init__(self) -> None:
        self._epoch = self._number = -1

    def check(self, controller_epoch: int, connection: int) -> None:
        """StaleControllerEpoch if a controller of this epoch has already sent a request over a
        connection that was accepted later; `connection` is a ServerConnection's number."""
        if controller_epoch < self._epoch:
            return  # an earlier controller: the ReplicaManager refuses it
        if controller_epoch == self._epoch and connection < self._number:
            raise StaleControllerEpoch(
                f"the controller of epoch {controller_epoch} has opened another connection since"
            )
        self._epoch, self._number = controller_epoch, connection
