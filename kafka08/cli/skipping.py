"""Messages that cannot be read: `kafka08 consume --skip-message-on-error` skips them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kafka08.cli.stderr_logging import say
from kafka08.consumer.fetched import offset_behind
from kafka08.errors import InvalidMessage
from kafka08.structs import TopicPartition

Skipped: TypeAlias = tuple[TopicPartition, int]
"""Partition, and the offset where reading goes on."""


class Skipping:
    """For the reader of one stream or partition.

    A message is read a second time before it is skipped: it may have been damaged on its way. Each
    one that is skipped is named on stderr.
    """

    def __init__(self, *, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._seen: int | None = None

    def meet(self, error: InvalidMessage, skip: Callable[[], Skipped | None]) -> None:
        """Return to read on: again from the message that `error` is about, or behind it once `skip`
        has done so. Raises `error` if nothing may be skipped, or if `skip` could not."""
        behind = offset_behind(error.__cause__)
        if not self._is_wanted or behind is None:
            raise error
        if self._seen != behind:
            self._seen = behind
            return
        skipped = skip()
        if skipped is None:
            raise error
        tp, next_offset = skipped
        say(
            f"WARNING: Skipped a damaged message of {tp}: {error.__cause__}. "
            f"Reading goes on at offset {next_offset}"
        )
