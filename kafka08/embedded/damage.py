"""Damages a log on disk as a crash does."""

from __future__ import annotations

from pathlib import Path

from kafka08.errors import KafkaError


def corrupt_tail(directory: Path, size: int) -> Path:
    """Flip every bit in the last `size` bytes of a partition's newest non-empty segment.

    This includes bytes in the page cache, which a broker reads when it starts again and serves
    while it runs. Returns the file. KafkaError if it has fewer bytes,
    or for a `size` below 1.
    """
    if size < 1:
        raise KafkaError(f"size: {size} is not a number of bytes; give 1 or more")
    segments = [path for path in sorted(directory.glob("*.log")) if path.stat().st_size]
    if not segments or segments[-1].stat().st_size < size:
        raise KafkaError(f"the last segment in {directory} has fewer than {size} bytes")
    with segments[-1].open("r+b") as segment:
        segment.seek(-size, 2)
        tail = segment.read(size)
        segment.seek(-size, 2)
        segment.write(bytes(byte ^ 0xFF for byte in tail))
    return segments[-1]
