"""Compares a follower's messages above its HW with a fetched response."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kafka08 import kernel
from kafka08.broker.partition_fetch_state import PartitionFetchState
from kafka08.errors import CorruptLog
from kafka08.kernel.types import ENTRY_HEADER
from kafka08.protocol.fetch import FetchPartitionResponse
from kafka08.protocol.grouping import by_topic
from kafka08.protocol.message_set import NO_LIMIT
from kafka08.protocol.types import Buffer
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from kafka08.log.log import Log


def drop_unserved(
    wanted: dict[TopicPartition, PartitionFetchState],
    responses: dict[TopicPartition, FetchPartitionResponse],
    served: Collection[TopicPartition],
    room: int,
) -> None:
    """Drop the empty sets that do not say that the leader's log ends there: where the response had
    no room for the next message. The first set of a response always has one.

    served  partitions with messages that are not in `responses` any more
    room    what the response lacks to its limit, in bytes
    """
    is_first = True
    for topic, items in by_topic(wanted).items():
        for number, followed in items:
            tp = TopicPartition(topic, number)
            data = responses.get(tp)
            if tp in served or (data is not None and data.message_set):
                is_first = False
            elif data is not None and followed.unsettled is not None and not is_first:
                needed = ENTRY_HEADER.size + followed.log.config.max_message_bytes
                if not data.error_code and needed > min(room, followed.max_bytes):
                    del responses[tp]


def same_entries(log: Log, offset: int, message_set: Buffer) -> tuple[kernel.SetSummary, bool]:
    """(the complete entries from `offset` on that the log and a fetched set have in common, whether
    the log has something else behind them). An empty set differs: the leader's log ends there.
    CorruptLog if the common entries are damaged."""
    begins_later = offset < log.log_start_offset
    own = b"" if begins_later else log.read(offset, len(message_set)).bytes()
    equal = _common_length(own, memoryview(message_set))
    try:
        return kernel.validate(own[:equal], NO_LIMIT), not own or equal < len(own)
    except ValueError as error:
        raise CorruptLog(f"{log.name} from offset {offset} on: {error}") from error


def _common_length(one: bytes, other: memoryview) -> int:
    """How many bytes at the beginning are equal."""
    equal, end = 0, min(len(one), len(other))
    if one[:end] == other[:end]:
        return end
    while end - equal > 1:
        middle = (equal + end) // 2
        if one[equal:middle] == other[equal:middle]:
            equal = middle
        else:
            end = middle
    return equal
