"""Searches messages of a topic: from an offset or a time on, with a key, or containing a text.

Every search is bounded: in messages, bytes and seconds, and in the shown part of each message. The
result has the positions where it stopped, so that the next search can continue there.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from kafka08.client import ClusterClient, RetryPolicy
from kafka08.client.log_offsets import (
    log_ends,
    messages_at,
    offsets_before_each,
    offsets_or_errors,
)
from kafka08.clock import Clock
from kafka08.consumer.batch import BatchLimits
from kafka08.consumer.partition_reader import PartitionReader
from kafka08.errors import (
    InvalidMessage,
    KafkaError,
    UnknownTopicOrPartition,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)
from kafka08.nearest import did_you_mean
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, TopicPartition

MESSAGES_MAX: Final = 200
"""Maximum number of messages in a result."""
SCANNED_MAX: Final = 200_000
"""Maximum number of messages in which a search looks for a key or a text."""
SEARCHED_BACK: Final = 20_000
"""With Start.LATEST, a search for a key or a text covers so many of the topic's last messages."""
BYTES_MAX: Final = 64 * 1024 * 1024
"""Maximum bytes of keys and values that a search reads."""
SECONDS_MAX: Final = 5.0
SHOWN_BYTES_MAX: Final = 16 * 1024
"""Maximum bytes shown of one key or value."""
RETRIES: Final = RetryPolicy(tries=2, backoff_ms=100)
FETCH_BYTES: Final = 1024 * 1024
BATCH: Final = BatchLimits(max_messages=5000, max_bytes=8 * 1024 * 1024)


