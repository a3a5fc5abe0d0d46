"""Skips unreadable messages: `kafka08 consume --skip-message-on-error`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kafka08.cli.echo import say
from kafka08.consumer.fetching.fetched import next_offset_after
from kafka08.errors import InvalidMessage
from kafka08.structs import TopicPartition

Skipped: TypeAlias = tuple[TopicPartition, int]
"""Partition, and the offset at which reading continues."""


class DamageSkipper:
    """Skips damaged messages of one stream or partition. It reads a message a second time before it
    skips it, because the damage may have happened in transit. Each skipped one is reported on
    stderr."""

    def __init__(self, *, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._seen: int | None = None

    def retry_or_skip(self, error: InvalidMessage, skip: Callable[[], Skipped | None]) -> None:
        """Return to continue: with the message that `error` is about, or after it once `skip` has
        skipped it. Raises `error` if skipping is off, or if `skip` could not."""
        behind = next_offset_after(error.__cause__)
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
            f"Reading continues at offset {next_offset}"
        )
