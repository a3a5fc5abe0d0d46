"""Named points at which a test can simulate a crash.

The opener of a log may pass a callable, which is called with one of the names below, each between
two effects on disk. A test raises from it, drops the objects, opens the directory again and checks
it. The default does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

CrashPoint = Callable[[str], None]

ROLL_SEALED: Final = "roll.sealed"
"""The old index is trimmed; the new segment has no files yet."""
ROLL_LOG_CREATED: Final = "roll.log_created"
"""The new .log exists without its .index."""
ROLL_CREATED: Final = "roll.created"
"""Both new files exist; they are empty."""
FLUSH_SYNCED: Final = "flush.synced"
"""The files are on disk; the recovery point is not updated yet."""
TRUNCATE_SEGMENTS_DELETED: Final = "truncate.segments_deleted"
"""Later segments are gone; the one that contains the target still has its old end."""
TRUNCATE_INDEX_CUT: Final = "truncate.index_cut"
"""The index is truncated; the messages are not."""
DELETE_LOG_RENAMED: Final = "delete.log_renamed"
"""A segment's .log is renamed; its .index still has the old name."""
CLEANED_WRITTEN: Final = "clean.written"
"""The cleaned segment is on disk as *.cleaned; its originals are in place."""
SWAP_LOG_RENAMED: Final = "swap.log_renamed"
"""The cleaned .log has its next name (*.swap, or the final one); its .index has the old one."""
SWAP_BEGUN: Final = "swap.begun"
"""Cleaned and replaced segments both exist; the cleaned one, *.swap, is valid."""
SWAP_REPLACED: Final = "swap.replaced"
"""The replaced segments are renamed; the cleaned one still is *.swap."""
CHECKPOINT_WRITTEN: Final = "checkpoint.written"
"""The temporary file is complete; the old checkpoint is still in place."""
LOAD_MARKER_REMOVED: Final = "load.marker_removed"
"""The clean-shutdown marker is gone; no log is open yet."""
SHUTDOWN_CLOSED: Final = "shutdown.closed"
"""All logs are closed and checkpointed; the clean-shutdown marker is not written yet."""


def never(_name: str) -> None:
    """The default: no crash."""
