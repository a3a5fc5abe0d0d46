"""TransactionIndex: the .txnindex file of a segment, which exists once it has an entry.

It has an entry for each transaction whose abort marker is in the segment (aborted_transactions). It
is synced with its segment; recovery writes entries that a crash has lost again. Source:
kafka.log.TransactionIndex 0.11.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kafka08.log.aborted_transactions import ENTRY, AbortedTransaction, decode
from kafka08.log.files import exists, open_file, read_file, storage_errors
from kafka08.runtime.disk import Disk, File, OpenMode


class TransactionIndex:
    """The file at `path`, which may be missing. It is read at the first use."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path
        self._disk = disk
        self._entries: list[AbortedTransaction] | None = None
        self._reserved: File | None = None

    @property
    def entries(self) -> Sequence[AbortedTransaction]:
        """In the order of their markers, up to the first that is damaged."""
        if self._entries is None:
            is_there = exists(self._disk, self.path)
            self._entries = decode(read_file(self._disk, self.path)) if is_there else []
        return self._entries

    def reserve(self) -> None:
        """Open the file for the next entry, before its marker is written. StorageError,
        FileRefused."""
        if self._reserved is None:
            # Read before the file is there, empty.
            _ = self.entries
            self._reserved = self.opened()

    def append(self, entry: AbortedTransaction) -> None:
        """Add a later entry; does nothing for one that is there. StorageError, and FileRefused
        without `reserve`."""
        file, self._reserved = self._reserved, None
        found = list(self.entries)
        if found and entry.last_offset <= found[-1].last_offset:
            return
        with storage_errors("append to", self.path):
            (file or self.opened()).pwrite(entry.encode(), len(found) * ENTRY.size)
        self._entries = [*found, entry]

    def truncate_to(self, offset: int) -> None:
        """Remove the entries of markers from `offset` on."""
        kept = [entry for entry in self.entries if entry.last_offset < offset]
        if len(kept) < len(self.entries):
            with storage_errors("truncate", self.path):
                self.opened().truncate(len(kept) * ENTRY.size)
            self._entries = kept

    def opened(self) -> File:
        """The file, open for writing, which is created."""
        return open_file(self._disk, self.path, OpenMode.CREATE)
