"""RecordState: what a log keeps of its record batches beside them, from level 0.11 on.

    producers   of the batches: sequences, transactions
    epochs      where each leader epoch begins

    N.snapshot               the producers before offset N (producer_snapshot)
    leader-epoch-checkpoint  the epochs; empty before the first batch

A snapshot is written at each roll and at a clean stop, is not synced, and is read with the batches
behind it. The checkpoint of epochs is on disk before the first batch of an epoch is written.
Source: kafka.log.ProducerStateManager, kafka.server.epoch.LeaderEpochFileCache 0.11.0.2.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from kafka08 import kernel
from kafka08.errors import ApiError, CorruptLog
from kafka08.format import magic_of
from kafka08.kernel.types import RECORDS_MAGIC, Buffer
from kafka08.log.files import (
    create_file,
    exists,
    files_in,
    read_file,
    remove,
    replace_file,
    storage_errors,
    temporary_of,
)
from kafka08.log.leader_epochs import LeaderEpochs
from kafka08.log.log_segments import LogSegments
from kafka08.log.names import LEADER_EPOCH_CHECKPOINT, SNAPSHOT_SUFFIX, base_offset_of, file_of
from kafka08.log.producer_entries import StoredBatch, stored_batches
from kafka08.log.producer_snapshot import decode_producers, encode_producers
from kafka08.log.producers import Marker, Producers, SequencedBatch
from kafka08.log.recovery import CHUNK_BYTES
from kafka08.log.segment import LogSegment
from kafka08.log.slices import AppendInfo, LogSlice
from kafka08.protocol.message_set import NO_LIMIT, PreparedSet
from kafka08.runtime.disk import Disk, OpenMode

logger = logging.getLogger(__name__)

KEPT_SNAPSHOTS: Final = 2
"""Those of the last segments, besides the one at the log end."""

Read = Callable[[int, int], LogSlice]
"""Log.read."""


class RecordState:
    """The state of the log in `directory`, as it is on disk; `restore` brings the producers up to
    the log end. Below level 0.11 nothing is kept, and there are no files (`is_kept`)."""

    def __init__(self, directory: Path, disk: Disk, *, is_kept: bool) -> None:
        self._directory = directory
        self._disk = disk
        self._is_kept = is_kept
        self._checkpoint = directory / LEADER_EPOCH_CHECKPOINT
        self.producers = Producers()
        self.epochs = LeaderEpochs()
        self._snapshots: list[int] = []
        if is_kept:
            self.epochs = self._read_epochs()
            self._snapshots = sorted(
                base_offset_of(path)
                for path in files_in(disk, directory)
                if path.suffix == SNAPSHOT_SUFFIX
            )

    def restore(
        self,
        segments: LogSegments,
        log_end_offset: int,
        now_ms: int,
        read: Read,
        *,
        may_have_batches: bool,
    ) -> None:
        """Take the producers from the newest snapshot and from the batches behind it, and write
        what the indexes of aborted transactions lack. Without a snapshot everything is read, unless
        the log cannot have batches: then it gets snapshots of no producers, as of 0.11.0.3."""
        if not self._is_kept:
            return
        bases = segments.base_offsets
        self.epochs_end_at(log_end_offset)
        self._remove_snapshots(bisect_right(self._snapshots, log_end_offset), None)
        self.producers = Producers()
        if not self._snapshots and not may_have_batches:
            for offset in (*bases[-KEPT_SNAPSHOTS:], log_end_offset):
                self.take_snapshot(offset, bases[0])
            return
        start = self._load_newest(bases[0], now_ms)
        for found in self._stored_from(start, log_end_offset, read):
            self.note_epochs(found)
            for batch in found:
                self.note([batch], now_ms, segments.segment_of(batch.base_offset))
        self.take_snapshot(log_end_offset, bases[0])

    def _load_newest(self, first_base_offset: int, now_ms: int) -> int:
        """Load the newest snapshot that can be read; returns its offset."""
        while self._snapshots:
            path = file_of(self._directory, self._snapshots[-1], SNAPSHOT_SUFFIX)
            try:
                self.producers = decode_producers(read_file(self._disk, path), now_ms)
                return max(self._snapshots[-1], first_base_offset)
            except CorruptLog as error:
                logger.warning("%s is deleted: %s", path, error)
                self._remove_snapshots(len(self._snapshots) - 1, None)
        return first_base_offset

    def _stored_from(
        self, offset: int, log_end_offset: int, read: Read
    ) -> Iterator[list[StoredBatch]]:
        """The record batches of each set from `offset` on; ends where messages are damaged."""
        max_bytes = CHUNK_BYTES
        while offset < log_end_offset:
            data = memoryview(read(offset, max_bytes).bytes())
            try:
                summary = kernel.validate(data, NO_LIMIT, False)
                yield self.batches_in(data, summary)
            except ValueError as error:
                logger.warning(
                    "%s: no producers are read from %d on: %s", self._directory, offset, error
                )
                return
            if summary.count:
                offset, max_bytes = summary.last_offset + 1, CHUNK_BYTES
            elif len(data) < max_bytes:
                return  # the rest of the log is empty
            else:
                max_bytes *= 2

    # Batches

    def batches_in(
        self, data: Buffer, summary: kernel.SetSummary | PreparedSet
    ) -> list[StoredBatch]:
        """The record batches of a set that was checked. What a leader appends has one format."""
        if not self._is_kept:
            return []
        if magic_of(data) != RECORDS_MAGIC and not (
            isinstance(summary, kernel.SetSummary) and summary.magics & 1 << RECORDS_MAGIC
        ):
            return []
        return stored_batches(data)

    def repeated(self, sent: Iterable[StoredBatch]) -> AppendInfo | None:
        """The result for batches of a client that are in the log already. Errors as
        Producers.check_set."""
        of_producers = [one.entry for one in sent if isinstance(one.entry, SequencedBatch)]
        found = self.producers.check_set(of_producers) if of_producers else None
        if found is None:
            return None
        return AppendInfo(found.base_offset, found.last_offset, 0, 0, found.max_timestamp_ms)

    batch = staticmethod(SequencedBatch)

    def is_next(self, batch: SequencedBatch) -> bool:
        """Whether a client's batch is the next one of its producer; `repeated` answers another."""
        try:
            return self.producers.check(batch) is None
        except ApiError:
            return False

    def note_batch(self, batch: SequencedBatch, now_ms: int) -> None:
        """A batch that the kernel has appended is in the log."""
        self.producers.append(batch, now_ms)

    def note_epochs(self, found: Iterable[StoredBatch]) -> None:
        """These batches are about to be appended, or are in the log. FileRefused, StorageError."""
        new = [batch for batch in found if batch.leader_epoch > self.epochs.latest]
        if not new:
            return

        def assign(epochs: LeaderEpochs) -> bool:
            begun = [epochs.assign(batch.leader_epoch, batch.base_offset) for batch in new]
            return any(begun)

        self._change_epochs(assign)

    def reserve(self, found: Iterable[StoredBatch], segment: LogSegment) -> None:
        """Before these batches are appended to that segment: open what `note` writes to.
        FileRefused, StorageError."""
        if any(isinstance(one.entry, Marker) and not one.entry.commits for one in found):
            assert segment.aborted is not None
            segment.aborted.reserve()

    def note(self, found: Iterable[StoredBatch], now_ms: int, segment: LogSegment) -> None:
        """These batches are in the log, in that segment."""
        for batch in found:
            entry = batch.entry
            if isinstance(entry, SequencedBatch):
                self.producers.append(entry, now_ms)
            aborted = None
            if isinstance(entry, Marker):
                aborted = self.producers.append_marker(entry, now_ms)
            if aborted is not None:
                assert segment.aborted is not None
                segment.aborted.append(aborted)

    # Changes of the log

    def take_snapshot(self, offset: int, first_base_offset: int) -> None:
        """The log ends at `offset`, above which no snapshot is."""
        if not self._is_kept:
            return
        newest = self._snapshots[-1] if self._snapshots else first_base_offset
        if offset <= newest:
            return
        path = file_of(self._directory, offset, SNAPSHOT_SUFFIX)
        with storage_errors("write", path):
            self._disk.open(path, OpenMode.REPLACE).pwrite(encode_producers(self.producers), 0)
        self._snapshots.append(offset)

    def drop_old_snapshots(self, segments: LogSegments, recovery_point: int) -> None:
        """Remove those that are not needed: neither to recover, nor after one of the last segments
        is truncated."""
        last = segments.base_offsets[-KEPT_SNAPSHOTS:][0]
        self._drop_snapshots_before(min(last, segments.segment_of(recovery_point).base_offset))

    def _drop_snapshots_before(self, offset: int) -> None:
        self._remove_snapshots(0, bisect_left(self._snapshots, offset))

    def begin_truncation(self, offset: int) -> None:
        """The log is about to end at `offset`; `restore` follows."""
        self._remove_snapshots(bisect_right(self._snapshots, offset), None)

    def reset(self, offset: int) -> None:
        """The log is empty, and starts at `offset`."""
        self.producers = Producers()
        self._remove_snapshots(0, None)
        self._change_epochs(lambda epochs: epochs.truncate(0))

    def log_start_rose(self, offset: int, first_base_offset: int) -> None:
        """Messages below `offset` were deleted; those of the first segment are still there."""
        self.producers.log_start_rose(offset)
        self._drop_snapshots_before(first_base_offset)
        self._change_epochs(lambda epochs: epochs.raise_start(offset))

    def epochs_end_at(self, offset: int) -> None:
        """Nothing from `offset` on is in the log."""
        self._change_epochs(lambda epochs: epochs.truncate(offset))

    def _remove_snapshots(self, start: int, end: int | None) -> None:
        for offset in self._snapshots[start:end]:
            remove(self._disk, file_of(self._directory, offset, SNAPSHOT_SUFFIX))
        del self._snapshots[start:end]

    # The checkpoint of epochs

    def _read_epochs(self) -> LeaderEpochs:
        """A checkpoint that cannot be read has no epochs, so that a follower goes by its HW."""
        remove(self._disk, temporary_of(self._checkpoint))
        if not exists(self._disk, self._checkpoint):
            create_file(self._disk, self._checkpoint)
            return LeaderEpochs()
        try:
            return LeaderEpochs.decode(read_file(self._disk, self._checkpoint).decode("ascii"))
        except (CorruptLog, UnicodeDecodeError) as error:
            logger.warning("%s: %s; it has no epochs then", self._checkpoint, error)
            return LeaderEpochs()

    def _change_epochs(self, change: Callable[[LeaderEpochs], bool]) -> None:
        """Change the epochs, on disk first: a refused write changes nothing, so that whatever needs
        the change asks for it again. FileRefused, StorageError."""
        epochs = LeaderEpochs(self.epochs.entries)
        if change(epochs):
            replace_file(self._disk, self._checkpoint, epochs.encode())
            self.epochs = epochs
