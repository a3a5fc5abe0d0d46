"""UnsyncedChanges: the changes of a log, besides its messages, that the next flush puts on disk."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kafka08.log.files import open_directory
from kafka08.runtime.disk import Disk, Syncable


class ChangeCounts(NamedTuple):
    """The changes before a flush began."""

    created: int
    truncations: int


class UnsyncedChanges:
    """New files in `directory`, the directory itself, and truncations of the active segment.

    was_cut   the active segment was truncated, perhaps by a process that was killed, and no
              completed flush has put that on disk. If a power failure undid the truncation after a
              roll, two segments would have the same offsets.

    Two flushes may run at once, so each syncs the directory until one of them has completed.
    """

    __slots__ = ("_created", "_directory", "_disk", "_synced", "_truncations", "was_cut")

    def __init__(self, disk: Disk, directory: Path) -> None:
        self.was_cut = False
        self._disk = disk
        self._directory = directory
        self._created = 1
        self._synced = 0
        self._truncations = 0

    def note_creation(self) -> None:
        """Files were created."""
        self._created += 1

    def begin_truncation(self) -> None:
        """Flushes that have begun no longer describe the log."""
        self._truncations += 1

    def counts(self) -> ChangeCounts:
        """The changes so far, for `complete`."""
        return ChangeCounts(self._created, self._truncations)

    def directories(self) -> list[Syncable]:
        """The directories that a flush must sync: for new files, and for the log's own name."""
        found: list[Syncable] = []
        if self._synced < self._created:
            found.append(open_directory(self._disk, self._directory))
        if not self._synced:
            found.append(open_directory(self._disk, self._directory.parent))
        return found

    def complete(self, before: ChangeCounts) -> bool:
        """A flush that began at the counts `before` is on disk. False if the log was truncated
        meanwhile: its messages may not be on disk then."""
        self._synced = max(self._synced, before.created)
        if before.truncations != self._truncations:
            return False
        self.was_cut = False
        return True
