"""A fetch thread: fetches the partitions that one broker leads, and passes sets to the streams.

One request is in flight while a stream has room, and readers decode while the broker prepares its
response. If all readers are waiting, the thread sends the next request before it hands over the
sets of the last one; a set is dropped if its partition was revoked or moved meanwhile. The thread
never waits for a reader: partitions of a full stream are left out of the next request, and the
broker may hold such a request for a moment only.

Each stream buffers at most max(two responses, one response + queued.max.message.chunks) sets; a
response has one set of each partition.

    OffsetOutOfRange                   auto.offset.reset decides the new position, if the broker
                                       leads by ZooKeeper too; logs a warning
    a message larger than the fetch    fetched again with its size, up to FETCH_BYTES_MAX
    a damaged or larger message        handed over; the stream raises it; fetching pauses
    any other error, a lost connection the partition goes back to the leader finder
    another leader, or leader epoch    see kafka08.consumer.fetching.truncation
    a follower that the leader prefers the same, which then finds that one; after any error, also
                                       OffsetOutOfRange, or metadata.max.age.ms the leader again

Source: kafka.consumer.ConsumerFetcherThread, kafka.server.AbstractFetcherThread 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from math import inf
from typing import Final

from kafka08 import kernel
from kafka08.client.requests import (
    fetch_request,
    offsets_request,
    offsets_results,
    offsets_version,
)
from kafka08.config import INT_MAX
from kafka08.consumer.fetching.committed import committed
from kafka08.consumer.fetching.fetch_metrics import FetchMetrics
from kafka08.consumer.fetching.fetch_settings import NO_RESET, SMALLEST, FetchOptions
from kafka08.consumer.fetching.fetched import FetchedSet, has_all_crcs_checked
from kafka08.consumer.fetching.owned_partition import (
    WITHHELD,
    Chunk,
    OwnedPartition,
    Sink,
    out_of_range_chunk,
    withheld_chunk,
)
from kafka08.consumer.fetching.positions import (
    REQUEST_BYTES_MAX,
    Positions,
    Repeatable,
    Wanted,
    shares_of,
)
from kafka08.consumer.fetching.truncation import check_positions, last_epoch
from kafka08.errors import (
    ApiError,
    ClientError,
    InvalidMessage,
    KafkaError,
    MessageTooLarge,
    NotLeaderForPartition,
    OffsetOutOfRange,
    ProtocolError,
    error_for,
)
from kafka08.network.connection import Connection
from kafka08.protocol.fetch import (
    LIMITED_VERSION,
    MAGIC_1_VERSION,
    NO_REPLICA,
    RACK_VERSION,
    READ_COMMITTED,
    FetchNews,
    FetchPartitionResponse,
    FetchRequest,
)
from kafka08.protocol.fetch_frame import FetchFrame
from kafka08.protocol.offsets import OffsetsPartitionResponse, OffsetsResponse
from kafka08.runtime import ClientRuntime, Task
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, NO_OFFSET, TopicPartition

logger = logging.getLogger(__name__)

FETCH_BYTES_MAX: Final = 64 * 1024 * 1024
"""The limit to which a fetch grows for an oversize message, if fetch.message.max.bytes is
smaller."""
RESPONSE_HEADERS_BYTES: Final = 16 * 1024 * 1024
"""The size of topics and partitions in a response, without their messages."""
HELD_CHECK_S: Final = 0.1
"""How often a fetcher whose partitions are all on hold checks them."""
PARTIAL_WAIT_MS: Final = 10
"""The longest wait of a request that leaves partitions out: their streams may have room a moment
later, and the connection is free only after the response."""

EARLY_MAX: Final = 10
"""How many empty responses in a row may come before half of their wait is over: a segment that
ends, or a leader that has just changed, may cause one."""
EARLY_PAUSE_S: Final = 0.1
"""The pause after each more: a broker that is broken, or not one, would be asked thousands of times
a second."""


def response_bytes_max(config: FetchOptions) -> int:
    """The largest response that the configuration allows: the sum of all requested sizes."""
    messages = max(
        REQUEST_BYTES_MAX,
        FETCH_BYTES_MAX,
        config.fetch_message_max_bytes,
        config.fetch_max_bytes or 0,
    )
    return min(messages + RESPONSE_HEADERS_BYTES, INT_MAX)


class PartitionFetcher:
    """A named daemon thread. `add` assigns partitions to it, `stop` ends it.

    on_lost   receives the partitions that this broker no longer serves, each with its error
    led_by    those of the partitions that this broker leads by another source than itself; may
              raise a KafkaError
    """

    def __init__(
        self,
        name: str,
        connection: Connection,
        config: FetchOptions,
        on_lost: Callable[[Collection[OwnedPartition]], None],
        runtime: ClientRuntime,
        led_by: Callable[[Collection[TopicPartition]], Collection[TopicPartition]],
    ) -> None:
        self._name = name
        self._runtime = runtime
        self._connection = connection
        self._config = config
        self._on_lost = on_lost
        self._led_by = led_by
        self._bytes_max_of_all = (
            INT_MAX if config.fetch_max_bytes is None else config.fetch_max_bytes
        )
        self._bytes_max = max(FETCH_BYTES_MAX, config.fetch_message_max_bytes)
        self._condition = runtime.condition()
        self._partitions: dict[TopicPartition, OwnedPartition] = {}
        self._asked: Positions = {}
        """The content of the request in flight, or of the last request."""
        self._news = FetchNews()
        """Of the responses to the last frame."""
        self._sinks: set[Sink] = set()
        """The streams of all partitions, while it is settled."""
        self._frame: FetchFrame[OwnedPartition] | None = None
        self._framed: tuple[list[OwnedPartition], int, int] = ([], 0, 0)
        """The partitions, the wait and the version of `_frame`."""
        self._with_messages: list[OwnedPartition] = []
        """Partitions of which it had messages."""
        self._repeatable: Repeatable | None = None
        self._is_settled = False
        """The last two requests were for all partitions, and the same. Until a response has news,
        or another thread changes something, the next one is the same again: to look at all
        partitions first takes most of what idle ones cost."""
        self._asked_at = 0.0
        self._wait_s = 0.0
        """How long the broker may delay that response."""
        self._early = 0
        """Empty responses in a row that came long before that."""
        self._version = 0
        """The version of the request in flight."""
        self._return_at = inf
        """When the first of its partitions goes back to its leader."""
        self.metrics = FetchMetrics(runtime)
        self._stopping = False
        self._task: Task | None = None

    def start(self) -> None:
        self._task = self._runtime.spawn(self._run, name=self._name)

    def add(self, partitions: Iterable[OwnedPartition]) -> None:
        with self._condition:
            for partition in partitions:
                self._partitions[partition.topic_partition] = partition
                self._return_at = min(self._return_at, partition.replica_until)
            self._is_settled = False
            self._condition.notify_all()

    def notify(self) -> None:
        """A stream has room again, or partitions were revoked: check again."""
        with self._condition:
            self._is_settled = False
            self._condition.notify_all()

    @property
    def is_idle(self) -> bool:
        """Whether it has no partitions at all."""
        with self._condition:
            return all(p.revoked for p in self._partitions.values())

    def stop(self) -> None:
        """Ask the thread to end and interrupt its wait. Does not wait for it."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        self._connection.abort()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end; False on timeout."""
        if self._task is None:
            return True
        self._task.join(timeout_s)
        return not self._task.is_alive()

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._round()
            except Exception:
                # The root of a thread: no bug may lose its partitions.
                logger.exception("[%s] Uncaught error in a fetch", self._name)
                self._connection.close()
                self._lose(
                    dict.fromkeys(
                        self._current(),
                        KafkaError("a bug in the fetcher; the log has its stack trace"),
                    )
                )
        self._connection.close()

    def _round(self) -> None:
        """Handle one response, or wait until there is something to request."""
        try:
            if not self._connection.in_flight and (partitions := self._current()):
                self._version = self._highest_version()
                # With no fetch in flight: its response would come first on this connection.
                self._find_starts([p for p in partitions if p.fetch_offset == NO_OFFSET])
                self._check([p for p in partitions if p.unchecked and not p.held])
                self._ask(self._choose())
            if self._connection.in_flight:
                self._receive_response()
            else:
                self._wait()
        except (ClientError, ProtocolError) as error:
            if not self._stopping:
                partitions = self._current()
                is_new = any(p.outage.error is None for p in partitions)
                level = logging.WARNING if is_new else logging.DEBUG
                logger.log(level, "[%s] Error in fetch. Possible cause: %s", self._name, error)
                self._lose(dict.fromkeys(partitions, error))

    def _highest_version(self) -> int:
        """0 on a connection that does not ask for the broker's versions."""
        self._connection.open()
        highest = MAGIC_1_VERSION if self._config.fetch_max_bytes is None else RACK_VERSION
        return self._connection.versions.highest(FetchRequest, 0, highest)

    def _current(self) -> list[OwnedPartition]:
        with self._condition:
            live = {tp: p for tp, p in self._partitions.items() if not p.revoked}
            self._partitions = live
            return list(live.values())

    def _wait(self) -> None:
        """Wait for a notification, or for HELD_CHECK_S."""
        with self._condition:
            if not self._stopping:
                self._condition.wait(HELD_CHECK_S)

    def _choose(self) -> Positions:
        """The partitions of the next request with their offsets: those whose streams have room."""
        chosen = []
        has_room: dict[Sink, bool] = {}
        with self._condition:
            if self._is_settled and self._have_room():
                return self._asked
            for owned in self._partitions.values():
                offset = owned.fetch_offset
                if owned.revoked or owned.held or owned.unchecked or offset == NO_OFFSET:
                    continue
                sink = owned.sink
                if sink not in has_room:
                    has_room[sink] = sink.has_room
                if has_room[sink]:
                    chosen.append((owned, offset))
            return self._in_turn(chosen)

    def _choose_ahead(self, chunks: Mapping[OwnedPartition, Chunk]) -> Positions:
        """The positions after `chunks`, which are still to be handed over. Empty unless all readers
        wait and all partitions can be requested: the broker may delay a request for some of them,
        and the others would wait for its response."""
        with self._condition:
            if self._is_settled and not chunks:
                return self._asked if self._have_room(is_waited_for=True) else {}
            if any(chunk.hold for chunk in chunks.values()):
                return {}
            positions = []
            sinks = set()
            for owned in self._partitions.values():
                offset = owned.fetch_offset
                if owned.revoked or owned.held or owned.unchecked or offset == NO_OFFSET:
                    return {}  # a log's start must be found first, with no request in flight
                sinks.add(owned.sink)
                positions.append((owned, offset))
            if not all(sink.has_room and sink.is_waited_for for sink in sinks):
                return {}
            if chunks:
                positions = [
                    (p, chunks[p].next_offset if p in chunks else offset) for p, offset in positions
                ]
            return self._in_turn(positions)

    def _have_room(self, *, is_waited_for: bool = False) -> bool:
        """Whether the streams of all partitions have room, and their readers wait. While it is
        settled."""
        return all(
            sink.has_room and (sink.is_waited_for or not is_waited_for) for sink in self._sinks
        )

    def _in_turn(self, wanted: Wanted) -> Positions:
        """A request for them, or for some of them, see `shares_of`."""
        former = self._repeatable
        if (
            former is not None
            and not self._with_messages
            and former.version == self._version
            and former.wanted == wanted
        ):
            self._is_settled = former.chosen is self._asked and len(wanted) == len(self._partitions)
            self._sinks = {partition.sink for partition, _ in wanted}
            return former.chosen
        self._repeatable = None
        shares = shares_of(wanted, is_limited=self._version >= LIMITED_VERSION)
        for tp in shares.last:
            self._partitions[tp] = self._partitions.pop(tp)
        if shares.is_repeatable:
            self._repeatable = Repeatable(self._version, wanted, shares.chosen)
        return shares.chosen

    def _ask(self, wanted: Positions) -> None:
        """Send a request, unless it would be empty; `_receive_response` handles its response."""
        if not wanted:
            return
        wait_ms = self._config.fetch_wait_max_ms
        if len(self._partitions) > len(wanted):
            wait_ms = min(wait_ms, PARTIAL_WAIT_MS)
        frame = self._frame_of(wanted, wait_ms)
        self._asked = wanted
        number = self._connection.take_correlation_id()
        data = frame.numbered(number)
        self._connection.write_frame(data, number, FetchRequest, version=self._version)
        self._asked_at = self._runtime.monotonic()
        self._wait_s = wait_ms / 1000

    def _frame_of(self, wanted: Positions, wait_ms: int) -> FetchFrame[OwnedPartition]:
        """The frame of a request for these: the last one with changed offsets and sizes, if that
        was for the same partitions."""
        frame = self._frame
        is_same = wanted is self._asked and self._framed[1:] == (wait_ms, self._version)
        if frame is not None and is_same:
            return frame
        framed = [asked.partition for asked in wanted.values()], wait_ms, self._version
        if frame is not None and framed == self._framed:
            for tp, asked in wanted.items():
                if asked != self._asked[tp]:
                    frame.put(*asked)
            return frame
        request = fetch_request(
            {tp: (offset, size, p.leader_epoch) for tp, (p, offset, size) in wanted.items()},
            max_wait_ms=wait_ms,
            min_bytes=self._config.fetch_min_bytes,
            max_bytes=self._bytes_max_of_all,
            isolation=self._config.isolation,
            rack=self._config.nearest.rack if self._config.nearest is not None else "",
            version=self._version,
        )
        self._framed = framed
        self._frame = frame = FetchFrame(
            request,
            self._connection.client_id,
            {tp: asked.partition for tp, asked in wanted.items()},
        )
        self._news = FetchNews()  # each of them is to get its high watermark
        return frame

    def _receive_response(self) -> None:
        """Read the pending response and hand over its sets. If the readers are waiting, the next
        request is sent before that, but after the CRC checks: the walk over a set that finds the
        offset to ask for takes more than half of their time, and would be made twice."""
        asked = self._asked
        payload = self._connection.read_payload()
        try:
            news = self._news.read(payload, self._version)
        except (ApiError, ProtocolError) as unusable:
            self._connection.close()
            raise ProtocolError(f"from {self._connection}: {unusable}") from unusable
        if news:
            self._is_settled = False
        for partition in self._with_messages:
            partition.may_have_more = False
        self._with_messages = []
        chunks: dict[OwnedPartition, Chunk] = {}
        out_of_range: list[OwnedPartition] = []
        lost: dict[OwnedPartition, KafkaError] = {}
        elsewhere = self._to_return()
        self._slow_down([result for _, result in news])
        for topic, result in news:
            tp = TopicPartition(topic, result.partition)
            if tp not in asked:
                raise ProtocolError(f"{self._connection} sent {tp}, which was not requested")
            partition, offset, size = asked[tp]
            if not self._is_wanted(partition, offset):
                self._news.forget(*tp)
                continue
            error = error_for(result.error_code)
            if result.preferred_replica != NO_REPLICA and self._config.nearest is not None:
                until = self._asked_at + self._config.nearest.again_ms / 1000
                partition.fetch_from(result.preferred_replica, until)
                elsewhere.append(partition)
            elif error is None:
                partition.high_watermark = self._end_of(result)
                if partition.outage.error is not None:
                    partition.outage.end()
                if len(result.message_set):
                    partition.may_have_more = True
                    self._with_messages.append(partition)
                chunk = self._chunk(partition, offset, size, result)
                if chunk is not None:
                    chunks[partition] = chunk
            elif result.error_code in WITHHELD:
                chunks[partition] = withheld_chunk(partition, offset, result.error_code)
            # A follower may lag, or its log may start later: only the leader's word counts.
            elif error is not OffsetOutOfRange or partition.replica != NO_REPLICA:
                failure = error(f"code {result.error_code}")
                level = logging.WARNING if partition.outage.error is None else logging.DEBUG
                logger.log(level, "[%s] %s: %s", self._name, tp, failure)
                lost[partition] = failure
            elif self._config.auto_offset_reset == NO_RESET:
                chunks[partition] = out_of_range_chunk(partition, offset)
            else:
                out_of_range.append(partition)
        self.metrics.fetched(chunks.values(), self._asked_at)
        received = sum([len(result.message_set) for _, result in news])
        if self._version >= LIMITED_VERSION and received > self._bytes_max_of_all // 2:
            self._to_the_end(chunks)
        self._lose(lost)
        if elsewhere:
            self._on_lost(self._give_up(elsewhere))
        if out_of_range:
            self._reset(out_of_range)
        else:
            self._ask(self._choose_ahead(chunks))
        for chunk in chunks.values():
            chunk.partition.sink.offer(chunk)

    def _end_of(self, result: FetchPartitionResponse) -> int:
        """The first offset that the reader must not see yet."""
        if self._config.isolation == READ_COMMITTED and result.last_stable_offset >= 0:
            return result.last_stable_offset
        return result.high_watermark

    def _slow_down(self, results: Iterable[FetchPartitionResponse]) -> None:
        """Pause after many responses without messages and errors that came too early."""
        is_empty = all(not one.error_code and not len(one.message_set) for one in results)
        is_early = self._runtime.monotonic() - self._asked_at < self._wait_s / 2
        self._early = self._early + 1 if is_empty and is_early else 0
        if self._early > EARLY_MAX:
            with self._condition:
                if not self._stopping:
                    self._condition.wait(EARLY_PAUSE_S)

    def _to_the_end(self, partitions: Iterable[OwnedPartition]) -> None:
        """Move partitions with messages to the end of the queue: those at its end may have got
        none, for a response has a limit."""
        with self._condition:
            for partition in partitions:
                tp = partition.topic_partition
                if self._partitions.get(tp) is partition:
                    self._partitions[tp] = self._partitions.pop(tp)

    def _is_wanted(self, partition: OwnedPartition, offset: int) -> bool:
        """Whether a set fetched at `offset` is still the next one: since the request the partition
        may have been revoked or lost, or a reader or a response may have moved its position."""
        if self._partitions.get(partition.topic_partition) is not partition:
            return False
        return not partition.revoked and partition.fetch_offset == offset

    def _chunk(
        self, partition: OwnedPartition, offset: int, size: int, result: FetchPartitionResponse
    ) -> Chunk | None:
        """The chunk for the stream; None if no message is whole and a larger fetch must follow."""
        tp, data = partition.topic_partition, result.message_set
        if not len(data):
            return None
        fetched = FetchedSet(tp, offset, data, size, str(self._connection))
        if fetched.is_withheld:
            # There is nothing for the reader there, but the position must pass it.
            return Chunk(partition, b"", offset, offset + 1)
        try:
            needed = fetched.size_needed(self._bytes_max)
        except (MessageTooLarge, InvalidMessage) as error:
            logger.error("[%s] %s", self._name, error)
            return Chunk(partition, b"", offset, offset, error=error, hold=True)
        if needed is not None:
            partition.fetch_bytes = max(needed, self._config.fetch_message_max_bytes)
            return None
        partition.fetch_bytes = self._config.fetch_message_max_bytes
        try:
            summary = kernel.validate(data, INT_MAX)
        except (kernel.CorruptMessage, kernel.UnknownCodec):
            # The reader raises it after the intact messages before it.
            return Chunk(partition, data, offset, offset, hold=True)
        next_offset = summary.last_offset + 1
        epoch = last_epoch(data, summary)
        if next_offset <= offset:
            behind = InvalidMessage(
                f"{tp} at {self._connection}: requested offset {offset}, but the broker sent "
                f"messages up to offset {summary.last_offset} only"
            )
            logger.error("[%s] %s", self._name, behind)
            return Chunk(partition, b"", offset, offset, error=behind, hold=True)
        if result.aborted and self._config.isolation == READ_COMMITTED:
            data = committed(data, result.aborted)
        return Chunk(partition, data, offset, next_offset, epoch, has_all_crcs_checked(summary))

    def _reset(self, partitions: Collection[OwnedPartition]) -> None:
        """Move partitions that have passed their log's end, or whose position was deleted. A former
        leader that does not know its successor yet has a shorter log: it must not decide, for the
        group would consume and commit from the log start again. 0.8.2.2 lets it."""
        try:
            led = set(self._led_by([partition.topic_partition for partition in partitions]))
        except KafkaError as error:
            self._lose(dict.fromkeys(partitions, error))
            return
        lost = [p for p in partitions if p.topic_partition not in led]
        for partition in lost:
            logger.warning(
                "[%s] %s: %s has no offset %d, but does not lead in ZooKeeper",
                self._name,
                partition.topic_partition,
                self._connection,
                partition.fetch_offset,
            )
        former = NotLeaderForPartition(f"{self._connection} is a former leader")
        self._lose(dict.fromkeys(lost, former))
        self._find_starts([p for p in partitions if p.topic_partition in led])

    def _check(self, partitions: Collection[OwnedPartition]) -> None:
        """Have positions confirmed that another leader had."""
        if partitions:
            self._is_settled = False
            reset = self._config.auto_offset_reset
            checked = check_positions(self._connection, partitions, reset)
            self._lose(checked.lost)
            self._find_starts(checked.astray)

    def _find_starts(self, partitions: Collection[OwnedPartition]) -> None:
        """Move partitions without a valid position to the log's start or end."""
        if not partitions:
            return
        self._is_settled = False
        smallest = self._config.auto_offset_reset == SMALLEST
        time = EARLIEST_OFFSET if smallest else LATEST_OFFSET
        times = {partition.topic_partition: time for partition in partitions}
        isolation = self._config.isolation
        version = offsets_version(self._connection.versions, isolation, with_epochs=True)
        response = self._connection.send(
            offsets_request(times, isolation=isolation, version=version)
        )
        assert isinstance(response, OffsetsResponse)
        results = offsets_results(response)
        unknown = [p for p in partitions if not self._move(p, results.get(p.topic_partition))]
        self._lose(
            {p: KafkaError(f"the log start of {p.topic_partition} is unknown") for p in unknown}
        )

    def _move(self, partition: OwnedPartition, result: OffsetsPartitionResponse | None) -> bool:
        error: type[KafkaError] | None = error_for(result.error_code) if result else ProtocolError
        if result is None or error is not None or not result.found or result.found[0] < 0:
            logger.warning("[%s] no offset of %s: %s", self._name, partition.topic_partition, error)
            return False
        old, new = partition.fetch_offset, result.found[0]
        is_moved = partition.sink.reset(partition, old, new, result.leader_epoch)
        if is_moved and old != NO_OFFSET:
            logger.warning(
                "Current offset %d for partition %s out of range; reset offset to %d",
                old,
                partition.topic_partition,
                new,
            )
        return True

    def _lose(self, partitions: Mapping[OwnedPartition, KafkaError]) -> None:
        """Return those that it still has, each once."""
        now = self._runtime.monotonic()
        if partitions:
            self._news = FetchNews()  # the first response after an outage ends it, whatever it says
        lost = self._give_up(partitions)
        for partition in lost:
            partition.outage.failed(partitions[partition], now)
            partition.fetch_from_leader()
        if lost:
            self._on_lost([p for p in lost if not p.revoked])

    def _give_up(self, partitions: Iterable[OwnedPartition]) -> list[OwnedPartition]:
        """Those that it had until now."""
        with self._condition:
            found = [p for p in partitions if self._partitions.get(p.topic_partition) is p]
            for partition in found:
                del self._partitions[partition.topic_partition]
            if found:
                self._is_settled = False
                self._frame = None  # one that comes back may have another leader epoch
        return found

    def _to_return(self) -> list[OwnedPartition]:
        """Partitions of a follower whose leader is to be asked again."""
        now = self._runtime.monotonic()
        if now < self._return_at:
            return []
        with self._condition:
            due = [p for p in self._partitions.values() if p.replica_until <= now]
            for partition in due:
                partition.fetch_from_leader()
            self._return_at = min([p.replica_until for p in self._partitions.values()], default=inf)
        return due
