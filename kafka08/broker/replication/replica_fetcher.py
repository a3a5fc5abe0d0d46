"""ReplicaFetcher: copies partitions from one leader, as a consumer that reads to the LEO.

One greenlet on one connection sends one Fetch request after the other, for all of its partitions.
Each request names the local LEO, which also tells the leader how far this replica is. Lagging
partitions take turns, so a response stays bounded however many there are. The sets are appended
unchanged.

Above its HW a log may differ from that of a new leader. So the fetcher first asks where its leader
epochs end, or fetches from the HW on, and truncates the log where the leader has other messages
(follower_truncation.py). 0.8.2.2
truncates before it fetches: if that leader fails then, and this replica, still in the ISR, is
elected, acknowledged messages are lost. The same is done after each lost connection: a leader that
lost power may be back without its last messages before a controller notices, and so without another
leader epoch. It is also done after each error of the leader: one that did not lead for a while may
lead again with other messages, before this broker hears of any of its leader epochs. A leader of
ours sends that error even if this broker asked nothing meanwhile (Partition.doubts). Source:
kafka.server.AbstractFetcherThread and ReplicaFetcherThread 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kafka08.broker.cluster.inter_broker import inter_broker
from kafka08.broker.cluster.peer_protocols import UnreadRequests
from kafka08.broker.replica.partition import Partition
from kafka08.broker.replica.replica_state import append_fetched
from kafka08.broker.replication.follower_truncation import FollowerTruncation
from kafka08.broker.replication.grouped_errors import GroupedErrors
from kafka08.broker.replication.leader_queries import LeaderQueries
from kafka08.broker.replication.partition_fetch_state import PartitionFetchState
from kafka08.broker.settings.config import BrokerConfig
from kafka08.config import INT_MAX
from kafka08.errors import (
    ApiError,
    ClientError,
    CorruptLog,
    InvalidMessage,
    KafkaError,
    OffsetOutOfRange,
    ProtocolError,
    Refusal,
    StorageError,
    check,
)
from kafka08.kernel.types import ENTRY_HEADER
from kafka08.network.connection import Connection
from kafka08.protocol import message_set as message_sets
from kafka08.protocol.fetch import (
    LIMITED_VERSION,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafka08.protocol.fetch_frame import FetchFrame
from kafka08.protocol.grouping import by_partition, by_topic
from kafka08.protocol.types import Buffer
from kafka08.runtime import BrokerRuntime, Buffers, Cancellable
from kafka08.runtime.uncaught import uncaught
from kafka08.structs import LATEST_OFFSET, Broker, TopicPartition

if TYPE_CHECKING:
    from kafka08.log.manager import LogManager
    from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

CONNECTION_BACKOFF_S: Final = 0.25
"""Pause after a failed connection. 0.8.2.2 has none and floods its log."""
PARTITION_BACKOFF_S: Final = 0.05
"""Least pause of a partition after an error of its leader, which mostly does not lead yet."""
TRUNCATION_BACKOFF_S: Final = 0.5
"""Least pause of a partition whose log cannot be compared or truncated now. Mostly it waits for the
next LeaderAndIsr request, which ends the pause; meanwhile each try asks ZooKeeper."""
EARLY_MAX: Final = 10
"""How many responses in a row may have nothing before half of their wait is over: a segment that
ends, or a leader that has just changed, may cause one."""
EARLY_PAUSE_S: Final = 0.1
"""Pause after each more: a leader that is broken would be asked thousands of times a second."""
RESPONSE_BYTES: Final = 16 * 1024 * 1024
"""Approximate size of one response, which must arrive within replica.socket.timeout.ms; further
partitions take their turn in the next request."""
ROOM_BYTES: Final = 1024 * 1024
"""Memory for the response to a Fetch, which lasts; a larger one gets its own."""
ALIKE_MAX: Final = 16
"""Requests in the same order, where the leader limits the response as a whole. Another order means
another frame. But the first message of a partition may be so large that it is sent only if it is
the first of all, so partitions with news must not always stand before it."""
SECONDS_PER_PARTITION: Final = 0.0001
"""How old a fetch that is parked at the leader must be before it is aborted for new partitions, and
the least pause of refused ones, for each partition that is followed. The next request is encoded,
read and compared as a whole, at both ends: a broker that gets 10,000 partitions in a hundred steps
would do little else."""
PROBE_BYTES: Final = 4096
"""Fetch size of a partition whose next response cannot be foreseen: the first one, and that after a
failed request or an error. Mostly nothing is missing, or it is refused again; so thousands are
asked for at once, and the response is bounded all the same. Not where the leader limits the
response as a whole: an empty set may then mean that the first message is larger."""


class ReplicaFetcher:
    """Follows partitions led by `leader`. Only `run` and `round` switch. `len` is the number of
    followed partitions, `in` tells whether one is.

    name         also the client id: ReplicaFetcherThread-<fetcher id>-<leader id>
    log_manager  truncates logs and writes their recovery points
    store        ZooKeeper; read before a truncation alone
    checkpoint   writes the HWs of this broker's replicas. Switches
    checkpoint_starts   writes where its logs start. Switches
    fetcher_id   from 0
    """

    def __init__(
        self,
        config: BrokerConfig,
        runtime: BrokerRuntime,
        log_manager: LogManager,
        store: ClusterStore,
        checkpoint: Callable[[], object],
        checkpoint_starts: Callable[[], object],
        leader: Broker,
        fetcher_id: int,
    ) -> None:
        self.name = f"ReplicaFetcherThread-{fetcher_id}-{leader.id}"
        self._config = config
        self._runtime = runtime
        self._leader = leader
        self._checkpoint = checkpoint
        self._checkpoint_starts = checkpoint_starts
        self._truncation = FollowerTruncation(config, runtime, log_manager, store, leader)
        self._versions = inter_broker(config.protocol_version)
        self._is_limited = self._versions.fetch >= LIMITED_VERSION
        self._probe_bytes = config.replica_fetch_max_bytes
        if not self._is_limited:
            self._probe_bytes = min(PROBE_BYTES, self._probe_bytes)
        self._followed: dict[TopicPartition, PartitionFetchState] = {}
        self._changed = runtime.event()
        self._stopped = False
        self._frame: FetchFrame[PartitionFetchState] | None = None
        self._framed: tuple[list[TopicPartition], int] = ([], 0)
        """The partitions and the wait of `_frame`."""
        self._moved: list[TopicPartition] = []
        """Partitions whose offset or size may differ from `_frame`."""
        self._again: dict[TopicPartition, PartitionFetchState] | None = None
        """All partitions, if the last request was for all of them and nothing in its response
        speaks against the next one being so too."""
        self._alike = 0
        """Requests since `_put_last`."""
        self._early = 0
        """Responses in a row that had nothing, long before the leader's wait was over."""
        self._starts_rose = False
        """Whether a log starts higher than its checkpoint has."""
        self._sent_at = 0.0
        self._lacks_some = False
        """Whether partitions were added since the request in flight was sent."""
        self._abort_timer: Cancellable | None = None
        self._room = memoryview(bytearray(ROOM_BYTES))
        """Memory of the response to a Fetch until the next one. Other responses use none of it:
        while one comes, sets of the last Fetch may wait here to be taken."""
        self._connection = Connection(
            leader.host,
            leader.port,
            client_id=self.name,
            timeout_ms=config.replica_socket_timeout_ms,
            buffers=Buffers(receive=config.replica_socket_receive_buffer_bytes),
            max_response_bytes=INT_MAX,
            runtime=runtime,
        )
        self._queries = LeaderQueries(self._connection, leader, config.broker_id, self._versions)
        self._unread = UnreadRequests(runtime, leader, config.protocol_version)

    def lags(self) -> dict[TopicPartition, int]:
        """partition → messages below the leader's HW that were still missing after its last
        response; 0 before the first."""
        return {tp: followed.lag for tp, followed in self._followed.items()}

    def __len__(self) -> int:
        return len(self._followed)

    def __contains__(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._followed

    def add(self, partitions: Iterable[Partition]) -> None:
        """Follow these too, from their HW on. A fetch that is parked at the leader is aborted soon,
        so that the new partitions do not wait for it."""
        self._frame = self._again = None
        for partition in partitions:
            self.remove([partition.topic_partition])
            followed = PartitionFetchState(
                partition, self._probe_bytes, asks_for_epochs=self._versions.asks_for_epochs
            )
            self._followed[partition.topic_partition] = followed
        self._changed.set()
        if self._connection.in_flight:
            self._lacks_some = True
            self._abort_when_old()

    def _abort_when_old(self) -> None:
        """Abort the request in flight once it is old enough, unless the next one is sent before."""
        old_at = self._sent_at + SECONDS_PER_PARTITION * len(self._followed)
        left = old_at - self._runtime.monotonic()
        if left <= 0:
            self._connection.abort()
        elif self._abort_timer is None:
            self._abort_timer = self._runtime.call_later(left, self._on_abort_timer)

    def _on_abort_timer(self) -> None:
        self._abort_timer = None
        if self._lacks_some and self._connection.in_flight:
            self._abort_when_old()

    def remove(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Stop following these: nothing is appended to them from now on."""
        self._again = None
        for topic_partition in topic_partitions:
            followed = self._followed.pop(topic_partition, None)
            if followed is not None:
                followed.is_followed = False

    def stop(self) -> None:
        """Append nothing from now on; `run` returns soon."""
        self._stopped = True
        self.remove(list(self._followed))
        self._changed.set()
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        self._connection.abort()

    def run(self) -> None:
        """Fetch until stopped; errors are logged, and the next round follows after a pause. A log
        that cannot be written halts the broker. Switches."""
        logger.info("[%s], Starting", self.name)
        try:
            while not self._stopped:
                try:
                    self.round()
                except Exception as error:  # noqa: BLE001 - other partitions are copied all the same
                    uncaught(self._runtime, error, logger, "[%s], Error due to", self.name)
                    self._changed.wait(CONNECTION_BACKOFF_S)
        finally:
            self._connection.close()
        logger.info("[%s], Stopped", self.name)

    def round(self) -> None:
        """Send one request and process its response, or wait until there is something to fetch: at
        most replica.fetch.wait.max.ms at the leader. A failed connection is logged, with a pause of
        CONNECTION_BACKOFF_S. Switches."""
        # Before the state is read: whatever changes from now on ends every wait below.
        self._changed.clear()
        if self._followed and not self._connection.is_open and not self._connect():
            return
        wanted, wait_ms = self._again, self._config.replica_fetch_wait_max_ms
        if wanted is None:
            now = self._runtime.monotonic()
            ready = {tp: item for tp, item in self._followed.items() if item.paused_until <= now}
            if not ready:
                self._changed.wait(PARTITION_BACKOFF_S if self._followed else None)
                return
            if self._versions.asks_for_epochs:
                asking = {tp: item for tp, item in ready.items() if item.epochs is not None}
                if asking:
                    self._settle_by_epochs(asking)
                    return
            wanted = self._in_turn(ready)
            # The leader may delay a response for new data, but not while other partitions wait.
            if len(wanted) < len(ready):
                wait_ms = 0
        try:
            responses = self._exchange(wanted, wait_ms)
        except (ClientError, ProtocolError) as error:
            # How much the next response will have cannot be foreseen: see PROBE_BYTES.
            for asked in wanted.values():
                asked.ask_for(self._probe_bytes)
            self._back_off(error)
            return
        self._write_starts()
        if self._early > EARLY_MAX:
            self._changed.wait(EARLY_PAUSE_S)
        if not responses:
            return
        try:
            self._drop_unserved(wanted, responses)
        except (ClientError, ProtocolError) as error:
            self._back_off(error)
            return
        # Before `settle` shortens the sets: a full one says that the leader may have more.
        cut = {tp for tp, r in responses.items() if len(r.message_set) >= wanted[tp].max_bytes}
        refused = GroupedErrors()
        self._pause_all(self._truncation.settle(wanted, responses), wanted, refused)
        for tp, data in responses.items():
            # The calls above switch: another leader may be followed by now.
            if wanted[tp].is_followed:
                self._take(tp, wanted[tp], data, refused, is_cut=tp in cut)
        self._write_starts()
        self._end_round(refused)

    def _settle_by_epochs(self, asking: dict[TopicPartition, PartitionFetchState]) -> None:
        """Truncate these logs to where they differ from the leader's, by their epochs. Switches."""
        try:
            errors, problems = self._truncation.settle_by_epochs(
                asking, self._queries.ends_of_epochs
            )
        except (ClientError, ProtocolError) as error:
            self._back_off(error)
            return
        refused = GroupedErrors()
        for tp, error_of_leader in errors.items():
            refused.add(tp, Refusal.of(error_of_leader))
            self._pause(asking[tp])
        self._pause_all(problems, asking, refused)
        self._end_round(refused)

    def _pause_all(
        self,
        problems: Mapping[TopicPartition, KafkaError],
        wanted: Mapping[TopicPartition, PartitionFetchState],
        refused: GroupedErrors,
    ) -> None:
        """Pause those that cannot be compared or truncated now."""
        for tp, problem in problems.items():
            if isinstance(problem, CorruptLog):
                logger.error("[%s], The log of %s cannot be read: %s", self.name, tp, problem)
            else:
                refused.add(tp, Refusal.of(problem))
            self._pause(wanted[tp], TRUNCATION_BACKOFF_S)

    def _end_round(self, refused: GroupedErrors) -> None:
        """Write HWs that were lowered, and log what was refused. Switches."""
        if self._truncation.has_lowered:
            self._checkpoint()
            self._truncation.has_lowered = False
        for partitions, reason in refused:
            logger.error("[%s], Error for %s: %s", self.name, partitions, reason)

    def _exchange(
        self, wanted: dict[TopicPartition, PartitionFetchState], wait_ms: int
    ) -> dict[TopicPartition, FetchPartitionResponse]:
        """Send one request and append what the rules take of the response. Returns the responses
        of the other partitions. A request for the same partitions reuses the last frame with the
        changed offsets and sizes. Switches. Raises like Connection.send."""
        connection, version = self._connection, self._versions.fetch
        if wanted is self._again and self._frame is not None:
            frame = self._frame
        else:
            frame = self._frame_of(wanted, wait_ms)
        self._again = None
        correlation_id = connection.take_correlation_id()
        data = frame.numbered(correlation_id)
        self._lacks_some, self._sent_at = False, self._runtime.monotonic()
        connection.write_frame(data, correlation_id, FetchRequest, version=version)
        payload = connection.read_payload(room=self._room)
        self._unread.losses = 0
        max_bytes, now_ms = self._config.replica_fetch_max_bytes, self._runtime.time_ms()
        taken = append_fetched(payload, version, frame.by_name, max_bytes, now_ms, data)
        if taken is None:
            response = connection.decode(FetchRequest, payload, version)
            assert isinstance(response, FetchResponse)
            found = by_partition(response.topics)
            responses = {tp: data for tp, data in found.items() if tp in wanted}
            appended: list[PartitionFetchState] = []
        else:
            left, appended, risen = taken
            responses = {}
            for followed, code, high_watermark, start, message_set in left:
                tp = followed.topic_partition
                responses[tp] = FetchPartitionResponse(
                    tp.partition, code, high_watermark, message_set, log_start_offset=start
                )
            for followed, start in risen:
                self._follow_start(followed, start)
                # Also if it is not new here: the leader may wait to hear that.
                self._put(frame, followed)
        is_empty = not appended and not any(
            one.error_code or one.message_set for one in responses.values()
        )
        is_early = self._runtime.monotonic() - self._sent_at < wait_ms / 2000
        self._early = self._early + 1 if is_empty and is_early else 0
        self._moved = list(responses)
        self._alike += 1
        if self._is_limited and (
            responses
            or self._alike >= ALIKE_MAX
            or len(payload) > self._config.replica_fetch_response_max_bytes - max_bytes
        ):
            self._alike = 0
            self._put_last(followed.topic_partition for followed in appended)
            self._put_last(tp for tp, partition in responses.items() if partition.message_set)
        elif not responses and wanted == self._followed and len(payload) <= RESPONSE_BYTES:
            self._again = wanted  # each partition is expected to have as many bytes as now
        return responses

    def _drop_unserved(
        self,
        wanted: dict[TopicPartition, PartitionFetchState],
        responses: dict[TopicPartition, FetchPartitionResponse],
    ) -> None:
        """Drop the empty sets that do not say that the leader's log ends there, which it is asked
        for: the response had no room for the next message, or the leader is throttled. Only where
        the log would be cut otherwise. Switches. Raises like Connection.send."""
        empty = [
            tp
            for tp, data in responses.items()
            if not data.error_code and not data.message_set and wanted[tp].is_unsettled
        ]
        if not empty:
            return
        ends = self._queries.ends_of(empty, LATEST_OFFSET)
        for tp in empty:
            end = ends.get(tp)
            proven = end is not None and end.found and end.found[0] <= wanted[tp].position
            if not proven:
                del responses[tp]

    def _frame_of(
        self, wanted: dict[TopicPartition, PartitionFetchState], wait_ms: int
    ) -> FetchFrame[PartitionFetchState]:
        """The frame of a request for these: the last one with changed offsets and sizes, if that
        was for the same partitions."""
        names, frame = list(wanted), self._frame
        if frame is None or self._framed != (names, wait_ms):
            request = self._request(wanted, wait_ms)
            frame = FetchFrame(request, self.name, wanted)
            self._frame = frame
            self._framed = names, wait_ms
        else:
            for tp in self._moved:
                self._put(frame, wanted[tp])
        self._moved = []
        return frame

    def _put(self, frame: FetchFrame[PartitionFetchState], followed: PartitionFetchState) -> None:
        start = followed.log.log_start_offset
        frame.put(followed, followed.position, followed.max_bytes, start)

    def _follow_start(self, followed: PartitionFetchState, start: int) -> None:
        """Delete the records that the leader has deleted, once they are below the HW here too."""
        if followed.is_followed and start <= followed.partition.high_watermark:
            followed.leader_start = start
            self._starts_rose |= followed.log.raise_log_start(start)

    def _write_starts(self) -> None:
        """Before the next request tells the leader of them. Switches."""
        if self._starts_rose:
            self._starts_rose = False
            self._checkpoint_starts()

    def _connect(self) -> bool:
        """Connect before the request is built; False if that fails. Connecting switches, and a
        partition that is removed meanwhile must not be in the request: because of that fetch the
        leader would return a stopping broker to the ISR."""
        try:
            self._connection.open()
        except ClientError as error:
            self._back_off(error)
            return False
        # The leader may have lost its last messages without another leader epoch: see the header.
        for followed in self._followed.values():
            followed.unsettle()
        self._frame = self._again = None
        return True

    def _back_off(self, error: Exception) -> None:
        """Wait after a failure of the connection, unless `add` or `stop` aborted it."""
        if not self._changed.is_set():
            logger.warning("[%s], Error in fetch. Possible cause: %s", self.name, error)
            if why := self._unread.explain(error, self._versions.of_follower):
                logger.warning("[%s], %s", self.name, why)
            self._changed.wait(CONNECTION_BACKOFF_S)

    def _in_turn(
        self, ready: dict[TopicPartition, PartitionFetchState]
    ) -> dict[TopicPartition, PartitionFetchState]:
        """As many partitions as fit into one response, and at least the first. If others remain,
        the chosen ones move to the end of the queue. All if the leader limits the response."""
        if self._is_limited:
            return ready
        chosen: dict[TopicPartition, PartitionFetchState] = {}
        room = RESPONSE_BYTES
        for tp, followed in ready.items():
            if not chosen or followed.expected_bytes <= room:
                room -= followed.expected_bytes
                chosen[tp] = followed
        if len(chosen) < len(ready):
            for tp in chosen:
                self._followed[tp] = self._followed.pop(tp)
        return chosen

    def _put_last(self, served: Iterable[TopicPartition]) -> None:
        """Move these to the end after a response that is limited as a whole: the leader fills it
        in the order of the request, and later partitions would starve."""
        for tp in served:
            if tp in self._followed:
                self._followed[tp] = self._followed.pop(tp)

    def _request(
        self, wanted: dict[TopicPartition, PartitionFetchState], wait_ms: int
    ) -> FetchRequest:
        config = self._config
        return FetchRequest(
            config.broker_id,
            wait_ms,
            config.replica_fetch_min_bytes,
            [
                FetchTopic(
                    topic,
                    [
                        FetchPartition(p, f.position, f.max_bytes, f.log.log_start_offset)
                        for p, f in items
                    ],
                )
                for topic, items in by_topic(wanted).items()
            ],
            max_bytes=config.replica_fetch_response_max_bytes,
            version=self._versions.fetch,
        )

    def _take(
        self,
        tp: TopicPartition,
        followed: PartitionFetchState,
        data: FetchPartitionResponse,
        refused: GroupedErrors,
        *,
        is_cut: bool,
    ) -> None:
        """Append one partition's set, or handle its error; a failure pauses it. `is_cut`: the
        leader may have more. Switches."""
        asked = followed.position
        has_no_common_epoch = followed.epochs is None and followed.unsettled is not None
        try:
            if data.error_code:
                # A leader that did not lead for a while may have other messages: see the header.
                followed.unsettle()
                check(data.error_code, f"broker {self._leader.id} refused")
            self._append(tp, followed, data, is_cut=is_cut)
        except OffsetOutOfRange:
            if has_no_common_epoch:
                followed.epochs = None  # another question would have the same answer, for ever
            # If there is something to compare, the next request is from the HW on.
            if followed.epochs is not None or followed.position == asked:
                self._reset(tp, followed)
        except InvalidMessage as error:
            logger.error("Found invalid messages during fetch for partition %s: %s", tp, error)
            self._pause(followed)
        except ApiError as error:
            refused.add(tp, error)
            self._pause(followed)

    def _append(
        self,
        tp: TopicPartition,
        followed: PartitionFetchState,
        data: FetchPartitionResponse,
        *,
        is_cut: bool,
    ) -> None:
        message_set = data.message_set
        appended = followed.unsettled is None and (
            followed.partition.append_as_follower(message_set, data.high_watermark).count
        )
        if appended or len(message_set) < ENTRY_HEADER.size:
            followed.ask_for(self._config.replica_fetch_max_bytes)
            if not is_cut:
                followed.expected_bytes = len(message_set)
            followed.flush_owed(self._runtime.run_native)
        else:
            self._give_room(tp, followed, message_set)
        followed.lag = max(0, data.high_watermark - followed.log.log_end_offset)
        if followed.unsettled is None and data.log_start_offset != followed.leader_start:
            self._follow_start(followed, data.log_start_offset)

    def _give_room(
        self, tp: TopicPartition, followed: PartitionFetchState, message_set: Buffer
    ) -> None:
        """The first message is incomplete: raise the fetch size, of a probe to the usual one, else
        to its length. Today's max.message.bytes is no limit, since it may have been higher when the
        message was stored. InvalidMessage if its length is damaged."""
        usual = self._config.replica_fetch_max_bytes
        if followed.max_bytes < usual:
            followed.ask_for(usual)
            return
        _, size = ENTRY_HEADER.unpack_from(message_set)
        needed = ENTRY_HEADER.size + size
        fits = max(len(message_set), followed.max_bytes) < needed <= INT_MAX - ROOM_BYTES
        if not fits or not message_sets.is_plausible(message_set):
            followed.max_bytes = usual
            raise InvalidMessage(
                f"leader {self._leader.id} names {size} bytes as the size of its message at offset "
                f"{followed.position}, which is not that of its key and value, or more than it "
                "has; check the log there"
            )
        followed.ask_for(needed)
        logger.warning(
            "A message of %s is larger than replica.fetch.max.bytes: fetching %d bytes for it",
            tp,
            needed,
        )

    def _pause(self, followed: PartitionFetchState, least_s: float = PARTITION_BACKOFF_S) -> None:
        followed.ask_for(self._probe_bytes)
        seconds = max(least_s, SECONDS_PER_PARTITION * len(self._followed))
        followed.paused_until = self._runtime.monotonic() + seconds

    def _reset(self, tp: TopicPartition, followed: PartitionFetchState) -> None:
        """The leader does not have the offset that we need. Switches."""
        try:
            self._truncation.reset(tp, followed, self._queries.end_of)
        except StorageError:
            # Of this broker's disk, not of the leader: it halts the broker.
            raise
        except KafkaError as error:
            logger.error("Error getting offset for partition %s: %s", tp, error)
            self._pause(followed, TRUNCATION_BACKOFF_S)
