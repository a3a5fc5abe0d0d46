"""FetchCall: one Fetch request from its fields to its response. Its rules are in handlers.fetch.

The kernel decodes requests for known partitions, each named once, and encodes responses without an
error and without aborted transactions: no object for a topic or a partition is made, and a
partition without new messages costs one comparison. The codec does the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka08.broker.purgatory.delayed_fetch import DelayedFetch, DelayedFollowerFetch
from kafka08.broker.replica import replica_state
from kafka08.broker.replication.grouped_errors import GroupedErrors
from kafka08.broker.requests.call import Call, answering, host_of
from kafka08.broker.requests.context import BrokerContext
from kafka08.broker.requests.converted_set import LOOKED_AT_AT_ONCE_BYTES, DownConvertedResponse
from kafka08.broker.requests.fetch_reads import (
    Reads,
    aborted_in,
    added_since_0_11,
    encode_by_codec,
    encode_by_kernel,
    whole_message,
)
from kafka08.errors import (
    ApiError,
    FileRefused,
    NotLeaderForPartition,
    OffsetOutOfRange,
    StorageError,
    UnknownError,
    UnknownTopicOrPartition,
    code_of,
)
from kafka08.levels import Level
from kafka08.log_limit import caused_by
from kafka08.protocol.codec import decode_header
from kafka08.protocol.fetch import (
    LIMITED_VERSION,
    MAGIC_1_VERSION,
    MAGIC_2_VERSION,
    NO_HIGH_WATERMARK,
    READ_COMMITTED,
    FetchPartition,
    FetchRequest,
)
from kafka08.runtime.yielding import (
    PARTITIONS_AT_ONCE,
    PARTITIONS_PER_BATCH,
    yielding_batches,
)
from kafka08.structs import DEBUGGING_CONSUMER, ORDINARY_CONSUMER

if TYPE_CHECKING:
    from kafka08.broker.replica.partition import Partition
    from kafka08.log.slices import LogOffset
    from kafka08.network.server_connection import RequestConnection, ResponseFrame
    from kafka08.protocol.codec import RequestHeader
    from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

COPIED_BYTES_MAX: Final = 128 << 10
"""The sets of a response to a follower are copied up to this size: one system call sends them all,
and wakes the follower once."""

Ends = tuple[list[int], list[int], list[int]]
"""The result of `replica_state.partitions_to_read`."""

Then = Callable[[Reads], "ResponseFrame | None"]


class FetchCall:
    """One request, from its fields to its response, which waits if there is too little.

    partitions, offsets, limits   in the order of the request; None: unknown when it came
    log_starts                    of a follower's logs; None if the version has no such field
    payload                       the request, if the kernel has decoded it; valid until the handler
                                  returns, unless `_outlive_payload` is called
    names, header                 otherwise: the partitions' names, and the request's header
    stable_only                   whether a consumer reads no messages of transactions that are not
                                  committed
    """

    _names: list[TopicPartition] | None = None
    _header: RequestHeader | None = None

    def __init__(
        self,
        broker: BrokerContext,
        level: Level,
        link: RequestConnection,
        payload: memoryview | None,
        version: int,
        replica_id: int,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        isolation_level: int,
        partitions: list[Any],
        offsets: list[int],
        limits: list[int],
        log_starts: list[int] | None,
    ) -> None:
        self._broker = broker
        self._level = level
        self._link = link
        self._payload = payload
        self._version = version
        self._replica_id = replica_id
        self._max_wait_ms = max_wait_ms
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._stable_only = isolation_level == READ_COMMITTED and replica_id == ORDINARY_CONSUMER
        self._partitions = partitions
        self._offsets = offsets
        self._limits = limits
        self._log_starts = log_starts

    @classmethod
    def decoded(
        cls, call: Call, broker: BrokerContext, wanted: dict[TopicPartition, FetchPartition]
    ) -> FetchCall:
        """A request for these partitions that the codec has decoded."""
        request = call.request
        found = [broker.replica_manager.find(name) for name in wanted]
        offsets = [one.offset for one in wanted.values()]
        limits = [one.max_bytes for one in wanted.values()]
        starts = [one.log_start_offset for one in wanted.values()]
        assert isinstance(request, FetchRequest)
        fetch = cls(
            broker, broker.config.level, call.link, None, request.version,
            request.replica_id, request.max_wait_ms, request.min_bytes, request.max_bytes,
            request.isolation_level, found, offsets, limits, starts,
        )  # fmt: skip
        fetch._names = list(wanted)
        fetch._header = call.header
        return fetch

    def answer(self) -> ResponseFrame | None:
        """The response; None if it is sent later. Switches if this is called in a greenlet."""
        ends = self._find_ends()
        if (
            self._replica_id >= 0
            and self._min_bytes == 1
            and self._max_wait_ms > 0
            and self._payload is not None
            and self._wanted_magic is None
            and replica_state.NOT_AT_THE_END not in ends[2]
            and self._accepts_follower()
        ):
            return self._follow(ends)
        return self._read(ends, self._decide)

    def _decide(self, reads: Reads) -> ResponseFrame | None:
        """Respond, or wait for more."""
        # After the reads: the response has the HWs from before.
        acknowledges = self._replica_id >= 0 and self._record(reads)
        if (
            self._max_wait_ms <= 0
            or not self._partitions
            or reads.total >= self._min_bytes
            or (reads.codes and self._errors_end_wait(reads))
        ):
            return self._respond(reads)
        self._park(reads)
        if acknowledges:
            # A coordinator may have appended what follows, after the reads: a marker.
            self._broker.replica_manager.purgatories.wake_followers(self._all_names())
        return None

    def _errors_end_wait(self, reads: Reads) -> bool:
        if self._level < Level.V0_10_2:
            return True
        cache = self._broker.metadata_cache
        known = [n for n in range(len(self._partitions)) if self._name(n).topic in cache]
        return not known or any(number in reads.codes for number in known)

    # The request's fields

    @property
    def _wanted_magic(self) -> int | None:
        """The newest magic of messages that the version allows; None if it takes them as they are
        stored."""
        if self._version < MAGIC_1_VERSION and self._level >= Level.V0_10_2:
            return 0
        is_newer = self._version < MAGIC_2_VERSION and self._level >= Level.V0_11_0
        return 1 if is_newer else None

    def _name(self, number: int) -> TopicPartition:
        if self._names is not None:
            return self._names[number]
        name: TopicPartition = self._partitions[number].topic_partition
        return name

    def _all_names(self) -> list[TopicPartition]:
        return self._names or [partition.topic_partition for partition in self._partitions]

    def _outlive_payload(self) -> None:
        """Keep a copy of the request: the buffer that received it is used again."""
        if self._payload is not None:
            self._payload = memoryview(bytes(self._payload))

    # Reading

    def _find_ends(self) -> Ends:
        """Ends and positions of the partitions now, and which of them must be read."""
        ends = replica_state.partitions_to_read(
            self._partitions, self._offsets, self._limits, self._replica_id >= 0
        )
        if self._replica_id == DEBUGGING_CONSUMER:
            return ends[0], list(range(len(self._partitions))), ends[2]
        return ends

    def _read(self, ends: Ends, then: Then) -> ResponseFrame | None:
        """The result of `then` for what is read; None, and it is sent later, if there is much to
        read."""
        high_watermarks, to_read, _ = ends
        reads = Reads(high_watermarks)
        if len(to_read) <= PARTITIONS_AT_ONCE:
            self._read_some(to_read, reads)
            return then(reads)
        reads.in_turns = True

        def read_in_turns() -> ResponseFrame | None:
            for turn in yielding_batches(to_read, self._broker.runtime):
                self._read_some(turn, reads)
            return then(reads)

        self._run_in_greenlet(read_in_turns)
        return None

    def _run_in_greenlet(self, run: Callable[[], ResponseFrame | None]) -> None:
        """Send what `run` returns, which may switch."""
        self._outlive_payload()

        def run_and_send() -> None:
            response = run()
            if response is not None:
                self._link.send_response(response)

        self._broker.runtime.spawn(
            answering(self._link, run_and_send), name=f"Fetch for {self._link.peer}"
        )

    def _read_some(self, numbers: Sequence[int], reads: Reads) -> None:
        """Read these partitions; an error of one becomes its code only."""
        partitions, offsets, limits = self._partitions, self._offsets, self._limits
        is_consumer = self._replica_id < 0
        takes_any_replica = self._replica_id == DEBUGGING_CONSUMER
        is_limited = self._version >= LIMITED_VERSION
        at_0_10_2 = self._level >= Level.V0_10_2
        refused = None
        for number in numbers:
            partition, offset, limit = partitions[number], offsets[number], limits[number]
            try:
                if partition is None or not partition.is_leader or takes_any_replica:
                    partition = self._find(number)
                end = self._end_of(partition) if is_consumer else None
                if end is not None and at_0_10_2 and offset > end:
                    # 0 bytes, up to the LEO: empty, and out of range only beyond that.
                    found = partition.read(offset, 0)
                elif not is_limited:
                    found = partition.read(offset, limit, end)
                else:
                    left = self._max_bytes - reads.total
                    # 0.10: a negative limit fails only what is read first.
                    limit = min(limit, left if left > 0 or not number else 0)
                    found = partition.read(offset, limit, end)
                    if found.size == limit and (limit or not reads.total):
                        read = partial(partition.read, offset, end=end)
                        found = whole_message(read, found, is_first=not reads.total)
            except StorageError:
                raise
            except Exception as error:  # noqa: BLE001 - becomes the partition's error code
                refused = refused or GroupedErrors()
                self._fail(error, number, reads, refused)
            else:
                reads.high_watermarks[number] = partition.high_watermark
                reads.found[number] = found
                reads.sizes[number] = size = found.size
                reads.total += size
        if refused is not None:
            self._log_refused(refused)

    def _end_of(self, partition: Partition) -> int:
        """Where a consumer must stop."""
        return partition.last_stable_offset if self._stable_only else partition.high_watermark

    def _find(self, number: int) -> Partition:
        """A partition by its name, which may have become known since; raises 3, 6 or 9."""
        name, manager = self._name(number), self._broker.replica_manager
        if self._replica_id != DEBUGGING_CONSUMER:
            partition = manager.leader_partition(name)
        elif self._level >= Level.V0_10_2 and name.topic not in self._broker.metadata_cache:
            raise UnknownTopicOrPartition(f"topic {name.topic} is not known here")
        else:
            partition = manager.hosted_partition(name)
        self._partitions[number] = partition
        return partition

    # Followers

    def _accepts_follower(self) -> bool:
        """Whether all positions of a follower can be recorded."""
        follower, number = self._replica_id, self._link.number
        if follower == self._broker.config.broker_id:
            return False
        for partition in self._partitions:
            if follower not in partition.replicas or (
                number < partition.led_until and partition.doubts(number)
            ):
                return False
        return True

    def _record(self, reads: Reads) -> bool:
        """Record a follower's positions. True if that completed a delayed produce."""
        partitions, offsets, starts = self._partitions, self._offsets, self._log_starts
        if reads.codes or reads.in_turns or not self._accepts_follower():
            accepted = self._accepted(reads)
            partitions = [partitions[number] for number in accepted]
            offsets = [offsets[number] for number in accepted]
            starts = None if starts is None else [starts[number] for number in accepted]
        manager = self._broker.replica_manager
        return manager.record_follower_fetches(partitions, offsets, self._replica_id, starts)

    def _accepted(self, reads: Reads) -> list[int]:
        """The partitions whose positions can be recorded. One that `doubts` its offset, or was
        deleted during the read, gets an error alone. So does one of which the follower is not a
        replica: a leftover of a dead broker's move would otherwise stop the replication of all
        others (0.8.2.2 returns the error for every partition of the request)."""
        manager, refused = self._broker.replica_manager, GroupedErrors()
        accepted: list[int] = []
        for number, offset in enumerate(self._offsets):
            # An offset out of range is checked too: of an earlier leadership it is error 6, not 1.
            code = reads.codes.get(number)
            if code not in (None, OffsetOutOfRange.code):
                continue
            try:
                partition = manager.partition(self._name(number))
                partition.check_replica(self._replica_id, offset)
                partition.check_connection(self._link.number)
            except ApiError as error:
                self._note(error, number, refused)
                reads.fail(number, error.code)
                continue
            if code is None:
                self._partitions[number] = partition
                accepted.append(number)
        self._log_refused(refused)
        return accepted

    def _follow(self, ends: Ends) -> ResponseFrame | None:
        """Handle the fetch of a follower that waits for any number of bytes, as most do, and has
        nearly everything.

        It waits until the end of this turn even if there are some, if the fetch acknowledges a
        produce: the next request of that producer is usually in the socket already, and is
        appended in this turn."""
        high_watermarks, to_read, positions = ends
        acknowledges = self._broker.replica_manager.record_follower_fetches(
            self._partitions, self._offsets, self._replica_id, self._log_starts
        )
        if not to_read or acknowledges:
            self._park_follower(ends)
            if (
                acknowledges
                and not to_read
                and replica_state.has_news(self._partitions, self._offsets)
            ):
                # A coordinator has appended what follows, after `ends` were found: a marker.
                self._broker.replica_manager.purgatories.wake_followers(self._all_names())
            return None
        response = self._copied(positions, high_watermarks)
        if response is not None:
            return response

        def respond_if_any(reads: Reads) -> ResponseFrame | None:
            if reads.total or reads.codes:
                return self._respond(reads, high_watermarks)
            self._park(reads)
            return None

        return self._read((list(high_watermarks), to_read, positions), respond_if_any)

    def _copied(
        self, positions: list[int], high_watermarks: list[int] | None = None
    ) -> bytes | None:
        """The frame with copies of the sets for a follower; None if it would be large, needs a look
        at files, or has an error. Then the sets stay in their files."""
        assert self._payload is not None
        return replica_state.respond_to_follower(
            self._payload,
            self._partitions,
            self._offsets,
            self._limits,
            positions,
            min(COPIED_BYTES_MAX, self._max_bytes - 1),
            high_watermarks,
        )

    # Waiting

    def _park_follower(self, ends: Ends) -> None:
        """Wait until one of the partitions is longer. If some are already, wait until this turn
        ends; the response has the HWs of `ends` then, as an immediate one."""
        high_watermarks, to_read, positions = ends
        marks = high_watermarks if to_read else None
        self._outlive_payload()

        def respond() -> None:
            response = self._copied(positions, marks)
            if response is None:
                self._complete(marks)
            else:
                self._link.send_response(response)

        manager = self._broker.replica_manager
        waits = manager.purgatories.follower_fetches
        wait = DelayedFollowerFetch(
            manager.find,
            self._replica_id,
            self._partitions,
            self._offsets,
            answering(self._link, respond),
            has_news=bool(to_read),
        )
        waits.watch(wait, (), self._max_wait_ms)
        self._link.on_close = partial(waits.abandon, wait)
        if to_read:
            manager.purgatories.wake_followers(
                [self._partitions[number].topic_partition for number in to_read]
            )

    def _park(self, reads: Reads) -> None:
        """Wait for more data of the partitions without an error, then read everything again."""
        self._outlive_payload()
        names = self._all_names()
        starts: dict[TopicPartition, LogOffset | int]
        if self._min_bytes > 1 or reads.in_turns:
            # Positions of now: a segment that is rolled meanwhile ends the wait.
            starts = {
                names[number]: self._partitions[number].leader_log().position_of(offset)
                for number, offset in enumerate(self._offsets)
                if number not in reads.found and number not in reads.codes
            }
        else:
            starts = dict(zip(names, self._offsets, strict=True))
        for number, found in reads.found.items():
            starts[names[number]] = found.log_offset
        for number in reads.codes:
            starts.pop(names[number], None)
        manager = self._broker.replica_manager
        follows = self._replica_id >= 0
        wait = DelayedFetch(
            manager.partition,
            starts,
            self._min_bytes,
            answering(self._link, self._complete),
            from_follower=follows,
            stable_only=self._stable_only,
        )
        waits = manager.purgatories.for_fetch(from_follower=follows)
        # Nothing can be read yet, so it is not satisfied: it is not checked.
        if not reads.found and not reads.in_turns:
            waits.watch(wait, starts, self._max_wait_ms)
        elif waits.add(wait, starts, self._max_wait_ms):
            return
        if self._link.ending:
            waits.abandon(wait)
        else:
            self._link.on_close = partial(waits.abandon, wait)

    def _complete(self, high_watermarks: list[int] | None = None) -> None:
        """Respond to a parked request: read everything again. It has these HWs, if given."""
        response = self._read(
            self._find_ends(), lambda reads: self._respond(reads, high_watermarks)
        )
        if response is not None:
            self._link.send_response(response)

    # Responding

    def _respond(
        self, reads: Reads, high_watermarks: list[int] | None = None
    ) -> ResponseFrame | None:
        """The response with all sets, which are counted; None if it is sent later."""
        if high_watermarks is not None:
            reads.high_watermarks = list(high_watermarks)
            for number in reads.codes:
                reads.high_watermarks[number] = NO_HIGH_WATERMARK
        if self._must_be_converted(reads):
            return self._convert(reads)
        return self._encode(reads)

    def _must_be_converted(self, reads: Reads) -> bool:
        """Whether a set may have newer messages than the version allows. Those of record batches
        are told by their topic, as 0.11.0.3 does; only those are worth a look into each set."""
        magic = self._wanted_magic
        if not magic:
            return magic is not None and bool(reads.found)
        return any(self._partitions[number].log.config.magic > magic for number in reads.found)

    def _convert(self, reads: Reads) -> ResponseFrame | None:
        """The response in an older magic; None, and it is sent later, if there are many sets, or a
        thread must examine large ones or convert the first messages of one."""
        self._outlive_payload()
        runtime, link = self._broker.runtime, self._link
        magic = self._wanted_magic
        assert magic is not None
        old = DownConvertedResponse(reads.found, runtime, host_of(link), magic)

        def encode() -> ResponseFrame:
            for number, found in old.sets.items():
                reads.found[number] = found
                reads.sizes[number] = found.size
            reads.total = sum(reads.sizes)
            for number, error in old.errors.items():
                text = "Cannot convert %s for a consumer of magic %d: %s"
                logger.error(text, self._name(number), magic, error)
                code = code_of(error) if isinstance(error, Exception) else UnknownError.code
                reads.fail(number, code)
            return self._encode(reads)

        def sized() -> ResponseFrame | None:
            if old.find_sizes(answering(link, lambda: link.send_response(encode()))):
                return encode()
            return None

        def look() -> ResponseFrame | None:
            runtime.run_native(old.convert, list(reads.found))
            return sized()

        def take_turns() -> ResponseFrame | None:
            for turn in yielding_batches(list(reads.found), runtime):
                old.convert(turn)
            return sized()

        if reads.total > LOOKED_AT_AT_ONCE_BYTES:
            self._run_in_greenlet(look)
        elif len(reads.found) > PARTITIONS_PER_BATCH:
            self._run_in_greenlet(take_turns)
        else:
            return take_turns()
        return None

    def _encode(self, reads: Reads) -> ResponseFrame:
        """The frame, its sets still in their files."""
        partitions, sizes = self._partitions, reads.sizes
        aborted = aborted_in(partitions, reads) if self._stable_only else None
        # Aborted transactions are as rare as errors, so the kernel cannot write them.
        if self._payload is not None and not reads.codes and not aborted:
            frame = encode_by_kernel(self._payload, partitions, reads, self._stable_only)
        else:
            names = [self._name(number) for number in range(len(partitions))]
            added = partial(added_since_0_11, partitions, aborted)
            frame = encode_by_codec(self._head().correlation_id, self._version, names, reads, added)
            self._tell(reads)
            sent = [number for number in range(len(sizes)) if number not in reads.codes]
            partitions = [partitions[number] for number in sent]
            sizes = [sizes[number] for number in sent]
        replica_state.count_fetches(partitions, None if self._replica_id >= 0 else sizes)
        return frame

    def _tell(self, reads: Reads) -> None:
        if self._replica_id >= 0:
            for number in reads.codes:
                partition = self._broker.replica_manager.find(self._name(number))
                if partition is not None:
                    partition.tell(self._link.number)

    # Errors of partitions

    def _fail(self, error: Exception, number: int, reads: Reads, refused: GroupedErrors) -> None:
        """Count and log the error of a partition that cannot be read."""
        failure = self._error_for_response(error, number)
        self._note(failure, number, refused)
        known = self._broker.replica_manager.find(self._name(number))
        if known is not None:
            known.count_unread(failure)
        reads.fail(number, code_of(failure))

    def _error_for_response(self, error: Exception, number: int) -> Exception:
        """The error for the response. OffsetOutOfRange makes a consumer forget its position, so
        only the leader may send it to one. A broker that was suspended for longer than its session
        does not know its successors yet, whose logs may be longer. 0.8.2.2 sends it all the
        same."""
        broker = self._broker
        if (
            isinstance(error, OffsetOutOfRange)
            and self._replica_id < 0
            and broker.unconfirmed_leaderships.is_unconfirmed(self._name(number))
        ):
            return NotLeaderForPartition(
                f"{error} The ZooKeeper session of broker {broker.config.broker_id} may have "
                "expired, or has: another broker may lead"
            )
        return error

    def _note(self, error: Exception, number: int, refused: GroupedErrors) -> None:
        """Log an error, or put it into `refused` if many partitions may have it."""
        if isinstance(error, NotLeaderForPartition | UnknownTopicOrPartition) and not isinstance(
            error, FileRefused
        ):
            refused.add(self._name(number), error)
            return
        header = self._head()
        logger.error(
            "Error when processing fetch request for partition %s offset %d from %s with "
            "correlation id %d. Possible cause: %s",
            self._name(number),
            self._offsets[number],
            header.client_id,
            header.correlation_id,
            error,
            exc_info=None if isinstance(error, ApiError) else error,
            extra=caused_by(host_of(self._link)),
        )

    def _log_refused(self, refused: GroupedErrors) -> None:
        for partitions, reason in refused:
            header = self._head()
            logger.warning(
                "Fetch request with correlation id %d from client %s on %s failed due to %s",
                header.correlation_id,
                header.client_id,
                partitions,
                reason,
                extra=caused_by(host_of(self._link)),
            )

    def _head(self) -> RequestHeader:
        if self._header is None:
            assert self._payload is not None
            self._header = decode_header(self._payload)
        return self._header
