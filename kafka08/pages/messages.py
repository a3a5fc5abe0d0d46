"""Searches messages of a topic: from an offset or a time on, with a key, or containing a text.
Those of several partitions are merged by time.

Every search is bounded: in messages, bytes and seconds, and in the shown part of each message. The
result has the positions where it stopped, so that the next search can continue there.
"""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any, Final, TypeAlias

from kafka08.client import ClusterClient, RetryPolicy
from kafka08.client.log_offsets import (
    offsets_at,
    offsets_before,
    offsets_or_errors,
)
from kafka08.client.metadata import chosen_partitions
from kafka08.clock import Clock
from kafka08.consumer.fetching.batch import BatchLimits
from kafka08.consumer.partition_reader import PartitionReader
from kafka08.errors import (
    InvalidMessage,
    KafkaError,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)
from kafka08.pages.merge import Message, in_order, merge, newest
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, TopicPartition

MESSAGES_MAX: Final = 200
"""Maximum number of messages in a result."""
SCANNED_MAX: Final = 200_000
"""Maximum number of messages in which a search looks for a key or a text."""
SEARCHED_BACK: Final = 20_000
"""With Start.LATEST, a search for a key or a text covers this many of the topic's last messages."""
BYTES_MAX: Final = 64 * 1024 * 1024
"""Maximum bytes of keys and values that a search reads."""
SECONDS_MAX: Final = 5.0
SHOWN_BYTES_MAX: Final = 16 * 1024
"""Maximum bytes shown of one key or value."""
RETRIES: Final = RetryPolicy(tries=2, backoff_ms=100, within_s=0)
FETCH_BYTES: Final = 1024 * 1024
FETCH_BYTES_MIN: Final = 16 * 1024
"""Each partition of a topic has a fetch in memory, so those of many partitions are small."""
BATCH: Final = BatchLimits(max_messages=5000, max_bytes=8 * 1024 * 1024)

