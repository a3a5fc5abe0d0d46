"""MarkerSender: sends a coordinator's markers to the leaders of partitions.

    this broker leads           the marker is appended here
    another live broker does    WriteTxnMarkers; what waits while one is in flight is the next
    nobody does                 5, so that it is tried again
    unknown here                0 if ZooKeeper does not have the partition either, since the topic
                                was deleted; else 3

A broker that cannot be reached, or does not respond in time, is 7 for all partitions of the
request. Source: kafka.coordinator.transaction.TransactionMarkerChannelManager 0.11.0.2, which
counts a partition as deleted once the broker has not heard of it, as one that just started has not.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka08.broker.cluster.metadata_cache import MetadataCache
from kafka08.broker.cluster.peer_protocols import UnreadRequests
from kafka08.broker.transactions.transactional_ids import SendMarkers
from kafka08.errors import (
    NO_ERROR,
    ClientError,
    Closed,
    LeaderNotAvailable,
    ProtocolError,
    RequestTimedOut,
    UnknownError,
    UnknownTopicOrPartition,
    ZooKeeperError,
)
from kafka08.levels import Level
from kafka08.log.producers import TransactionEnd
from kafka08.network.connection import Connection
from kafka08.protocol.add_partitions_to_txn import partitions_of
from kafka08.protocol.transaction_records import topics_of
from kafka08.protocol.types import Response
from kafka08.protocol.write_txn_markers import (
    TxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka08.protocol_version import LATEST
from kafka08.runtime import BrokerRuntime
from kafka08.runtime.uncaught import uncaught
from kafka08.runtime.yielding import PARTITIONS_AT_ONCE, yielding_batches
from kafka08.structs import Broker, TopicPartition

if TYPE_CHECKING:
    from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

MAX_RESPONSE_BYTES: Final = 16 << 20
"""Far above the response to the largest request."""
PARTITIONS_MAX: Final = 10_000
"""Of one request, so that it has less than 4 MB, whatever the names of their topics."""

Done = Callable[[TopicPartition, int], object]
Write = Callable[[TransactionEnd, Sequence[TopicPartition], Done], None]
"""Append a marker to partitions that this broker leads; calls `Done` for each of them."""


class Waiting(NamedTuple):
    """A marker for partitions of one leader."""

    marker: TxnMarker
    done: Done

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.marker.topics)


class MarkerSender:
    """The markers of one broker's coordinator. `send` never switches.

    write        appends to partitions that this broker leads
    listener     the name of the listener between brokers
    timeout_ms   the longest wait for a response
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        broker_id: int,
        store: ClusterStore,
        cache: MetadataCache,
        write: Write,
        *,
        listener: str,
        timeout_ms: int,
    ) -> None:
        self._runtime = runtime
        self._broker_id = broker_id
        self._store = store
        self._cache = cache
        self._write = write
        self._listener = listener
        self._timeout_ms = timeout_ms
        self._channels: dict[int, _Channel] = {}

    def shutdown(self) -> None:
        """End all requests, and close the connections."""
        for channel in self._channels.values():
            channel.end()

    def send(self, sent: SendMarkers, done: Done) -> None:
        """After its delay, send the marker to the leaders of that time. `done` is called once for
        each partition, maybe before this returns; never after `shutdown`."""
        if sent.delay_ms:
            self._runtime.call_later(sent.delay_ms / 1000, self._send_now, sent, done)
        else:
            self._send_now(sent, done)

    def _send_now(self, sent: SendMarkers, done: Done) -> None:
        here: list[TopicPartition] = []
        unknown: list[TopicPartition] = []
        elsewhere: dict[Broker, list[TopicPartition]] = {}
        leaderless: list[TopicPartition] = []
        for tp in sent.partitions:
            state = self._cache.partition_state(tp)
            if state is None:
                unknown.append(tp)
            elif state.leader == self._broker_id:
                here.append(tp)
            elif leader := self._cache.broker(state.leader, self._listener):
                elsewhere.setdefault(leader, []).append(tp)
            else:
                leaderless.append(tp)
        for leader, partitions in elsewhere.items():
            channel = self._channel_to(leader)
            for start in range(0, len(partitions), PARTITIONS_MAX):
                some = partitions[start : start + PARTITIONS_MAX]
                channel.send(Waiting(marker_of(sent.end, some), done))
        if unknown:
            name = "search for partitions of a transaction"
            self._runtime.spawn(self._search, unknown, done, name=name)
        if len(here) > PARTITIONS_AT_ONCE:
            self._runtime.spawn(self._write_many, sent, here, done, name="markers of this broker")
        elif here:
            self._write(sent.end, here, done)
        for tp in leaderless:
            done(tp, LeaderNotAvailable.code)

    def _channel_to(self, leader: Broker) -> _Channel:
        channel = self._channels.get(leader.id)
        if channel is None or channel.broker != leader:
            if channel is not None:
                channel.end()
            channel = _Channel(self._runtime, self._broker_id, leader, self._timeout_ms)
            self._channels[leader.id] = channel
        return channel

    def _write_many(
        self, sent: SendMarkers, partitions: Sequence[TopicPartition], done: Done
    ) -> None:
        for turn in yielding_batches(partitions, self._runtime):
            self._write(sent.end, turn, done)

    def _search(self, unknown: list[TopicPartition], done: Done) -> None:
        """Whether partitions that this broker has not heard of exist. Switches."""
        try:
            found = self._store.assignments({tp.topic for tp in unknown})
        except Exception as error:
            expected = isinstance(error, ZooKeeperError)
            logger.warning(
                "Cannot see whether %s exist: %s",
                unknown,
                error,
                exc_info=None if expected else error,
            )
            found = None
        for tp in unknown:
            is_gone = found is not None and tp.partition not in found.get(tp.topic, ())
            done(tp, NO_ERROR if is_gone else UnknownTopicOrPartition.code)