class Start(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIME = "time"
    AT = "at"
    """Where an earlier search stopped."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """partition   None: all
    number      the offset, or the time in ms
    at          partition → offset, with Start.AT
    key         the whole key
    text        contained in key or value
    """

    topic: str
    partition: int | None = None
    start: Start = Start.LATEST
    number: int = 0
    at: Mapping[int, int] | None = None
    limit: int = 50
    key: bytes | None = None
    text: bytes | None = None


class Browser:
    """Performs one search. The caller closes `cluster`.

    negotiates   whether brokers report their versions, so that they can be asked for timestamps
    """

    def __init__(self, cluster: ClusterClient, clock: Clock, *, negotiates: bool) -> None:
        self._cluster = cluster
        self._clock = clock
        self._negotiates = negotiates
        self._ends_at = clock.monotonic() + SECONDS_MAX
        self._bytes = 0
        self._scanned = 0

    def search(self, request: SearchRequest) -> dict[str, Any]:
        """The result as JSON: messages, and the positions to continue at. UnknownTopicOrPartition
        if the topic or partition does not exist (nothing is created); errors of single partitions
        are in `faults`."""
        partitions = self._partitions(request)
        starts, faults = self._starts(request, partitions)
        shown: list[dict[str, Any]] = []
        position = {tp.partition: offset for tp, offset in starts.items()}
        ended = []
        limit = min(request.limit, MESSAGES_MAX)
        for index, (tp, offset) in enumerate(starts.items()):
            share = -(-(limit - len(shown)) // (len(starts) - index))
            reader = PartitionReader(
                self._cluster,
                tp,
                offset,
                fetch_bytes=FETCH_BYTES,
                wait_ms=1,
                policy=RETRIES,
                is_stopping=self._is_late,
                timestamps=self._negotiates,
                clock=self._clock,
            )
            try:
                found = self._read(reader, request, share)
                shown += found
                is_full = len(found) >= share > 0
                behind = found[-1]["offset"] + 1 if is_full else reader.position
                position[tp.partition] = behind
                if 0 <= reader.high_watermark <= behind:
                    ended.append(tp.partition)
            except KafkaError as error:
                faults[tp.partition] = str(error)
        return {
            "topic": request.topic,
            "messages": shown,
            "next": position,
            "ended": ended,
            "scanned": self._scanned,
            "is_cut": self._is_late() or self._is_full(),
            "faults": faults,
        }

    def _partitions(self, request: SearchRequest) -> list[TopicPartition]:
        metadata = self._cluster.refresh()
        if request.topic not in metadata.topics:
            hint = did_you_mean(request.topic, metadata.topics)
            raise UnknownTopicOrPartition(f"topic {request.topic} does not exist{hint}")
        existing = sorted(info.partition for info in metadata.partitions(request.topic))
        wanted = existing if request.partition is None else [request.partition]
        if request.at is not None:
            wanted = [number for number in wanted if number in request.at]
        for number in wanted:
            if number not in existing:
                raise UnknownTopicOrPartition(
                    f"{TopicPartition(request.topic, number)}: the topic has {len(existing)}"
                )
        return [TopicPartition(request.topic, number) for number in wanted]

    def _starts(
        self, request: SearchRequest, partitions: list[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[int, str]]:
        """(partition → start offset within the log, partition → why it cannot be read)."""
        faults: dict[int, str] = {}
        bounds: dict[TopicPartition, list[int]] = {tp: [] for tp in partitions}
        for which in (EARLIEST_OFFSET, LATEST_OFFSET):
            for tp, found in offsets_or_errors(self._cluster, dict.fromkeys(bounds, which)).items():
                if isinstance(found, KafkaError) or not found:
                    faults[tp.partition] = str(found or "its log has no bounds")
                    del bounds[tp]
                else:
                    bounds[tp].append(found[0])
        back = min(request.limit, MESSAGES_MAX)
        if request.key is not None or request.text is not None:
            back = SEARCHED_BACK
        each = -(-back // max(1, len(bounds)))
        by_time: Mapping[TopicPartition, int | None] = {}
        if request.start is Start.TIME:
            by_time = self._at_time(list(bounds), request.number)

        def begin(tp: TopicPartition, start: int, end: int) -> int:
            match request.start:
                case Start.EARLIEST:
                    return start
                case Start.LATEST:
                    return end - each
                case Start.OFFSET:
                    return request.number
                case Start.TIME:
                    found = by_time.get(tp)
                    return start if found is None else found
                case Start.AT:
                    return (request.at or {}).get(tp.partition, end)

        starts = {
            tp: max(start, min(end, begin(tp, start, end))) for tp, (start, end) in bounds.items()
        }
        return starts, faults

    def _at_time(
        self, partitions: list[TopicPartition], time_ms: int
    ) -> Mapping[TopicPartition, int | None]:
        """Offsets by the timestamps of messages; without timestamps, by the times at which segments
        were written, which may be too early."""
        times = dict.fromkeys(partitions, time_ms)
        if self._negotiates:
            try:
                found = messages_at(self._cluster, times)
                late = log_ends(self._cluster, [tp for tp, one in found.items() if one is None])
                return {tp: late[tp] if one is None else one[0] for tp, one in found.items()}
            except (UnsupportedVersion, UnsupportedForMessageFormat):
                pass
        return offsets_before_each(self._cluster, times)

    def _read(
        self, reader: PartitionReader, request: SearchRequest, limit: int
    ) -> list[dict[str, Any]]:
        """Up to `limit` matching messages, before the log end or any bound."""
        found: list[dict[str, Any]] = []
        while len(found) < limit and not self._is_late() and not self._is_full():
            before = reader.position
            try:
                for batch in reader.poll(BATCH):
                    columns = zip(
                        batch.offsets,
                        batch.timestamps or [-1] * len(batch),
                        batch.keys(),
                        batch.values(),
                        strict=True,
                    )
                    for offset, time_ms, key, value in columns:
                        self._scanned += 1
                        self._bytes += len(key or b"") + len(value or b"")
                        if is_wanted(request, key, value):
                            found.append(message(batch.partition, offset, time_ms, key, value))
                            if len(found) == limit:
                                return found
                    if self._is_late() or self._is_full():
                        break
            except InvalidMessage as error:
                skipped = reader.skip_damaged(error)
                if skipped is None:
                    raise
                found.append(damaged(skipped[0].partition, skipped[1] - 1, error))
            if reader.is_at_end or reader.position == before:
                break
        return found

    def _is_late(self) -> bool:
        return self._clock.monotonic() > self._ends_at

    def _is_full(self) -> bool:
        return self._scanned >= SCANNED_MAX or self._bytes >= BYTES_MAX


def is_wanted(request: SearchRequest, key: bytes | None, value: bytes | None) -> bool:
    if request.key is not None and key != request.key:
        return False
    text = request.text
    return text is None or text in (value or b"") or text in (key or b"")


def message(
    partition: int, offset: int, time_ms: int, key: bytes | None, value: bytes | None
) -> dict[str, Any]:
    """A message as JSON. `time_ms`: None without a timestamp."""
    return {
        "partition": partition,
        "offset": offset,
        "time_ms": None if time_ms < 0 else time_ms,
        "key": shown_part(key),
        "value": shown_part(value),
    }


def damaged(partition: int, offset: int, error: InvalidMessage) -> dict[str, Any]:
    """The JSON in place of a message with a wrong checksum."""
    return message(partition, offset, -1, None, None) | {"fault": str(error)}


def shown_part(data: bytes | None) -> dict[str, Any] | None:
    """The shown part of a key or value; None for null. `size` is that of the whole."""
    if data is None:
        return None
    return {"size": len(data), "data": base64.b64encode(data[:SHOWN_BYTES_MAX]).decode()}
