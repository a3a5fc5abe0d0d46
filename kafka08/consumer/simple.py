"""SimpleConsumer: requests to one broker, with no state but a connection.

    with SimpleConsumer("localhost", 9092) as consumer:
        page = TopicPartition("pages", 0)
        start = consumer.earliest_or_latest(page, EARLIEST_OFFSET)
        for message in consumer.read_range(page, start):
            print(message.offset, message.value)

The caller finds the leader of a partition (`metadata`, or kafka08.client.ClusterClient), and finds
it again when it moves (NotLeaderForPartition). Source: kafka.consumer.SimpleConsumer 0.8.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, overload

from kafka08.client.cluster import ClusterClient
from kafka08.client.committed import error_codes
from kafka08.client.metadata import ClusterMetadata
from kafka08.client.requests import (
    StorageName,
    commit_request,
    committed_request,
    committed_results,
    fetch_request,
    fetch_results,
    offsets_request,
    offsets_results,
)
from kafka08.client.resending import ResendingConnection
from kafka08.client.retry import RetryPolicy
from kafka08.client.yammer_metrics import RequestMetrics
from kafka08.consumer.fetching.fetched import Decoder, FetchedSet
from kafka08.errors import (
    NO_ERROR,
    OffsetOutOfRange,
    ProtocolError,
    check,
    error_of,
)
from kafka08.kernel import MessageAndMetadata
from kafka08.lifecycle import Closeable
from kafka08.network.connection import DEFAULT_TIMEOUT_MS, Connection
from kafka08.protocol.fetch import FetchResponse
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.protocol.offset_fetch import OffsetFetchResponse
from kafka08.protocol.offsets import OffsetsResponse
from kafka08.protocol.types import Request, Response
from kafka08.runtime import Buffers, Runtime
from kafka08.runtime.threads import THREADS
from kafka08.structs import ORDINARY_CONSUMER, OffsetAndMetadata, TopicPartition, host_port

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

FETCH_GROUP: Final = "FetchRequestAndResponseMetrics"
FETCH_BYTES: Final = 1024 * 1024
FETCH_BYTES_MAX: Final = 64 * 1024 * 1024
FETCH_WAIT_MS: Final = 100
COORDINATOR_RETRIES: Final = RetryPolicy(tries=50, backoff_ms=100)
"""About 5 s: a coordinator may take that long to load its partition of the offsets topic."""


class SimpleConsumer(Closeable):
    """Reads from, and commits at, the broker at `host`:`port`. Thread-safe: one request at a time.

    After an I/O error or a timeout, a request is sent once more on a new connection, as the JVM's
    is; then ConnectionFailed or RequestTimeout. Error codes are raised as the classes of
    kafka08.errors, with broker and topic-partition in their text; after `close`, Closed.

    timeout_ms       longest wait for a connection, and for a response; keep it above max_wait_ms
    buffer_size      bytes of the socket's receive buffer; 0: the system adapts it
    max_fetch_bytes  the limit to which a fetch grows for a message larger than its max_bytes
    """

    def __init__(
        self,
        host: str,
        port: int,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        buffer_size: int = 0,
        client_id: str = "",
        *,
        max_fetch_bytes: int = FETCH_BYTES_MAX,
        runtime: Runtime = THREADS,
    ) -> None:
        self.host = host
        self.port = port
        self.max_fetch_bytes = max_fetch_bytes
        self._connection = ResendingConnection(
            Connection(
                host,
                port,
                client_id=client_id,
                timeout_ms=timeout_ms,
                buffers=Buffers(receive=buffer_size),
                runtime=runtime,
            )
        )
        self._runtime = runtime
        self._fetches = RequestMetrics("FetchRequestRateAndTimeMs", "FetchResponseSize")
        self._cluster = ClusterClient(
            [(host, port)],
            client_id=client_id,
            timeout_ms=timeout_ms,
            connect_timeout_ms=timeout_ms,
            runtime=runtime,
        )

    def __str__(self) -> str:
        return host_port(self.host, self.port)

    def __repr__(self) -> str:
        return f"<SimpleConsumer {self}>"

    def close(self) -> None:
        """Close. A call in another thread that waits for a response raises Closed or
        ConnectionFailed."""
        self._cluster.close()
        self._connection.close()

    def metrics(self) -> dict[str, dict[str, float]]:
        """`FetchRequestAndResponseMetrics` by the names of 0.8 in JMX, and the same of its broker
        as `<group>.<host>:<port>`: fetches, their time in ms (of one that `start_fetch` sent, until
        its response was asked for and there), and bytes of message sets. Rates and means are of the
        last 30 to 60 seconds."""
        values = self._fetches.values(self._runtime.monotonic())
        return {FETCH_GROUP: values, f"{FETCH_GROUP}.{self}": dict(values)}

    def send(self, request: Request) -> Response:
        """Send any request, with the one resend. For requests without a method of their own."""
        return self._connection.send(request)

    def metadata(self, topics: Iterable[str] = ()) -> ClusterMetadata:
        """Brokers and leaders of `topics` (empty: of all topics), as this broker knows them. A
        topic that it does not know is not created: all topics are requested."""
        response = self.send(MetadataRequest(None))
        assert isinstance(response, MetadataResponse)
        found = ClusterMetadata().updated(response, all_topics=True)
        wanted = set(topics) or found.topics.keys()
        return replace(found, topics={t: i for t, i in found.topics.items() if t in wanted})

    # ------------------------------------------------------------------------------- fetching

    def fetch(
        self,
        topic_partition: TopicPartition,
        offset: int,
        *,
        max_bytes: int = FETCH_BYTES,
        max_wait_ms: int = FETCH_WAIT_MS,
        min_bytes: int = 1,
    ) -> FetchedSet:
        """The messages from `offset` on; empty at the log end after `max_wait_ms`.

        Has at least one whole message if there is one: if the first is larger than `max_bytes`, it
        is fetched again with its size. Raises OffsetOutOfRange and the other codes of Fetch, and
        MessageTooLarge if that size exceeds `max_fetch_bytes`.
        """
        wanted = FetchPosition(topic_partition, offset, max_bytes, max_wait_ms, min_bytes)
        return self._grown(wanted, self._fetch(wanted.request()))

    def start_fetch(
        self,
        topic_partition: TopicPartition,
        offset: int,
        *,
        max_bytes: int = FETCH_BYTES,
        max_wait_ms: int = FETCH_WAIT_MS,
        min_bytes: int = 1,
    ) -> PendingFetch:
        """Like `fetch`, but returns at once; `result()` returns the set. One fetch is pending at a
        time: the consumer's next request, of any kind, first waits for its response."""
        wanted = FetchPosition(topic_partition, offset, max_bytes, max_wait_ms, min_bytes)
        began = self._runtime.monotonic()
        pending = self._connection.start(wanted.request())

        def finish() -> FetchedSet:
            response = self._connection.result(pending)
            self._count(response, began)
            return self._grown(wanted, response)

        return PendingFetch(finish)

    def multifetch(
        self,
        wanted: Mapping[TopicPartition, int | tuple[int, int]],
        *,
        max_wait_ms: int = FETCH_WAIT_MS,
        min_bytes: int = 1,
        replica_id: int = ORDINARY_CONSUMER,
    ) -> dict[TopicPartition, FetchedSet]:
        """One request for many partitions: `{partition: offset}` or `{partition: (offset,
        max_bytes)}`. A partition's error is in its set and raised when that is read. Sets do not
        grow: use `fetch` for a partition whose set has no whole message."""
        positions = {
            tp: position if isinstance(position, tuple) else (position, FETCH_BYTES)
            for tp, position in wanted.items()
        }
        request = fetch_request(
            positions, max_wait_ms=max_wait_ms, min_bytes=min_bytes, replica_id=replica_id
        )
        return self._fetched(positions, self._fetch(request))

    @overload
    def read_range(
        self,
        topic_partition: TopicPartition,
        offset: int,
        until_offset: int | None = None,
        *,
        max_bytes: int = FETCH_BYTES,
        key_decoder: None = None,
        value_decoder: None = None,
    ) -> Iterator[MessageAndMetadata[bytes, bytes]]: ...

    @overload
    def read_range(
        self,
        topic_partition: TopicPartition,
        offset: int,
        until_offset: int | None = None,
        *,
        max_bytes: int = FETCH_BYTES,
        key_decoder: None = None,
        value_decoder: Callable[[bytes], V],
    ) -> Iterator[MessageAndMetadata[bytes, V]]: ...

    @overload
    def read_range(
        self,
        topic_partition: TopicPartition,
        offset: int,
        until_offset: int | None = None,
        *,
        max_bytes: int = FETCH_BYTES,
        key_decoder: Callable[[bytes], K],
        value_decoder: None = None,
    ) -> Iterator[MessageAndMetadata[K, bytes]]: ...

    @overload
    def read_range(
        self,
        topic_partition: TopicPartition,
        offset: int,
        until_offset: int | None = None,
        *,
        max_bytes: int = FETCH_BYTES,
        key_decoder: Callable[[bytes], K],
        value_decoder: Callable[[bytes], V],
    ) -> Iterator[MessageAndMetadata[K, V]]: ...

    def read_range(
        self,
        topic_partition: TopicPartition,
        offset: int,
        until_offset: int | None = None,
        *,
        max_bytes: int = FETCH_BYTES,
        key_decoder: Decoder | None = None,
        value_decoder: Decoder | None = None,
    ) -> Iterator[MessageAndMetadata[Any, Any]]:
        """The messages of [offset, until_offset) in order; the next fetch is in flight while you
        process one. `until_offset` None: up to the high watermark of the first response. Ends early
        if the log does. Raises what `fetch` raises, and InvalidMessage for a damaged message."""
        fetched = self.fetch(topic_partition, offset, max_bytes=max_bytes)
        until = fetched.high_watermark if until_offset is None else until_offset
        while True:
            following = fetched.next_offset()
            pending = None
            if fetched.offset < following < until:
                pending = self.start_fetch(topic_partition, following, max_bytes=max_bytes)
            yield from fetched.decoded(key_decoder, value_decoder, until_offset=until)
            if pending is None:
                return
            fetched = pending.result()

    # -------------------------------------------------------------------------------- offsets

    def offsets_before(
        self,
        topic_partition: TopicPartition,
        time_ms: int,
        max_offsets: int = 1,
        *,
        replica_id: int = ORDINARY_CONSUMER,
    ) -> list[int]:
        """Returns at most `max_offsets` base offsets of segments older than `time_ms`, descending.
        LATEST_OFFSET also returns the log's end (high watermark) before them, EARLIEST_OFFSET its
        start. Empty if no segment is old enough."""
        request = offsets_request(
            {topic_partition: time_ms}, max_offsets=max_offsets, replica_id=replica_id
        )
        response = self.send(request)
        assert isinstance(response, OffsetsResponse)
        result = self._complete([topic_partition], offsets_results(response))[topic_partition]
        check(result.error_code, f"{topic_partition} at {self}")
        return list(result.offsets)

    def earliest_or_latest(self, topic_partition: TopicPartition, which: int) -> int:
        """The log's start (`which` = EARLIEST_OFFSET) or end (LATEST_OFFSET)."""
        offsets = self.offsets_before(topic_partition, which)
        if not offsets:
            raise OffsetOutOfRange(f"{topic_partition} at {self} has no offset at time {which}")
        return offsets[0]

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        storage: StorageName = "zookeeper",
    ) -> None:
        """Store the group's offsets: in ZooKeeper through this broker (which drops metadata), or in
        Kafka at the group's coordinator, found again as needed. Raises the first partition's error,
        with all failed partitions in its text; the others are stored."""
        values = {
            tp: OffsetAndMetadata(value) if isinstance(value, int) else value
            for tp, value in offsets.items()
        }

        def read(response: Response, source: str) -> None:
            codes = self._complete(values, error_codes(response, storage))
            _raise_first({tp: codes[tp] for tp in values}, source)

        self._at_store(group, storage, commit_request(group, values, storage), read)

    def fetch_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition],
        storage: StorageName = "zookeeper",
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets in that store; NO_OFFSET where nothing is committed. In
        Kafka an unknown partition raises UnknownTopicOrPartition; ZooKeeper cannot tell."""
        wanted = list(partitions)

        def read(response: Response, source: str) -> dict[TopicPartition, OffsetAndMetadata]:
            assert isinstance(response, OffsetFetchResponse)
            results = self._complete(wanted, committed_results(response))
            codes = error_codes(response, storage)
            _raise_first({tp: codes[tp] for tp in wanted}, source)
            return {
                tp: OffsetAndMetadata(results[tp].offset, results[tp].metadata) for tp in wanted
            }

        return self._at_store(group, storage, committed_request(group, wanted, storage), read)

    def _at_store(
        self,
        group: str,
        storage: StorageName,
        request: Request,
        read: Callable[[Response, str], T],
    ) -> T:
        """`read(response, broker)` from the broker for `storage`: this one, or the group's
        coordinator, with retries while that is loading or moving."""
        if storage == "zookeeper":
            return read(self.send(request), str(self))
        return self._cluster.ask_coordinator(
            group,
            lambda connection: read(connection.send(request), str(connection)),
            policy=COORDINATOR_RETRIES,
        )

    # ------------------------------------------------------------------------------ responses

    def _grown(self, wanted: FetchPosition, response: Response) -> FetchedSet:
        """The set in `response`, or that of a larger fetch if its first message is cut off."""
        while True:
            tp = wanted.topic_partition
            fetched = self._fetched({tp: (wanted.offset, wanted.max_bytes)}, response)[tp]
            if fetched.error is not None:
                raise fetched.error
            needed = fetched.size_needed(self.max_fetch_bytes)
            if needed is None:
                return fetched
            wanted = replace(wanted, max_bytes=needed)
            response = self._fetch(wanted.request())

    def _fetch(self, request: Request) -> Response:
        began = self._runtime.monotonic()
        response = self.send(request)
        self._count(response, began)
        return response

    def _count(self, response: Response, began: float) -> None:
        assert isinstance(response, FetchResponse)
        now = self._runtime.monotonic()
        size = sum(len(p.message_set) for topic in response.topics for p in topic.partitions)
        self._fetches.add(now - began, size, now)

    def _fetched(
        self, positions: Mapping[TopicPartition, tuple[int, int]], response: Response
    ) -> dict[TopicPartition, FetchedSet]:
        assert isinstance(response, FetchResponse)
        results = self._complete(positions, fetch_results(response))
        return {
            tp: FetchedSet(
                tp,
                offset,
                results[tp].message_set,
                max_bytes,
                str(self),
                results[tp].high_watermark,
                error_of(results[tp].error_code, f"{tp} at {self}, offset {offset}"),
            )
            for tp, (offset, max_bytes) in positions.items()
        }

    def _complete(
        self, wanted: Iterable[TopicPartition], results: dict[TopicPartition, T]
    ) -> dict[TopicPartition, T]:
        missing = [str(tp) for tp in wanted if tp not in results]
        if missing:
            raise ProtocolError(f"{self} left out {', '.join(missing)} in its response")
        return results


@dataclass(frozen=True, slots=True)
class FetchPosition:
    """The parameters of a fetch of one partition."""

    topic_partition: TopicPartition
    offset: int
    max_bytes: int
    max_wait_ms: int
    min_bytes: int

    def request(self) -> Request:
        return fetch_request(
            {self.topic_partition: (self.offset, self.max_bytes)},
            max_wait_ms=self.max_wait_ms,
            min_bytes=self.min_bytes,
        )


class PendingFetch:
    """A fetch in flight while its caller processes the last one."""

    def __init__(self, finish: Callable[[], FetchedSet]) -> None:
        self._finish = finish

    def result(self) -> FetchedSet:
        """Wait for the set; raises what `SimpleConsumer.fetch` raises. Call it once only."""
        return self._finish()


def _raise_first(codes: Mapping[TopicPartition, int], source: str) -> None:
    """Raise the first error among `codes`, naming every failed partition and `source`."""
    failed = {tp: code for tp, code in codes.items() if code != NO_ERROR}
    if failed:
        first = next(iter(failed.values()))
        names = (
            str(tp) if code == first else f"{tp} (error {code})" for tp, code in failed.items()
        )
        check(first, f"{', '.join(names)} at {source}")
