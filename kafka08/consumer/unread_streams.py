"""A warning for streams that nobody reads: their partitions are owned, and their messages wait."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from kafka08.consumer.assignors import Assignment
from kafka08.consumer.stream import MemberStream
from kafka08.listing import some_of
from kafka08.runtime import ClientRuntime, Event

logger = logging.getLogger(__name__)

StreamKey = tuple[str | None, str]
"""(topic, or None for all topics of a filter; thread id)."""
LOOK_EVERY_S: Final = 10.0


class UnreadStreams:
    """Names each stream that has messages and was never asked for one, once, while another stream
    of the connector is read: a program that has made more streams than it has threads for them.

    It looks every LOOK_EVERY_S, and warns of what it has found unread twice in a row; and once more
    at the end, for a program that does not run for so long.
    """

    def __init__(
        self,
        consumer_id: str,
        streams: Mapping[StreamKey, MemberStream],
        assignment: Callable[[], Assignment],
    ) -> None:
        self._consumer_id = consumer_id
        self._unasked = dict(streams)
        self._count = len(streams)
        self._assignment = assignment
        self._seen: set[StreamKey] = set()

    def start(self, runtime: ClientRuntime, closing: Event) -> None:
        """Look in a thread until every stream was asked or named, or `closing` is set."""
        runtime.spawn(self._run, closing, name=f"{self._consumer_id}-unread-streams")

    def look(self) -> bool:
        """Warn of what is unread; whether there is anything left to look for."""
        self._unasked = {k: s for k, s in self._unasked.items() if not s.was_asked}
        is_one_read = len(self._unasked) < self._count
        unread = {key for key, s in self._unasked.items() if s.has_messages and is_one_read}
        for key in sorted(unread & self._seen, key=str):
            if self._unasked.pop(key, None) is not None:
                self._warn(key)
        self._seen = unread
        return bool(self._unasked)

    def look_last(self) -> None:
        """When the connector is shut down: warn of what is unread now, at the first look too. It
        takes no lock, so a signal handler may call it."""
        self._seen = set(self._unasked)
        self.look()

    def _run(self, closing: Event) -> None:
        while not closing.wait(LOOK_EVERY_S):
            try:
                if not self.look():
                    return
            except Exception:
                # The root of a thread: a member works without these warnings.
                logger.exception("[%s] the look for unread streams failed", self._consumer_id)
                return

    def _warn(self, key: StreamKey) -> None:
        topic, thread = key
        partitions = sorted(
            tp
            for tp, owner in self._assignment().items()
            if owner == thread and topic in {None, tp.topic}
        )
        logger.warning(
            "[%s] stream %s is not read: %s wait. Read each stream in a thread of its own, or "
            "make one stream",
            self._consumer_id,
            thread.rpartition("-")[2],
            some_of(partitions, kind="partitions") or "messages",
        )
