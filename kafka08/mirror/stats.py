"""Counts of a mirror."""

from __future__ import annotations

from typing import NamedTuple

from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS


class MirrorCounts(NamedTuple):
    """messages   acknowledged by the target
    bytes      of their keys and values
    skipped    refused by the target and not copied
    resent     sent again after an error; each time counts
    """

    messages: int = 0
    bytes: int = 0
    skipped: int = 0
    resent: int = 0


class MirrorStats:
    """Counts of all streams of a mirror. Thread-safe."""

    def __init__(self, runtime: ClientRuntime = THREADS) -> None:
        self._lock = runtime.lock()
        self._counts = MirrorCounts()

    @property
    def counts(self) -> MirrorCounts:
        """Since the start."""
        return self._counts

    def copied(self, messages: int, size: int) -> None:
        with self._lock:
            now = self._counts
            self._counts = now._replace(
                messages=now.messages + messages,
                bytes=now.bytes + size,
            )

    def skipped(self, messages: int) -> None:
        with self._lock:
            self._counts = self._counts._replace(skipped=self._counts.skipped + messages)

    def resent(self, messages: int) -> None:
        with self._lock:
            self._counts = self._counts._replace(resent=self._counts.resent + messages)
