"""RangeReader: reads the message sets of one exact range, through changes of the leader.

Iterate over it in a task. It sends the next fetch before it yields a set, so the broker works while
Spark copies. It never fetches a yielded set again, so no message comes twice. It retries retriable
errors itself (no leader, another leader, a lost connection, a broker that is silent or behind),
because local mode never retries a task, and a stream should survive an election. After
`poll_timeout_ms` without progress it raises the last error; no wait inside goes on for longer. A
partition that brokers no longer list is data lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from kafka08 import kernel
from kafka08.arrow.checked_set import CheckedSet
from kafka08.arrow.data_loss import DataLost, Loss, Truncation, report
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.settings import ReadSettings
from kafka08.client.cluster import ClusterClient
from kafka08.client.log_offsets import log_ends, log_starts
from kafka08.client.pool import ConnectionPool
from kafka08.client.requests import fetch_request, fetch_version
from kafka08.client.retry import is_retriable_at_leader
from kafka08.config import INT_MAX
from kafka08.consumer.fetching.committed import committed
from kafka08.consumer.fetching.fetched import FetchedSet, fetched_set, has_all_crcs_checked
from kafka08.consumer.fetching.truncation import LogTruncated, check_position, epoch_of
from kafka08.errors import (
    ClientError,
    InvalidMessage,
    KafkaError,
    LeaderNotAvailable,
    MessageTooLarge,
    OffsetOutOfRange,
    ProtocolError,
    RequestTimeout,
    UnknownTopicOrPartition,
)
from kafka08.format import batches
from kafka08.kernel.types import MESSAGE_MAGICS
from kafka08.network.connection import Connection
from kafka08.protocol.fetch import RACK_VERSION, READ_COMMITTED, FetchResponse
from kafka08.protocol.frame import FrameTooLarge
from kafka08.structs import NO_LEADER_EPOCH, Broker
from kafka08.waiting import give_up_at

logger = logging.getLogger(__name__)


class RangeReader:
    """Reads `wanted` from the partition's leader.

    leader   leader when the read was planned; None: unknown. Looked up again after every error.
    lost     leaders at which this process has failed, shared by its readers: for their partitions
             the newer metadata of `cluster` counts, not the plan
    """

    def __init__(
        self,
        wanted: OffsetRange,
        settings: ReadSettings,
        cluster: ClusterClient,
        pool: ConnectionPool,
        leader: Broker | None = None,
        *,
        lost: set[Broker] | None = None,
    ) -> None:
        self.wanted = wanted
        self.position = wanted.from_offset
        """The next offset that was not yielded yet."""
        self._tp = wanted.topic_partition
        self._settings = settings
        self._fetch_bytes = settings.fetch_bytes
        self._cluster = cluster
        self._pool = pool
        self._lost = set() if lost is None else lost
        self._leader = None if leader in self._lost else leader
        self._clock = cluster.clock
        self._lent = ExitStack()
        self._connection: Connection | None = None
        self._epoch = NO_LEADER_EPOCH
        """Of the leader that appended the message before `position`, or of a later one that had
        it."""
        self._gone_since: float | None = None
        """When (monotonic seconds) the brokers began to list no such partition."""

    def __iter__(self) -> Iterator[CheckedSet]:
        """Yields sets; their messages from their `offset` on, below the range's end, belong to the
        range.

        Raises DataLost, InvalidMessage (a damaged message, with its offset), MessageTooLarge, and
        the last error after poll_timeout_ms without progress.
        """
        try:
            while self.position < self.wanted.until_offset:
                found = self._next_set()
                if found is None:
                    return
                fetched, following = found
                if following < self.wanted.until_offset:
                    with self._settings.deadline(self._clock):
                        self._send_ahead(following)
                yield fetched
                self.position = following
                self._epoch = epoch_of(fetched.data)
        finally:
            self._disconnect()

    def _next_set(self) -> tuple[CheckedSet, int] | None:
        """The set at `position` and the offset behind it; None if the range has no more
        messages."""
        with self._settings.deadline(self._clock):
            return self._set_until(give_up_at())

    def _set_until(self, deadline: float) -> tuple[CheckedSet, int] | None:
        was_empty = False
        # The response to an empty fetch is as late as this: one that would come behind the deadline
        # would only hide why there are no messages.
        last_fetch = deadline - self._settings.fetch_wait_ms / 1000
        while self.position < self.wanted.until_offset:
            try:
                fetched = self._fetch()
            except KafkaError as error:
                failure, latest = self._get_over(error), deadline
                was_empty = False
            else:
                needed = fetched.size_needed(self._settings.max_fetch_bytes)
                if needed is not None:
                    self._fetch_bytes = needed
                    continue
                if len(fetched.data):
                    return self._readable(fetched)
                if self._end_of(fetched) >= self.wanted.until_offset:
                    if was_empty:
                        return None  # compaction removed the rest
                    # 0.8: a leader reads first and then looks up its high watermark, which may
                    # have passed messages that the read was not allowed to see.
                    was_empty = True
                    continue
                failure, latest = self._unreadable(fetched), last_fetch
            if self._clock.monotonic() > latest:
                self._give_up(failure)
                return None
        return None

    def _readable(self, fetched: FetchedSet) -> tuple[CheckedSet, int] | None:
        """`_undamaged`, of committed messages without those of aborted transactions."""
        found = _undamaged(fetched, self.wanted.until_offset)
        if found is None or not (fetched.aborted and self._is_committed):
            return found
        checked, following = found
        return replace(checked, data=committed(checked.data, fetched.aborted)), following

    @property
    def _is_committed(self) -> bool:
        return self._settings.isolation == READ_COMMITTED

    def _end_of(self, fetched: FetchedSet) -> int:
        """The first offset that this read must not see yet."""
        # Brokers before 0.11 have no transactions, and say no last stable offset.
        if self._is_committed and fetched.last_stable_offset >= 0:
            return fetched.last_stable_offset
        return fetched.high_watermark

    def _unreadable(self, fetched: FetchedSet) -> KafkaError:
        """Why there is nothing at `position`, in front of the range's end."""
        high_watermark, stable = fetched.high_watermark, self._end_of(fetched)
        # What is behind an open transaction is not lost: it must not be passed over either.
        if stable < min(high_watermark, self.wanted.until_offset):
            return RequestTimeout(
                f"a transaction is open at offset {stable}, and the range ends at "
                f"{self.wanted.until_offset}: its producer must commit or abort it; for one that "
                "hangs there is kafka08 transaction abort"
            )
        return DataLost(str(self._loss(self.position, high_watermark)))

    def _fetch(self) -> FetchedSet:
        """The response to the prefetch, or to a new fetch. Raises its error."""
        connection = self._connected()
        if not connection.in_flight:
            self._send(connection, self.position)
        response = connection.read_response()
        assert isinstance(response, FetchResponse)
        return fetched_set(
            response,
            self._tp,
            self.position,
            max_bytes=self._fetch_bytes,
            source=str(connection),
        )

    def _send_ahead(self, offset: int) -> None:
        """Prefetch the next set. If that fails, it is fetched again when it is needed."""
        try:
            self._send(self._connected(), offset)
        except KafkaError as error:
            logger.info("%s: The prefetch failed: %s", self._tp, error)
            self._disconnect()

    def _send(self, connection: Connection, offset: int) -> None:
        request = fetch_request(
            {self._tp: (offset, self._fetch_bytes)},
            max_wait_ms=self._settings.fetch_wait_ms,
            min_bytes=1,
            isolation=self._settings.isolation,
        )
        # As the log has them: a broker takes four times as long to convert batches of records.
        request.version = fetch_version(connection.versions, RACK_VERSION)
        connection.write(request)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._leader = leader = self._leader or self._find_leader()
            connection = self._lent.enter_context(self._pool.connection(leader.host, leader.port))
            check_position(connection, self._tp, self.position, self._epoch)
            self._connection = connection
        return self._connection

    def _find_leader(self) -> Broker:
        metadata = self._cluster.metadata
        if not metadata.knows(self._tp.topic):
            metadata = self._cluster.refresh()
        try:
            leader = metadata.leader(self._tp)
        except UnknownTopicOrPartition:
            if self._gone_since is None:
                self._gone_since = self._clock.monotonic()
            raise
        except LeaderNotAvailable:
            self._gone_since = None
            raise
        self._gone_since = None
        return leader

    def _disconnect(self) -> None:
        """Return the connection; the pool keeps it only if nothing is in flight."""
        self._connection = None
        self._lent.close()

    def _get_over(self, error: KafkaError) -> KafkaError:
        """Prepare the next attempt, and return the error in case that fails, too. Raises an error
        that is not retriable."""
        if isinstance(error, LogTruncated):
            report([Truncation(self._left(), error)], fail=self._settings.fail_on_data_loss)
            self._epoch = NO_LEADER_EPOCH
            error = OffsetOutOfRange(error.detail)
        elif isinstance(error, OffsetOutOfRange):
            try:
                if self._pass_over_lost():
                    return error
            except KafkaError as failed:
                error = failed
        if isinstance(error, FrameTooLarge):
            # From 0.10.1 on a fetch has its first message or batch whole, however large.
            raise MessageTooLarge(
                f"{self._tp} at offset {self.position}: {error}. A larger maxFetchBytes "
                "(max_fetch_bytes of ReadSettings) allows it"
            ) from error
        if not (passes(error) or isinstance(error, OffsetOutOfRange)):
            raise error
        if self._is_gone():
            report([Loss(self._left(), None, None)], fail=self._settings.fail_on_data_loss)
            self.position = self.wanted.until_offset
            return error
        self._recover(error)
        return error

    def _is_gone(self) -> bool:
        """Whether the brokers have listed no such partition for as long as the driver looks for
        one: a broker that has just started knows fewer."""
        if self._gone_since is None:
            return False
        settings = self._settings
        looked_s = min(settings.looks * settings.retry_interval_ms, settings.poll_timeout_ms) / 1000
        return self._clock.monotonic() - self._gone_since >= looked_s

    def _recover(self, error: KafkaError) -> None:
        """Wait for the backoff and look the leader up again: after an error it may have moved."""
        logger.info("%s at offset %d: %s; retrying", self._tp, self.position, error)
        self._disconnect()
        self._clock.sleep(self._settings.backoff_ms / 1000)
        if self._leader is not None:
            self._lost.add(self._leader)
        self._leader = None
        try:
            self._cluster.refresh()
        except ClientError as failed:
            logger.info("%s: Cannot refresh the metadata: %s", self._tp, failed)

    def _give_up(self, failure: KafkaError) -> None:
        """There was no progress in time: raise `failure`, or end the range if the leader's log ends
        before it and data loss is accepted."""
        if isinstance(failure, DataLost) and not self._settings.fail_on_data_loss:
            logger.warning("Skipping %d offsets: %s", self._left().size, failure)
            return
        waited = f"no progress in {self._settings.poll_timeout_ms} ms at offset {self.position}"
        raise type(failure)(f"{self._tp}: {waited}: {failure}") from failure

    def _pass_over_lost(self) -> bool:
        """Skip to the first offset of the range that the leader still has; False if it has
        `position`. DataLost if loss is not accepted."""
        self._disconnect()
        earliest = log_starts(self._cluster, [self._tp])[self._tp]
        latest = log_ends(self._cluster, [self._tp])[self._tp]
        if earliest <= self.position <= latest:
            return False
        loss = self._loss(earliest, latest)
        report([loss], fail=self._settings.fail_on_data_loss)
        kept = loss.kept()
        self.position = kept.from_offset if kept.size else self.wanted.until_offset
        return True

    def _loss(self, earliest: int, latest: int) -> Loss:
        return Loss(self._left(), earliest, latest)

    def _left(self) -> OffsetRange:
        return self.wanted._replace(from_offset=self.position)


