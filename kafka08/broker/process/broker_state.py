"""BrokerState: the step of a broker's life, as a metric.

Source: kafka.server.BrokerStates 0.8.2.2 and 0.10.2.2.
"""

from __future__ import annotations

import enum


class BrokerState(enum.IntEnum):
    """The values are Kafka's, whose 2 is recovering: here that is a part of STARTING."""

    STARTING = 1
    RUNNING = 3
    RUNNING_AS_CONTROLLER = 4
    """Up to level 0.9.0; from then on the controller is RUNNING too."""
    PENDING_CONTROLLED_SHUTDOWN = 6
    """It asks the controller to move its leaderships."""
    SHUTTING_DOWN = 7
