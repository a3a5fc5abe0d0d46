"""Damage to a log on disk, of the kind a crash leaves behind."""

from __future__ import annotations

from pathlib import Path

from kafka08.errors import KafkaError


def corrupt_tail(directory: Path, size: int) -> Path:
    """Turn over every bit in the last `size` bytes of a partition's newest segment that has any.

    Bytes already sent to the page cache count: it is what a broker reads when it starts again, and
    what a running one serves. Gives the file. KafkaError if there are fewer bytes.
    """
    segments = [path for path in sorted(directory.glob("*.log")) if path.stat().st_size]
    if not segments or segments[-1].stat().st_size < size:
        raise KafkaError(f"{directory} has no {size} bytes to damage in its last segment")
    with segments[-1].open("r+b") as segment:
        segment.seek(-size, 2)
        tail = segment.read(size)
        segment.seek(-size, 2)
        segment.write(bytes(byte ^ 0xFF for byte in tail))
    return segments[-1]
