"""The cleaner's offset map, which holds the last offset of each key (twin).

Source: kafka.log.SkimpyOffsetMap, kafka.log.Cleaner.buildOffsetMapForSegment and cleanInto 0.8.2.2.
"""

from __future__ import annotations

from hashlib import md5

from kafka08.kernel._python_sets import fields, walk
from kafka08.kernel.types import MAX_SET_BYTES, Buffer, CorruptMessage, Retained


class OffsetMap:
    """key → the last offset seen with it, for at most `capacity` keys.

    Keys are compared by their MD5, as 0.8.2.2 does. The native map is a table of `slots` entries
    of 24 bytes. 0 < `capacity` < `slots`, else ValueError; searches are slow in a table that is
    nearly full. Not thread-safe.

    Both methods take sets of plain entries (the caller decompresses wrappers first), ignore a
    partial entry at the end, and raise CorruptMessage on a size below 14. They run without the GIL
    and do not verify CRCs.
    """

    def __init__(self, slots: int, capacity: int) -> None:
        if not 0 < capacity < slots <= MAX_SET_BYTES:
            raise ValueError(f"a map of {slots} slots cannot hold {capacity} keys")
        self.slots = slots
        self.capacity = capacity
        self._last_offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        """Keys in the map."""
        return len(self._last_offsets)

    def add(self, data: Buffer, from_offset: int = 0) -> int:
        """Add the messages of a set from `from_offset` >= 0 on, in order.

        Returns -1, or, if the map is full, the offset of the first message that was not added.
        Messages without a key or with unreadable fields are skipped.
        """
        if from_offset < 0:
            raise ValueError(f"from_offset {from_offset} is negative")
        view = memoryview(data)
        for position, offset, size in walk(view):
            if offset < from_offset:
                continue
            try:
                _, key, _ = fields(view, position, offset, size)
            except CorruptMessage:
                continue
            if key is None:
                continue
            digest = md5(key, usedforsecurity=False).digest()
            if len(self._last_offsets) == self.capacity and digest not in self._last_offsets:
                return offset
            self._last_offsets[digest] = offset
        return -1

    def retain(self, data: Buffer, output: Buffer, keep_tombstones: bool) -> Retained:
        """Copy the entries of a set that must be retained to `output`, which is at least as large.

        Dropped are messages without a key, those whose key is in the map with a higher offset, and
        (unless `keep_tombstones`) those with a null value. A message with unreadable fields is
        retained. Entries are copied unchanged, with their offsets.
        """
        view, target = memoryview(data), memoryview(output)
        if target.readonly:
            raise BufferError("Object is not writable.")
        if len(target) < len(view):
            raise ValueError("the output is smaller than the data")
        written = read = kept = unkeyed = 0
        for position, offset, size in walk(view):
            read += 1
            try:
                _, key, value = fields(view, position, offset, size)
            except CorruptMessage:
                stays = True
            else:
                unkeyed += key is None
                stays = key is not None and (value is not None or keep_tombstones)
                stays = stays and self._is_last(key, offset)
            if stays:
                target[written : written + size] = view[position : position + size]
                written += size
                kept += 1
        return Retained(written, read, kept, unkeyed)

    def _is_last(self, key: Buffer | None, offset: int) -> bool:
        digest = md5(key or b"", usedforsecurity=False).digest()
        return offset >= self._last_offsets.get(digest, -1)
