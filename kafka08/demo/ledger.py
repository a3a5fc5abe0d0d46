"""Checksums of the produced messages, to compare with any range that is read.

Each message has a 64-bit hash of its key and value. The ledger keeps the hashes by partition in
offset order. The checksum of a range of offsets is the sum of a slice (modulo 2**64), so readers
in any order and any process get the same sum if they read the same messages.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

MASK = 2**64 - 1


def message_hash(key: bytes | None, value: bytes | None) -> int:
    """64-bit hash of one message; it includes the lengths, and distinguishes null from empty."""
    digest = blake2b(digest_size=8)
    for part in (key, value):
        digest.update((-1 if part is None else len(part)).to_bytes(8, "big", signed=True))
        digest.update(part or b"")
    return int.from_bytes(digest.digest(), "big")


@dataclass(frozen=True, slots=True)
class Content:
    """Number of messages, bytes of keys and values, and the sum of the messages' hashes."""

    count: int = 0
    size: int = 0
    checksum: int = 0

    def __add__(self, other: Content) -> Content:
        return Content(
            self.count + other.count,
            self.size + other.size,
            (self.checksum + other.checksum) & MASK,
        )

    def __sub__(self, other: Content) -> Content:
        return Content(
            self.count - other.count,
            self.size - other.size,
            (self.checksum - other.checksum) & MASK,
        )

    def __str__(self) -> str:
        return f"{self.count} messages, {self.size} bytes, hash {self.checksum:016x}"


class Ledger:
    """The messages sent, by partition; index in a partition = offset in its log."""

    def __init__(self, partitions: int) -> None:
        self._hashes = [array("Q") for _ in range(partitions)]
        self._sizes = [array("I") for _ in range(partitions)]

    def add(self, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Add the next message of `partition`."""
        self._hashes[partition].append(message_hash(key, value))
        self._sizes[partition].append(len(key or b"") + len(value or b""))

    def log_ends(self) -> dict[int, int]:
        """partition → number of messages."""
        return {partition: len(hashes) for partition, hashes in enumerate(self._hashes)}

    def content(self, ranges: Iterable[tuple[int, int, int]]) -> Content:
        """The content of half-open ranges (partition, from offset, until offset)."""
        total = Content()
        for partition, start, until in ranges:
            hashes = self._hashes[partition][start:until]
            sizes = self._sizes[partition][start:until]
            total += Content(len(hashes), sum(sizes), sum(hashes) & MASK)
        return total

    def whole(self) -> Content:
        """Everything."""
        return self.content((p, 0, end) for p, end in self.log_ends().items())

    def below(self, offsets: Mapping[int, int]) -> Content:
        """The content below the given offset of each partition."""
        return self.content((p, 0, max(0, offset)) for p, offset in offsets.items())
