"""Reads a partition that this broker leads from its start to the end that it has: the records from
which a coordinator loads its state.

Waits for records above the high watermark: they are committed soon, and nothing was appended after
them yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kafka08.broker.replica.partition import Partition
from kafka08.errors import CorruptLog
from kafka08.kernel import MessageAndMetadata
from kafka08.kernel.types import Buffer
from kafka08.log.log import Log
from kafka08.protocol import message_set
from kafka08.runtime import BrokerRuntime

RECORDS_PER_SLICE: Final = 1000
"""The most records between two pauses: a few ms, to keep the hub responsive."""
COMMITTED_POLL_S: Final = 0.05
"""The pause after everything below the high watermark was read, but not the log's end."""


class CommittedPart(NamedTuple):
    """Some entries of a log, and the messages in them. To be read to its end before the next."""

    data: Buffer
    messages: Iterator[MessageAndMetadata[bytes, bytes]]


def committed_parts(
    partition: Partition,
    log: Log,
    runtime: BrokerRuntime,
    buffer_bytes: int,
    is_current: Callable[[], bool],
) -> Iterator[CommittedPart]:
    """The log in parts of about `buffer_bytes`. Ends early once `is_current` says that nobody needs
    them. Switches. CorruptLog if an entry claims a size or an offset beyond the log's end."""
    topic, number = partition.topic_partition
    offset, end, size = log.log_start_offset, log.log_end_offset, buffer_bytes
    while offset < end and is_current():
        if offset >= partition.high_watermark:
            runtime.sleep(COMMITTED_POLL_S)
            continue
        high_watermark = partition.high_watermark
        # The HW may rise below; the check there is against the one that was read with.
        part = log.read(offset, size, high_watermark)
        if not part.size:
            offset = high_watermark  # everything in between was compacted away
            continue
        data = part.bytes()
        messages = message_set.decode(data, offset, topic, number)
        yield CommittedPart(data, _in_slices(messages, runtime, is_current))
        if not is_current():
            return
        if messages.next_offset == offset:
            if part.size < size:
                raise CorruptLog(f"the entry at offset {offset} is larger than the log")
            size *= 2  # 0.8: an entry larger than the buffer stalls the load for ever.
        if messages.next_offset > high_watermark:
            raise CorruptLog(f"an offset after {offset} is above the HW, {high_watermark}")
        offset = messages.next_offset


def _in_slices(
    messages: Iterator[MessageAndMetadata[bytes, bytes]],
    runtime: BrokerRuntime,
    is_current: Callable[[], bool],
) -> Iterator[MessageAndMetadata[bytes, bytes]]:
    for count, message in enumerate(messages, 1):
        yield message
        if count % RECORDS_PER_SLICE == 0:
            runtime.sleep(0)
            if not is_current():
                return
