"""LogStarts: where logs begin after DeleteRecords, in `log-start-offset-checkpoint` files.

One file per log directory, from level 0.11 on. It has the logs that start above their first
segment's base offset: that of the others says where they start. Source: kafka.log.LogManager.
checkpointLogStartOffsets 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from kafka08.log import crashpoints
from kafka08.log.checkpoint import InTurns, OffsetCheckpoint
from kafka08.log.files import in_each
from kafka08.log.log import Log
from kafka08.log.names import LOG_START_CHECKPOINT
from kafka08.runtime.disk import Disk
from kafka08.structs import TopicPartition

Starts = dict[TopicPartition, int]


class LogStarts:
    """The checkpoint files in `directories` (log.dirs); none below level 0.11."""

    def __init__(
        self, directories: Collection[Path], crash: crashpoints.CrashPoint, disk: Disk
    ) -> None:
        self._files = {
            path: OffsetCheckpoint(path / LOG_START_CHECKPOINT, crash, disk) for path in directories
        }
        self._written: dict[Path, Starts] = {path: {} for path in directories}

    def read(self, directory: Path, in_turns: InTurns) -> Mapping[TopicPartition, int]:
        """The starts of a directory's logs; its file is created if it is missing. One that cannot
        be read has none."""
        file = self._files.get(directory)
        if file is None:
            return {}
        file.create()
        starts = file.read_or_reset("deleted records may be read again", in_turns)
        self._written[directory] = starts
        return starts

    def outdated(self, logs: Iterable[Log]) -> dict[Path, Starts]:
        """The contents of the files that differ from these, which are all logs."""
        found: dict[Path, Starts] = {path: {} for path in self._files}
        if found:
            for one in logs:
                if one.log_start_offset > one.first_base_offset:
                    found[one.log_directory][one.topic_partition] = one.log_start_offset
        return {path: starts for path, starts in found.items() if starts != self._written[path]}

    def write(self, outdated: Mapping[Path, Starts]) -> None:
        """Write these files; they are on disk on return. FileRefused, when the others are
        written; StorageError. May run in a native thread, one call at a time."""

        def write_one(path: Path) -> None:
            self._files[path].write(outdated[path])
            self._written[path] = outdated[path]

        in_each(outdated, write_one)

    def is_written_above(self, directory: Path, tp: TopicPartition, offset: int) -> bool:
        """Whether the file has a start above `offset`: that of a deleted log of the same name, or
        from before a truncation. After a crash it would hide what is appended below it."""
        return self._written.get(directory, {}).get(tp, 0) > offset