Bounds: TypeAlias = tuple[int, int]
"""The first offset of a log, and the one behind its last message."""


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

    @property
    def is_filtered(self) -> bool:
        return self.key is not None or self.text is not None


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
        self._fetch_bytes = FETCH_BYTES

    def search(self, request: SearchRequest) -> dict[str, Any]:
        """The result as JSON: messages, merged by time, and the positions to continue at.
        UnknownTopicOrPartition if the topic or partition does not exist (nothing is created);
        errors of single partitions are in `faults`.

        `order` is "partition" if no message has a timestamp, else "time".
        """
        with self._cluster.trying_until(self._ends_at):
            return self._search(request)

    def _search(self, request: SearchRequest) -> dict[str, Any]:
        bounds, faults = self._bounds(self._partitions(request))
        self._fetch_bytes = min(FETCH_BYTES, max(FETCH_BYTES_MIN, BYTES_MAX // (len(bounds) or 1)))
        limit = min(request.limit, MESSAGES_MAX)
        if request.start is Start.LATEST:
            scans, found = self._newest(request, bounds, limit)
            untaken: dict[int, Message] = {}
        else:
            starts = self._starts(request, bounds)
            scans = {tp.partition: self._scan(tp, at, request) for tp, at in starts.items()}
            found, untaken = merge({n: iter(scan) for n, scan in scans.items()}, limit)
        messages, order = in_order(found)
        return {
            "topic": request.topic,
            "messages": messages,
            "order": order,
            "next": {
                number: untaken[number]["offset"] if number in untaken else scan.position
                for number, scan in scans.items()
            },
            "ended": [n for n, scan in scans.items() if scan.is_at_end and n not in untaken],
            "scanned": self._scanned,
            "is_cut": self._has_ended(),
            "faults": faults | {n: scan.fault for n, scan in scans.items() if scan.fault},
        }

    def _newest(
        self, request: SearchRequest, bounds: Mapping[TopicPartition, Bounds], limit: int
    ) -> tuple[dict[int, Scan], list[Message]]:
        """(the scan of each partition that reached its end, the newest `limit` messages). Begins
        with few messages of each partition, and reads on before them where all were taken."""
        back = SEARCHED_BACK if request.is_filtered else 2 * limit
        each = -(-back // (len(bounds) or 1))
        begins = {tp: max(start, end - each) for tp, (start, end) in bounds.items()}
        scans = {tp: self._scan(tp, at, request) for tp, at in begins.items()}
        found: dict[int, Sequence[Message]] = {
            tp.partition: deque(scan, limit) for tp, scan in scans.items()
        }
        while True:
            taken = newest(found, limit)
            messages, _ = merge({n: iter(chosen) for n, chosen in taken.items()}, limit)
            is_enough = len(messages) == limit and in_order(messages)[1] == "partition"
            short = [
                tp
                for tp, at in begins.items()
                if at > bounds[tp][0]
                and len(taken.get(tp.partition, ())) == len(found[tp.partition])
                and not scans[tp].fault
            ]
            if request.is_filtered or is_enough or not short or self._has_ended():
                return {tp.partition: scan for tp, scan in scans.items()}, messages
            for tp in short:
                end = begins[tp]
                begins[tp] = max(bounds[tp][0], end - 2 * limit)
                older = self._scan(tp, begins[tp], request, end)
                found[tp.partition] = [*older, *found[tp.partition]]
                scans[tp].fault = older.fault

    def _scan(
        self, tp: TopicPartition, offset: int, request: SearchRequest, end: float = inf
    ) -> Scan:
        reader = PartitionReader(
            self._cluster,
            tp,
            offset,
            fetch_bytes=self._fetch_bytes,
            wait_ms=1,
            policy=RETRIES,
            is_stopping=self._is_late,
            timestamps=self._negotiates,
            clock=self._clock,
        )
        return Scan(self, reader, request, end)

    def _partitions(self, request: SearchRequest) -> list[TopicPartition]:
        numbers = None if request.partition is None else [request.partition]
        found = chosen_partitions(self._cluster.refresh(), request.topic, numbers)
        return [tp for tp in found if request.at is None or tp.partition in request.at]

    def _bounds(
        self, partitions: list[TopicPartition]
    ) -> tuple[dict[TopicPartition, Bounds], dict[int, str]]:
        """(partition → (start, end) of its log, partition → why it cannot be read)."""
        faults: dict[int, str] = {}
        bounds: dict[TopicPartition, list[int]] = {tp: [] for tp in partitions}
        for which in (EARLIEST_OFFSET, LATEST_OFFSET):
            for tp, found in offsets_or_errors(self._cluster, dict.fromkeys(bounds, which)).items():
                if isinstance(found, KafkaError) or not found:
                    faults[tp.partition] = str(found or "its log has no bounds")
                    del bounds[tp]
                else:
                    bounds[tp].append(found[0])
        return {tp: (start, end) for tp, (start, end) in bounds.items()}, faults

    def _starts(
        self, request: SearchRequest, bounds: Mapping[TopicPartition, Bounds]
    ) -> dict[TopicPartition, int]:
        """partition → start offset within the log."""
        by_time: Mapping[TopicPartition, int | None] = {}
        if request.start is Start.TIME:
            by_time = self._at_time(list(bounds), request.number)

        def begin(tp: TopicPartition, start: int, end: int) -> int:
            match request.start:
                case Start.OFFSET:
                    return request.number
                case Start.TIME:
                    found = by_time.get(tp)
                    return start if found is None else found
                case Start.AT:
                    return (request.at or {}).get(tp.partition, end)
                case _:
                    return start

        return {
            tp: max(start, min(end, begin(tp, start, end))) for tp, (start, end) in bounds.items()
        }

    def _at_time(
        self, partitions: list[TopicPartition], time_ms: int
    ) -> Mapping[TopicPartition, int | None]:
        """Offsets by the timestamps of messages. Without timestamps, and where a JVM broker may not
        have searched behind a segment without them, by the times at which segments were written,
        which may be too early."""
        found: dict[TopicPartition, int] = {}
        untimed = partitions
        if self._negotiates:
            try:
                found, untimed = offsets_at(self._cluster, partitions, time_ms)
            except (UnsupportedVersion, UnsupportedForMessageFormat):
                pass
        return {**found, **offsets_before(self._cluster, untimed, time_ms)}

    def wanted(
        self, reader: PartitionReader, request: SearchRequest, end: float
    ) -> Iterator[Message]:
        """The matching messages of a partition, before `end`, the log end or any bound."""
        while not self._has_ended():
            before = reader.position
            if before >= end:
                return
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
                        if offset >= end:
                            return
                        self._scanned += 1
                        self._bytes += len(key or b"") + len(value or b"")
                        if is_wanted(request, key, value):
                            yield message(batch.partition, offset, time_ms, key, value)
                    if self._has_ended():
                        break
            except InvalidMessage as error:
                skipped = reader.skip_damaged(error)
                if skipped is None:
                    raise
                yield damaged(skipped[0].partition, skipped[1] - 1, error)
            if reader.is_at_end or reader.position == before:
                return

    def _has_ended(self) -> bool:
        """Whether a bound is reached."""
        return self._is_late() or self._is_full()

    def _is_late(self) -> bool:
        return self._clock.monotonic() > self._ends_at

    def _is_full(self) -> bool:
        return self._scanned >= SCANNED_MAX or self._bytes >= BYTES_MAX


class Scan:
    """Reads the wanted messages of one partition as they are taken.

    end        exclusive; inf: the log end
    position   the offset behind the last taken message, or behind the last scanned one at the end
    fault      why it ended early
    """

    def __init__(
        self, browser: Browser, reader: PartitionReader, request: SearchRequest, end: float
    ) -> None:
        self._reader = reader
        self._wanted = browser.wanted(reader, request, end)
        self.position = reader.position
        self.fault = ""

    def __iter__(self) -> Iterator[Message]:
        try:
            for message in self._wanted:
                self.position = message["offset"] + 1
                yield message
            self.position = self._reader.position
        except KafkaError as error:
            self.fault = str(error)

    @property
    def is_at_end(self) -> bool:
        return 0 <= self._reader.high_watermark <= self.position


def is_wanted(request: SearchRequest, key: bytes | None, value: bytes | None) -> bool:
    if request.key is not None and key != request.key:
        return False
    text = request.text
    return text is None or text in (value or b"") or text in (key or b"")


def message(
    partition: int, offset: int, time_ms: int, key: bytes | None, value: bytes | None
) -> Message:
    """A message as JSON. `time_ms`: None without a timestamp."""
    return {
        "partition": partition,
        "offset": offset,
        "time_ms": None if time_ms < 0 else time_ms,
        "key": shown_part(key),
        "value": shown_part(value),
    }


def damaged(partition: int, offset: int, error: InvalidMessage) -> Message:
    """The JSON in place of a message with a wrong checksum."""
    return message(partition, offset, -1, None, None) | {"fault": str(error)}


def shown_part(data: bytes | None) -> dict[str, Any] | None:
    """The shown part of a key or value; None for null. `size` is that of the whole."""
    if data is None:
        return None
    return {"size": len(data), "data": base64.b64encode(data[:SHOWN_BYTES_MAX]).decode()}
