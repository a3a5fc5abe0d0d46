"""CleanerStats: counts of one cleaning. Source: kafka.log.CleanerStats 0.8.2.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka08.log.cleaner_chunks import CleanedChunk

MEGABYTE: Final = 1 << 20


@dataclass(slots=True)
class CleanerStats:
    """Counts of one pass over the log `name`, whose dirty part was [first_dirty, end) offsets.

    bytes_read, messages_read       in all copied segments; messages of wrappers count singly
    bytes_written, messages_kept    in the copies
    messages_unkeyed                dropped because they have no key
    map_bytes, map_seconds          for the offset map of the dirty segments
    map_use                         the share of the map's maximal memory that was used; 0 to 1
    seconds                         of the whole pass, including waits
    """

    name: str
    first_dirty_offset: int
    end_offset: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    messages_read: int = 0
    messages_kept: int = 0
    messages_unkeyed: int = 0
    map_bytes: int = 0
    map_seconds: float = 0.0
    map_use: float = 0.0
    seconds: float = 0.0

    def add(self, chunk: CleanedChunk, size: int) -> None:
        """Count a chunk of `size` bytes of a segment."""
        self.bytes_read += size
        self.bytes_written += chunk.written
        self.messages_read += chunk.read
        self.messages_kept += chunk.kept
        self.messages_unkeyed += chunk.unkeyed

    def __str__(self) -> str:
        """The cleaner's log lines, in 0.8.2.2's words."""
        seconds = max(self.seconds, 1e-6)
        size_gone = 1 - self.bytes_written / max(self.bytes_read, 1)
        messages_gone = 1 - self.messages_kept / max(self.messages_read, 1)
        return (
            f"Log cleaner cleaned log {self.name} "
            f"(dirty section = [{self.first_dirty_offset}, {self.end_offset}])\n"
            f"\t{_mb(self.bytes_read)} MB of log processed in {self.seconds:,.1f} seconds "
            f"({_mb(self.bytes_read / seconds)} MB/sec).\n"
            f"\tIndexed {_mb(self.map_bytes)} MB in {self.map_seconds:.1f} seconds "
            f"({_mb(self.map_bytes / max(self.map_seconds, 1e-6))} Mb/sec, "
            f"{100 * self.map_seconds / seconds:.1f}% of total time)\n"
            f"\tBuffer utilization: {100 * self.map_use:.1f}%\n"
            f"\tStart size: {_mb(self.bytes_read)} MB ({self.messages_read:,} messages)\n"
            f"\tEnd size: {_mb(self.bytes_written)} MB ({self.messages_kept:,} messages)\n"
            f"\t{100 * size_gone:.1f}% size reduction ({100 * messages_gone:.1f}% fewer messages)"
        )


def _mb(size: float) -> str:
    return f"{size / MEGABYTE:,.1f}"