def passes(error: KafkaError) -> bool:
    """Whether a read may be retried after `error`."""
    return is_retriable_at_leader(error) or isinstance(error, ProtocolError)


def _undamaged(fetched: FetchedSet, until_offset: int) -> tuple[CheckedSet, int] | None:
    """`fetched` up to its first damaged entry, and the offset behind its last complete one; None if
    its first entry is damaged and behind the range.

    InvalidMessage, naming partition and offset, if that damaged entry is in the range.
    """
    try:
        summary = kernel.validate(fetched.data, INT_MAX)
    except (kernel.CorruptMessage, kernel.UnknownCodec) as error:
        position, offset = _place_of(error, fetched)
        if position > 0:
            return _undamaged(replace(fetched, data=fetched.data[:position]), until_offset)
        if offset >= until_offset:
            return None
        raise InvalidMessage(
            f"{fetched.topic_partition} at {fetched.source}, offset {offset}: {error}"
        ) from error
    checked = CheckedSet(
        *(fetched.topic_partition, fetched.offset, fetched.data, fetched.max_bytes),
        *(fetched.source, fetched.high_watermark),
        has_wrappers=bool(summary.codec or summary.magics & ~MESSAGE_MAGICS),
        is_verified=has_all_crcs_checked(summary),
    )
    if fetched.is_withheld:
        return checked, fetched.offset + 1
    return checked, max(fetched.offset, summary.last_offset + 1)


def _place_of(
    error: kernel.CorruptMessage | kernel.UnknownCodec, fetched: FetchedSet
) -> tuple[int, int]:
    """(position, offset) of the damaged entry."""
    if isinstance(error, kernel.CorruptMessage):
        return error.position, error.offset
    for batch in batches(fetched.data):
        if batch.codec == error.codec:
            return batch.position, batch.last_offset
    raise AssertionError("an unknown codec comes from an entry")
