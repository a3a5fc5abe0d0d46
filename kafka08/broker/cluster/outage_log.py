"""Says in a broker's log, from time to time, why it has no ZooKeeper: its session reports the loss
once, and an operator may read the log hours later."""

from __future__ import annotations

import logging
from typing import Final

from kafka08.zk.session import SessionState
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

DISCONNECTED: Final = (SessionState.SUSPENDED, SessionState.GONE)


def log_outage(broker_id: int, store: ClusterStore | None) -> None:
    """Warn if there is no connection now, with the outcome of one to each server. Switches."""
    if store is None or store.zk.state not in DISCONNECTED:
        return
    why = store.zk.why_unreachable()
    if store.zk.state in DISCONNECTED:  # it may have come back meanwhile
        logger.warning("[Kafka Server %d], no connection to ZooKeeper: %s", broker_id, why)
