"""Halts a broker whose disk failed, so that it acknowledges nothing that may be half-written."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafka08.errors import StorageError

if TYPE_CHECKING:
    from kafka08.runtime import BrokerRuntime

logger = logging.getLogger("kafka.server.KafkaServer")


def halt_on(error: StorageError, runtime: BrokerRuntime) -> None:
    """Log and end the process with status 1, as the JVM does in this case. The next start finds no
    clean-shutdown marker and recovers. Does not return in a real runtime."""
    logger.critical("Halting due to unrecoverable I/O error: %s", error, exc_info=error)
    runtime.halt(1)
