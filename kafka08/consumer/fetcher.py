"""One thread that fetches from one broker what it leads, and hands whole sets to the streams.

One request is always under way while a stream has room: handing a set over costs nothing, and the
readers decode while the broker answers the next request. Nothing here waits for a reader; the
partitions of a full stream are left out of the next request, so it cannot hold up others.

    OffsetOutOfRange                   the position moves as auto.offset.reset says, with a warning
    a message larger than the fetch    fetched again with its size, up to FETCH_BYTES_MAX
    a broken or larger message         handed over, for the stream to raise; fetching holds
    any other error, a lost connection the partition goes back to the search for leaders

Source: kafka.consumer.ConsumerFetcherThread, kafka.server.AbstractFetcherThread 0.8.2.2.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from typing import Final

from kafka08 import kernel
from kafka08.client.requests import (
    fetch_request,
    fetch_results,
    offsets_request,
    offsets_results,
)
from kafka08.config import INT_MAX
from kafka08.consumer.config import SMALLEST, ConsumerConfig
from kafka08.consumer.fetched import FetchedSet
from kafka08.consumer.progress import Chunk, OwnedPartition
from kafka08.errors import (
    ClientError,
    InvalidMessage,
    KafkaError,
    MessageTooLarge,
    OffsetOutOfRange,
    ProtocolError,
    error_for,
)
from kafka08.network.connection import Connection
from kafka08.protocol.fetch import FetchPartitionResponse, FetchResponse
from kafka08.protocol.offsets import OffsetsPartitionResponse, OffsetsResponse
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, NO_OFFSET, TopicPartition

log = logging.getLogger(__name__)

FETCH_BYTES_MAX: Final = 64 * 1024 * 1024
"""Up to here a fetch grows for an oversize message (fetch.message.max.bytes may be more)."""
REQUEST_BYTES_MAX: Final = 64 * 1024 * 1024
"""About so much is asked for in one request; further partitions have their turn in the next."""
HELD_CHECK_S: Final = 0.1
"""How often a fetcher whose partitions are all held looks again."""


class PartitionFetcher:
    """A named daemon thread; `add` gives it partitions, `stop` ends it.

    on_lost   is given the partitions that this broker does not serve any more
    """

    def __init__(
        self,
        name: str,
        connection: Connection,
        config: ConsumerConfig,
        on_lost: Callable[[Collection[OwnedPartition]], None],
    ) -> None:
        self._name = name
        self._connection = connection
        self._config = config
        self._on_lost = on_lost
        self._bytes_max = max(FETCH_BYTES_MAX, config.fetch_message_max_bytes)
        self._condition = threading.Condition()
        self._partitions: dict[TopicPartition, OwnedPartition] = {}
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, partitions: Iterable[OwnedPartition]) -> None:
        with self._condition:
            self._partitions.update((p.topic_partition, p) for p in partitions)
            self._condition.notify_all()

    def notify(self) -> None:
        """A stream has room again, or partitions were revoked."""
        with self._condition:
            self._condition.notify_all()

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to fetch at all."""
        with self._condition:
            return all(p.revoked for p in self._partitions.values())

    def stop(self) -> None:
        """End the thread soon, breaking off what it waits for. Does not wait for it."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        self._connection.abort()

    def join(self, timeout_s: float) -> bool:
        """Wait for its end; False if it has not come."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._round()
            except Exception:
                # The root of a thread: its partitions must not be lost, whatever this bug is.
                log.exception("[%s] failed", self._name)
                self._connection.close()
                self._lose(self._current())
        self._connection.close()

    def _round(self) -> None:
        """One request and what its answer brings, or a wait for something to ask for."""
        partitions = self._current()
        try:
            self._find_starts([p for p in partitions if p.fetch_offset == NO_OFFSET])
            wanted = self._choose()
            if wanted:
                self._fetch(wanted)
        except (ClientError, ProtocolError) as error:
            if not self._stopping:
                log.warning("[%s] Error in fetch. Possible cause: %s", self._name, error)
                self._lose(partitions)

    def _current(self) -> list[OwnedPartition]:
        with self._condition:
            live = {tp: p for tp, p in self._partitions.items() if not p.revoked}
            self._partitions = live
            return list(live.values())

    def _choose(self) -> dict[TopicPartition, tuple[OwnedPartition, int]]:
        """The partitions of the next request with their offsets; waits a moment if there are none.
        Those chosen go to the end of the line."""
        with self._condition:
            chosen: dict[TopicPartition, tuple[OwnedPartition, int]] = {}
            size = 0
            for tp, partition in list(self._partitions.items()):
                offset = partition.fetch_offset
                if offset == NO_OFFSET or not partition.may_be_fetched:
                    continue
                if chosen and size + partition.fetch_bytes > REQUEST_BYTES_MAX:
                    break
                size += partition.fetch_bytes
                chosen[tp] = (partition, offset)
                self._partitions[tp] = self._partitions.pop(tp)
            if not chosen and not self._stopping:
                self._condition.wait(HELD_CHECK_S)
            return chosen

    def _fetch(self, wanted: dict[TopicPartition, tuple[OwnedPartition, int]]) -> None:
        response = self._connection.send(
            fetch_request(
                {tp: (offset, p.fetch_bytes) for tp, (p, offset) in wanted.items()},
                max_wait_ms=self._config.fetch_wait_max_ms,
                min_bytes=self._config.fetch_min_bytes,
            )
        )
        assert isinstance(response, FetchResponse)
        out_of_range = []
        lost = []
        for tp, result in fetch_results(response).items():
            if tp not in wanted:
                raise ProtocolError(f"{self._connection} answered for {tp}, which nobody asked for")
            partition, offset = wanted[tp]
            error = error_for(result.error_code)
            if error is None:
                self._hand_over(partition, offset, result)
            elif error is OffsetOutOfRange:
                out_of_range.append(partition)
            else:
                log.warning("[%s] %s: %s", self._name, tp, error(f"code {result.error_code}"))
                lost.append(partition)
        self._lose(lost)
        self._find_starts(out_of_range)

    def _hand_over(
        self, partition: OwnedPartition, offset: int, result: FetchPartitionResponse
    ) -> None:
        """Give what was fetched to the stream, or ask for more if no message came whole."""
        tp, data = partition.topic_partition, result.message_set
        if not len(data):
            return
        fetched = FetchedSet(tp, offset, data, partition.fetch_bytes, str(self._connection))
        try:
            needed = fetched.size_needed(self._bytes_max)
        except (MessageTooLarge, InvalidMessage) as error:
            log.error("[%s] %s", self._name, error)
            partition.sink.offer(Chunk(partition, b"", offset, offset, error=error), hold=True)
            return
        if needed is not None:
            partition.fetch_bytes = needed
            return
        partition.fetch_bytes = self._config.fetch_message_max_bytes
        try:
            summary = kernel.validate(data, INT_MAX)
        except (kernel.CorruptMessage, kernel.UnknownCodec):
            # The reader meets it behind the messages that are sound, and raises it.
            partition.sink.offer(Chunk(partition, data, offset, offset), hold=True)
            return
        next_offset = max(offset, summary.last_offset + 1)
        verified = summary.codec == 0
        partition.sink.offer(Chunk(partition, data, offset, next_offset, verified))

    def _find_starts(self, partitions: Collection[OwnedPartition]) -> None:
        """Move partitions without a valid position to the log's start or end."""
        if not partitions:
            return
        smallest = self._config.auto_offset_reset == SMALLEST
        time = EARLIEST_OFFSET if smallest else LATEST_OFFSET
        times = {partition.topic_partition: time for partition in partitions}
        response = self._connection.send(offsets_request(times))
        assert isinstance(response, OffsetsResponse)
        results = offsets_results(response)
        self._lose([p for p in partitions if not self._move(p, results.get(p.topic_partition))])

    def _move(self, partition: OwnedPartition, result: OffsetsPartitionResponse | None) -> bool:
        error: type[KafkaError] | None = error_for(result.error_code) if result else ProtocolError
        if result is None or error is not None or not result.offsets:
            log.warning("[%s] no offset of %s: %s", self._name, partition.topic_partition, error)
            return False
        old, new = partition.fetch_offset, result.offsets[0]
        if partition.sink.reset(partition, old, new) and old != NO_OFFSET:
            log.warning(
                "Current offset %d for partition %s out of range; reset offset to %d",
                old,
                partition.topic_partition,
                new,
            )
        return True

    def _lose(self, partitions: Collection[OwnedPartition]) -> None:
        if not partitions:
            return
        with self._condition:
            for partition in partitions:
                if self._partitions.get(partition.topic_partition) is partition:
                    del self._partitions[partition.topic_partition]
        self._on_lost([p for p in partitions if not p.revoked])
