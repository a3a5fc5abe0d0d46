"""PartitionReader: reads one partition from an offset on, from its leader, without a group.

    with closing(ClusterClient(parse_bootstrap("localhost:9092"))) as cluster:
        reader = PartitionReader(cluster, TopicPartition("pages", 0), 120)
        for batch in reader.poll(BatchLimits()):
            print(batch.offsets[0], batch.values())

It needs brokers only, neither a group nor ZooKeeper. Source: kafka.tools.SimpleConsumerShell
0.8.2.2, which looks up the leader once; this one follows the leader when it moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import fetch_request, fetch_version
from kafka08.client.retry import RetryPolicy, is_retriable_at_leader, retry
from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.consumer.fetching.batch import BatchLimits, MessageBatch
from kafka08.consumer.fetching.fetched import FetchedSet, fetched_set, next_offset_after
from kafka08.consumer.fetching.truncation import check_position, epoch_of
from kafka08.errors import InvalidMessage, KafkaError
from kafka08.protocol.fetch import (
    MAGIC_1_VERSION,
    MAGIC_2_VERSION,
    RACK_VERSION,
    FetchRequest,
    FetchResponse,
)
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.structs import NO_LEADER_EPOCH, Broker, TopicPartition

FETCH_BYTES: Final = 1024 * 1024
FETCH_BYTES_MAX: Final = 64 * 1024 * 1024
"""The limit to which a fetch grows for an oversize message."""
FETCH_WAIT_MS: Final = 100
RETRIES: Final = RetryPolicy(tries=150, backoff_ms=200)
"""About 30 s: brokers may take that long to notice a dead leader and to elect another."""


class PartitionReader:
    """Reads `topic_partition` from `offset` on. The topic must be known to `cluster`: a request for
    a topic by name may create it.

    position        the offset after the last message that was returned
    high_watermark  first offset that consumers must not see yet, at the last fetch; -1 before it
    is_stopping     checked between two attempts; True ends them
    timestamps      whether batches have the messages' timestamps, if `cluster` negotiates versions
    """

    def __init__(
        self,
        cluster: ClusterClient,
        topic_partition: TopicPartition,
        offset: int,
        *,
        fetch_bytes: int = FETCH_BYTES,
        wait_ms: int = FETCH_WAIT_MS,
        policy: RetryPolicy = RETRIES,
        is_stopping: Callable[[], bool] = lambda: False,
        timestamps: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.position = offset
        self.high_watermark = -1
        self._epoch = NO_LEADER_EPOCH
        """Of the leader that appended the message before the position, or of a later one that had
        it."""
        self._leader: Broker | None = None
        """The one that has it; None: perhaps another one leads."""
        self._cluster = cluster
        self._tp = topic_partition
        self._fetch_bytes = fetch_bytes
        self._wait_ms = wait_ms
        self._policy = policy
        self._is_stopping = is_stopping
        self._timestamps = timestamps
        self._clock = clock

    def __repr__(self) -> str:
        return f"<PartitionReader {self._tp} at offset {self.position}>"

    @property
    def is_at_end(self) -> bool:
        """Whether all messages below the last known high watermark were returned."""
        return self.position >= self.high_watermark

    def poll(self, limits: BatchLimits) -> Iterator[MessageBatch]:
        """The messages of one fetch, which waits up to `wait_ms` for the first one; empty at the
        log end. The next call fetches batches again that were not taken from this iterator.

        If the leader moves or does not respond, it is looked up again, as often and as long as the
        retry policy allows. Raises OffsetOutOfRange, LogTruncated if another leader lacks what was
        read before, InvalidMessage (a damaged message), MessageTooLarge, and the error of the last
        attempt.
        """
        fetched = self._fetch()
        self.high_watermark = fetched.high_watermark
        self._epoch = epoch_of(fetched.data) if len(fetched.data) else self._epoch
        for batch in fetched.batches(limits, timestamps=self._timestamps):
            self.position = batch.last_offset + 1
            yield batch
        self.position = max(self.position, fetched.next_offset())

    def skip_damaged(self, error: InvalidMessage) -> tuple[TopicPartition, int] | None:
        """Continue after the message that `error`, raised by the last poll, is about. Returns the
        partition and the new position; None, and skips nothing, if it does not name an offset."""
        behind = next_offset_after(error.__cause__)
        if behind is None or behind <= self.position:
            return None
        self.position = behind
        return self._tp, behind

    def _fetch(self) -> FetchedSet:
        """A set with at least one whole message, or an empty set."""
        size = self._fetch_bytes
        while True:
            fetched = self._fetch_with_retries(size)
            needed = fetched.size_needed(max(self._fetch_bytes, FETCH_BYTES_MAX))
            if needed is None:
                return fetched
            size = needed

    def _fetch_with_retries(self, size: int) -> FetchedSet:
        def passes(error: KafkaError) -> bool:
            return is_retriable_at_leader(error) and not self._is_stopping()

        return retry(
            lambda: self._fetch_once(size),
            self._policy,
            self._clock,
            what=f"reading {self._tp} from offset {self.position}",
            passes=passes,
            before_next=self._look_up_leader,
        )

    def _look_up_leader(self, _: KafkaError) -> None:
        """Ask for all topics: a request for a deleted topic by name would create it again."""
        self._leader = None
        self._cluster.refresh()

    def _fetch_once(self, size: int) -> FetchedSet:
        leader = self._cluster.metadata.leader(self._tp)
        request = fetch_request(
            {self._tp: (self.position, size)}, max_wait_ms=self._wait_ms, min_bytes=1
        )
        with self._cluster.connection(leader) as connection:
            if leader != self._leader:
                check_position(connection, self._tp, self.position, self._epoch)
                self._leader = leader
            request.version = self._version(connection.versions)
            response = connection.send(request)
            source = str(connection)
        assert isinstance(response, FetchResponse)
        return fetched_set(response, self._tp, self.position, max_bytes=size, source=source)

    def _version(self, versions: VersionRanges) -> int:
        """Record batches as the log has them, which no broker has to convert and which have leader
        epochs; from brokers before 0.11 timestamps only if they are wanted."""
        if versions.serves_beyond(FetchRequest, MAGIC_2_VERSION - 1):
            return fetch_version(versions, RACK_VERSION)
        return fetch_version(versions, MAGIC_1_VERSION if self._timestamps else 0)
