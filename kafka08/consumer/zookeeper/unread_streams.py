"""Warns of streams that no thread reads: their partitions are owned, and their messages wait."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from kafka08.consumer.zookeeper.assignors import Assignment
from kafka08.consumer.zookeeper.member_stream import MemberStream
from kafka08.listing import some_of
from kafka08.runtime import ClientRuntime, Event

logger = logging.getLogger(__name__)

StreamKey = tuple[str | None, str]
"""(topic, or None for all topics of a filter; thread id)."""
LOOK_EVERY_S: Final = 10.0


class UnreadStreams:
    """Warns once of each stream that has messages and was never read, while another stream of the
    connector is read: the program has created more streams than it has threads for them.

    It checks every LOOK_EVERY_S, and warns of a stream that is unread at two checks in a row; once
    more at shutdown, for a program that does not run that long.
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
        """Check in a thread until every stream was read or named, or `closing` is set."""
        runtime.spawn(self._run, closing, name=f"{self._consumer_id}-unread-streams")

    def look(self) -> bool:
        """Check once; whether another check is needed."""
        self._unasked = {k: s for k, s in self._unasked.items() if not s.was_asked}
        is_one_read = len(self._unasked) < self._count
        unread = {key for key, s in self._unasked.items() if s.has_messages and is_one_read}
        for key in sorted(unread & self._seen, key=str):
            if self._unasked.pop(key, None) is not None:
                self._warn(key)
        self._seen = unread
        return bool(self._unasked)

    def look_last(self) -> None:
        """The check at shutdown: warns at the first sight of an unread stream. It takes no lock, so
        a signal handler may call it."""
        self._seen = set(self._unasked)
        self.look()

    def _run(self, closing: Event) -> None:
        while not closing.wait(LOOK_EVERY_S):
            try:
                if not self.look():
                    return
            except Exception:
                # The root of a thread: a member works without these warnings.
                logger.exception("[%s] the check for unread streams failed", self._consumer_id)
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
            "create one stream",
            self._consumer_id,
            thread.rpartition("-")[2],
            some_of(partitions, kind="partitions") or "messages",
        )
