"""Offset checkpoints: small text files that map partitions to offsets.

    0                        version
    2                        number of entries
    topic 0 1234             topic, partition, offset, one blank between them
    other-topic 3 0

Source: kafka.server.OffsetCheckpoint 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from kafka08.config import INT_MAX, LONG_MAX
from kafka08.errors import CorruptLog
from kafka08.log import crashpoints
from kafka08.log.files import (
    create_file,
    exists,
    read_file,
    remove,
    replace_file,
    temporary_of,
)
from kafka08.runtime.disk import Disk
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

VERSION: Final = 0

InTurns = Callable[[Sequence[str]], Iterator[str]]
"""Returns the items, and may let other tasks run between some of them."""


class OffsetCheckpoint:
    """One checkpoint file. A missing or empty file reads as no entries."""

    def __init__(
        self,
        path: Path,
        crash: crashpoints.CrashPoint = crashpoints.never,
        disk: Disk = SYSTEM_DISK,
    ) -> None:
        self.path = Path(path)
        self._disk = disk
        self._crash = crash
        remove(disk, temporary_of(self.path))

    def create(self) -> None:
        """Create the file, empty, if it is missing: 0.8.2.2 has each of its files from the
        start."""
        create_file(self._disk, self.path)

    def read_offsets(self, in_turns: InTurns = iter) -> dict[TopicPartition, int]:
        """The entries; CorruptLog if the file is not a checkpoint. `in_turns` goes through the
        lines: there may be one for each of thousands of partitions."""
        if not exists(self._disk, self.path):
            return {}
        text = read_file(self._disk, self.path).decode("utf-8", "replace")
        try:
            return parse(text, in_turns)
        except ValueError as error:
            raise CorruptLog(f"{self.path} is not an offset checkpoint: {error}") from None

    def read_or_reset(self, without: str, in_turns: InTurns = iter) -> dict[TopicPartition, int]:
        """Like `read_offsets`, but no entries if the file is not a checkpoint, with a warning.
        `without` completes it: what follows from that."""
        try:
            return self.read_offsets(in_turns)
        except CorruptLog as error:
            logger.warning("%s; %s", error, without)
            return {}

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace all entries. They are on disk on return; StorageError otherwise."""
        written = partial(self._crash, crashpoints.CHECKPOINT_WRITTEN)
        replace_file(self._disk, self.path, render(offsets), written)


def render(offsets: Mapping[TopicPartition, int]) -> str:
    """The text of a checkpoint."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return "\n".join([str(VERSION), str(len(lines)), *lines, ""])


def parse(text: str, in_turns: InTurns = iter) -> dict[TopicPartition, int]:
    """The entries in a checkpoint's text; ValueError says what is wrong."""
    lines = text.splitlines()
    if not lines:
        return {}
    if int(lines[0]) != VERSION:
        raise ValueError(f"unrecognized version {lines[0]}")
    if len(lines) == 1:
        return {}
    offsets = {}
    for line in in_turns(lines[2:]):
        pieces = line.split()
        if len(pieces) != 3:
            raise ValueError(f"malformed line {line!r}")
        partition, offset = int(pieces[1]), int(pieces[2])
        if not (-INT_MAX - 1 <= partition <= INT_MAX and -LONG_MAX - 1 <= offset <= LONG_MAX):
            raise ValueError(f"numbers out of range in line {line!r}")
        offsets[TopicPartition(pieces[0], partition)] = offset
    if len(offsets) != int(lines[1]):
        raise ValueError(f"expected {lines[1]} entries but found {len(offsets)}")
    return offsets
