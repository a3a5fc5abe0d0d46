"""UnsyncedChanges: the changes of a log, besides its messages, that the next flush puts on disk.

A power failure may keep the name of a rolled segment and lose the end of the one before it. What is
left looks like the work of a cleaner, or of a leader's cleaner: offsets are missing between two
segments. So each roll leaves a mark, named after the log end, before it creates the new segment,
and the flush that puts the messages before it on disk removes the mark. A gap that contains a mark
is a loss; any other gap proves nothing. Names of one directory reach the disk in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kafka08.log.files import create_file, files_in, open_directory, remove
from kafka08.log.names import UNSYNCED_SUFFIX, base_offset_of, file_of
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

    marks     the marks that an earlier process left

    Two flushes may run at once, so each syncs the directory until one of them has completed.
    """

    __slots__ = ("_created", "_directory", "_disk", "_marks", "_synced", "_truncations", "was_cut")

    def __init__(self, disk: Disk, directory: Path, marks: Iterable[int] = ()) -> None:
        self.was_cut = False
        self._marks: tuple[tuple[int, int], ...] = tuple((end_offset, 1) for end_offset in marks)
        """The offset of each mark, and `_created` from which on a flush removes it."""
        self._disk = disk
        self._directory = directory
        self._created = 1
        self._synced = 0
        self._truncations = 0

    def note_creation(self) -> None:
        """Files were created."""
        self._created += 1

    def mark_roll(self, end_offset: int) -> None:
        """A new segment is about to be created; nothing before `end_offset` need be on disk."""
        self._created += 1
        self._marks = (*self._marks, (end_offset, self._created))
        create_file(self._disk, file_of(self._directory, end_offset, UNSYNCED_SUFFIX))

    @property
    def has_marks(self) -> bool:
        """Whether a segment was rolled that is not on disk, as far as is known."""
        return bool(self._marks)

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
        meanwhile: its messages might not be on disk then."""
        self._synced = max(self._synced, before.created)
        if before.truncations != self._truncations:
            return False
        self.was_cut = False
        kept = tuple(mark for mark in self._marks if mark[1] > before.created)
        for end_offset in {offset for offset, _ in self._marks} - {offset for offset, _ in kept}:
            remove(self._disk, file_of(self._directory, end_offset, UNSYNCED_SUFFIX))
        self._marks = kept
        return True


def unsynced_marks(disk: Disk, directory: Path) -> list[int]:
    """The offsets of the marks in a partition's directory."""
    return [
        base_offset_of(path)
        for path in files_in(disk, directory)
        if path.name.endswith(UNSYNCED_SUFFIX)
    ]
