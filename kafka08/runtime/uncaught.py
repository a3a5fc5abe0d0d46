"""The rule for an exception that reaches a root: a greenlet, a callback, a timer, the end of a
native job, or a request.

A disk that failed halts the broker, wherever the error rises: what it acknowledges may be
half-written. (kafka08/log/files.py says which errors are those of a disk.) Every other exception is
logged, and the root goes on with its other work; a file that was refused is no bug, and has no
stack. So code between the disk and a root need not handle StorageError; it must only let it pass.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from kafka08.errors import FileRefused, StorageError

halt_log = logging.getLogger("kafka.server.KafkaServer")


class Halting(Protocol):
    """A BrokerRuntime, of which only this is needed."""

    def halt(self, status: int) -> None: ...


def uncaught(
    runtime: Halting,
    error: BaseException,
    logger: logging.Logger,
    message: str,
    *args: object,
    extra: Mapping[str, object] | None = None,
) -> None:
    """Log the error and its stack after `message`; after a StorageError end the process with status
    1, as the JVM does. The next start finds no clean-shutdown marker and recovers. Does not return
    then in a real runtime."""
    if isinstance(error, StorageError):
        halt_log.critical("Halting due to unrecoverable I/O error: %s", error, exc_info=error)
        runtime.halt(1)
    if isinstance(error, FileRefused):
        logger.error(f"{message}: %s", *args, error, extra=extra)
        return
    logger.error(message, *args, exc_info=error, extra=extra)