class _Channel:
    """The markers for one broker: one request in flight, and what waits for the next.

    The greenlet that sends them ends when none are left; its connection stays open.
    """

    def __init__(
        self, runtime: BrokerRuntime, broker_id: int, broker: Broker, timeout_ms: int
    ) -> None:
        self.broker = broker
        self._runtime = runtime
        self._name = f"transaction markers of broker {broker_id} for broker {broker.id}"
        self._waiting: deque[Waiting] = deque()
        self._is_sending = False
        self._has_ended = False
        self._connection = Connection(
            broker.host,
            broker.port,
            client_id=f"broker-{broker_id}-txn-marker-sender",
            timeout_ms=timeout_ms,
            max_response_bytes=MAX_RESPONSE_BYTES,
            runtime=runtime,
        )
        self._unread = UnreadRequests(runtime, broker, LATEST[Level.V0_11_0])

    def send(self, waiting: Waiting) -> None:
        """Queue a marker. Each partition of an open transaction is in the queue once."""
        self._waiting.append(waiting)
        if not self._is_sending:
            self._is_sending = True
            self._runtime.spawn(self._run, name=self._name)

    def end(self) -> None:
        """Everything fails with 7: the broker has another address, or this one stops."""
        self._has_ended = True
        if self._is_sending:
            self._connection.abort()
        else:
            self._connection.close()

    def _run(self) -> None:
        while batch := self._take():
            try:
                self._exchange(batch)
            except Exception as error:  # noqa: BLE001 - what waits must be sent
                uncaught(self._runtime, error, logger, "Uncaught error: %s", self._name)
        self._is_sending = False
        if self._has_ended:
            self._connection.close()

    def _take(self) -> list[Waiting]:
        """The markers of the next request."""
        taken: list[Waiting] = []
        room = PARTITIONS_MAX
        while self._waiting and (room := room - self._waiting[0].partition_count) >= 0:
            taken.append(self._waiting.popleft())
        return taken

    def _exchange(self, batch: list[Waiting]) -> None:
        codes: Mapping[tuple[int, TopicPartition], int] = {}
        missing = UnknownError.code
        try:
            if self._has_ended:
                raise Closed("the connection is no longer used")
            request = WriteTxnMarkersRequest([one.marker for one in batch])
            codes = codes_of(self._connection.send(request))
            self._unread.losses = 0
        except (ClientError, ProtocolError) as error:
            self._connection.close()
            logger.warning("%s: %s. They are sent again", self._name, error)
            if why := self._unread.explain(error, {WriteTxnMarkersRequest: 0}):
                logger.warning("%s: %s", self._name, why)
            missing = RequestTimedOut.code
        for marker, done in batch:
            for tp in partitions_of(marker.topics):
                done(tp, codes.get((marker.producer_id, tp), missing))


def marker_of(end: TransactionEnd, partitions: Iterable[TopicPartition]) -> TxnMarker:
    """The entry of a WriteTxnMarkers for some partitions."""
    return TxnMarker(
        end.producer_id,
        end.producer_epoch,
        end.commits,
        topics_of(partitions),
        end.coordinator_epoch,
    )


def codes_of(response: Response) -> dict[tuple[int, TopicPartition], int]:
    """Producer id and partition → code of its marker."""
    assert isinstance(response, WriteTxnMarkersResponse)
    return {
        (marker.producer_id, TopicPartition(topic.topic, one.partition)): one.error_code
        for marker in response.markers
        for topic in marker.topics
        for one in topic.partitions
    }
