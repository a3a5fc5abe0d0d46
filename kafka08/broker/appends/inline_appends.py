"""InlineAppends: the appends of one turn of the event loop, as far as they take little time.

A compressed set is unpacked, numbered and compressed again: 2 to 4 ms for each MB of messages. Its
own size does not tell how many they are: 59 KB of gzip may unpack to 60 MB. So a turn has a limit
of unpacked bytes; a set beyond it waits for a native job (AppendQueue), like one that is large
itself.
"""

from __future__ import annotations

from typing import Final

from kafka08.broker.replica.partition import Partition
from kafka08.config import LONG_MAX
from kafka08.errors import UnpacksTooLarge
from kafka08.kernel.types import Buffer
from kafka08.log.slices import AppendInfo
from kafka08.network.server_connection import LARGE_BYTES

NATIVE_MIN_BYTES: Final = 64 << 10
"""Compressed sets below this are handled inline: a hop to a thread and back costs 45 µs."""
UNPACKED_BYTES: Final = 4 << 20
"""The most unpacked bytes of one turn, about 10 ms."""
RATIO_MAX: Final = 32
"""The most unpacked bytes for each byte of a set. A set below LARGE_BYTES counts as so large: a
connection may send 64 requests of that size in one turn."""


class InlineAppends:
    """Appends sets of one request until they have unpacked UNPACKED_BYTES; its owner makes a new
    one after each switch."""

    __slots__ = ("_left_bytes",)

    def __init__(self) -> None:
        self._left_bytes = UNPACKED_BYTES

    def append(
        self, partition: Partition, message_set: Buffer, required_acks: int
    ) -> AppendInfo | None:
        """Partition.append. None if the set belongs into the partition's AppendQueue: others wait
        there, or it takes too long. Then nothing was appended, and offsets in the set's bytes may
        have changed."""
        if partition.is_queued or self._takes_long(partition, message_set):
            return None
        limit = min(self._left_bytes, RATIO_MAX * max(len(message_set), LARGE_BYTES))
        unpacked_bytes = limit  # Unknown after an error.
        try:
            info = partition.append(message_set, required_acks, limit)
            unpacked_bytes = info.unpacked_bytes
        except UnpacksTooLarge:
            return None
        finally:
            self._left_bytes = max(0, self._left_bytes - unpacked_bytes)
        return info

    def _takes_long(self, partition: Partition, message_set: Buffer) -> bool:
        """Whether an append may need a native job: a large set to be unpacked or compressed, or
        the fsync of flush.messages."""
        log = partition.log
        if log is None:
            return False  # This broker does not lead it.
        config = log.config
        if config.flush_messages < LONG_MAX and log.may_owe_flush(message_set):
            return True
        is_large = len(message_set) >= NATIVE_MIN_BYTES or not self._left_bytes
        return is_large and config.repacks(message_set)
