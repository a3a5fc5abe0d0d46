"""Sender: a thread that takes batches from the accumulator and sends them to their leaders.

Each round collects the leaders with sendable batches, sends requests to each that is ready, then
waits for responses. A response completes batches, or returns them to the front of their queue if
they may be retried. Source: org.apache.kafka.clients.producer.internals.Sender 0.8.2.2, with one
difference: consecutive batches of a partition are sent as one message set, up to max.request.size
(compressed ones: PACKED_TOGETHER_BYTES). If the broker refuses such a set permanently (one message
is too large, say), each of its batches is sent once more by itself, so that only the bad one fails.
Its partition waits for the response, so that later batches do not overtake them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

from kafka08.client.metadata import TOPIC_EXPIRY_S
from kafka08.client.requests import produce_request, produce_results, produce_version
from kafka08.client.retry import may_be_stored_later, needs_metadata
from kafka08.config import INT_MAX
from kafka08.errors import (
    NO_ERROR,
    ApiError,
    AuthenticationFailed,
    ConnectionFailed,
    DuplicateSequence,
    FailedToSend,
    FailedTransaction,
    KafkaError,
    MessageSetSizeTooLarge,
    MessageSizeTooLarge,
    ProducerClosed,
    ProtocolError,
    RequestTimeout,
    UnknownProducerId,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
    error_of,
)
from kafka08.kernel.types import NO_TIMESTAMP
from kafka08.lifecycle import ProcessBound
from kafka08.listing import some_of
from kafka08.network.session import InFlightRequest
from kafka08.producer.accumulator import RecordAccumulator
from kafka08.producer.batch import RECORDS, RecordBatch
from kafka08.producer.broker_channel import ClientResponse
from kafka08.producer.idempotence import Idempotence, Identity, Terms
from kafka08.producer.network_client import LostRequests, NetworkClient
from kafka08.producer.producer_metadata import ProducerMetadata
from kafka08.producer.record import ProducerRecord
from kafka08.producer.sender_metrics import SenderMetrics
from kafka08.producer.sequences import is_numbered
from kafka08.producer.transactions import Transactions
from kafka08.protocol import compression
from kafka08.protocol.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.protocol.produce import (
    MAGIC_1_VERSION,
    ZSTD_VERSION,
    ProduceRequest,
    ProduceResponse,
)
from kafka08.protocol.types import Buffer
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.runtime import WAIT_S_MAX, ClientRuntime, Task
from kafka08.runtime.transport import Address
from kafka08.structs import NO_OFFSET, Broker, TopicPartition

logger = logging.getLogger(__name__)

Batches = dict[TopicPartition, list[RecordBatch]]
"""The content of one request: the batches of each partition, in order."""
METADATA_TIMEOUT_S: Final = 10.0
TOO_LARGE: Final = (MessageSizeTooLarge, MessageSetSizeTooLarge)
GIVE_UP_S: Final = 1.0
"""How long a close waits for a sender that gives up."""


NOT_IDEMPOTENT: Final = UnsupportedVersion(
    "enable.idempotence=true needs brokers from 0.11 on: this one may store a record twice"
)


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """ack_timeout_ms     how long a leader may wait for its followers
    request_timeout_s  the timeout of a response, and without delivery_s of the wait for a leader
    backoff_s          wait before a retry
    max_request_bytes  size of a request; at least one batch
    plain              for brokers that may store a batch twice
    once               for brokers that store each batch once
    idempotence        whether they are to do that, see Idempotence
    transactional_id   whether all batches belong to transactions
    """

    ack_timeout_ms: int
    request_timeout_s: float
    backoff_s: float
    max_request_bytes: int
    plain: Terms
    once: Terms
    idempotence: Idempotence = Idempotence.OFF
    transactional_id: str | None = None


class ProduceForm(NamedTuple):
    """How a broker gets messages.

    version         of the Produce request
    magic           format of the messages
    gives_ids       whether it gives a producer its id
    takes_wrappers  whether a set may have several compressed batches: from 0.11 on a broker refuses
                    them, and after a refusal later batches would overtake
    unsupported     why it gets none: it serves only later versions
    """

    version: int
    magic: int
    takes_wrappers: bool
    unsupported: UnsupportedVersion | None
    gives_ids: bool = False


@lru_cache(maxsize=64)
def produce_form(versions: VersionRanges) -> ProduceForm:
    """The form for a broker that serves `versions`."""
    takes_wrappers = not versions.serves_beyond(ProduceRequest, MAGIC_1_VERSION)
    try:
        version, magic = produce_version(versions)
    except UnsupportedVersion as error:
        return ProduceForm(0, 0, takes_wrappers, error)
    if magic == RECORDS:
        return ProduceForm(version, magic, False, None, gives_ids(versions))
    return ProduceForm(version, magic, takes_wrappers, None)


def gives_ids(versions: VersionRanges) -> bool:
    try:
        return versions.highest(InitProducerIdRequest, 0, 0) == 0
    except UnsupportedVersion:
        return False


def is_divisible(batch: RecordBatch) -> bool:
    """Whether a batch that is too large for its topic can be sent in halves. Without sequences
    those behind it, which are on their way, would come first. Source:
    Sender.canSplitBatchAndReenqueue 2.8.2, which lets them."""
    return batch.sent_as is not None and batch.magic == RECORDS and batch.count > 1


def not_sent(records: Sequence[ProducerRecord]) -> FailedToSend:
    """The error for unsent records: how many for which partitions, and the records."""
    counts: dict[TopicPartition, int] = {}
    for record in records:
        tp = TopicPartition(record.topic, record.partition or 0)
        counts[tp] = counts.get(tp, 0) + 1
    shown = some_of([f"{count} for {tp}" for tp, count in counts.items()], kind="partitions")
    return FailedToSend(
        f"closed before {len(records)} records were acknowledged: {shown}",
        tuple(records),
    )


def joined(sets: Sequence[Buffer]) -> Buffer:
    """The sets of one partition, at least one, as one set."""
    return sets[0] if len(sets) == 1 else b"".join(sets)


class Sender(ProcessBound):
    """Owns the channels. Only its own task may use it, except for `start`, `join`,
    `end`, `end_soon` and the task's properties."""

    def __init__(
        self,
        settings: SenderSettings,
        accumulator: RecordAccumulator,
        metadata: ProducerMetadata,
        network: NetworkClient,
        runtime: ClientRuntime,
        forget: Callable[[Collection[str]], None],
        transactions: Transactions | None = None,
    ) -> None:
        """`forget`: called with topics that have been unused for TOPIC_EXPIRY_S. `transactions`:
        told of batches that fail."""
        self._transactions = transactions
        self._forget = forget
        self._settings = settings
        self._accumulator = accumulator
        self._metadata = metadata
        self._network = network
        self._runtime = runtime
        self.metrics = SenderMetrics()
        self._metadata_in_flight = False
        self._giving_up = False
        self._is_finishing = False
        self._expire_at = 0.0
        self._unsent: list[ProducerRecord] = []
        self._identity: Identity | None = None
        self._is_identity_asked = False
        self._ask_identity_at = 0.0
        self._identity_error: KafkaError | None = None
        """Why no broker has given one yet."""
        self._has_no_identity = False
        """The cluster gives none, and the producer may do without."""
        self._task: Task | None = None

    def start(self) -> None:
        self._task = self._runtime.spawn(self._run, name="kafka08-producer")

    @property
    def is_alive(self) -> bool:
        """Whether its task has not ended."""
        return self._task is not None and self._task.is_alive()

    @property
    def is_current(self) -> bool:
        """Whether the caller is its own task."""
        return self._runtime.current_task() is self._task

    def join(self, timeout: float | None) -> None:
        """Wait until its task has ended, at most `timeout` seconds."""
        assert self._task is not None
        self._task.join(None if timeout is None else min(timeout, WAIT_S_MAX))

    def end(self, timeout: float | None) -> list[ProducerRecord]:
        """Send what the closed accumulator has, within `timeout` seconds, and end. Returns the
        records that were given up, serialized, by partition. Any thread but its own."""
        self._network.wake_up()
        self.join(timeout)
        if self.is_alive:
            self._giving_up = True
            self._network.wake_up()
            self.join(GIVE_UP_S)
        if self.is_alive:
            return [r for batch in self._accumulator.take_all() for r in batch.records()]
        return self._unsent

    def take_identity(self, identity: Identity, *, restart: bool = False) -> None:
        """`restart`: number all records anew. With nothing in flight, in any thread."""
        if restart:
            self._accumulator.restart_sequences()
        self._identity = identity

    def end_soon(self) -> None:
        """Send the rest, then end. Takes no lock. Any thread."""
        self._accumulator.closed = True
        self._network.wake_up()

    def _begin_finish(self) -> None:
        if self.is_alive and self._accumulator.incomplete_count:
            self._is_finishing = True
            self._accumulator.close()
            self._network.wake_up()

    def _finish(self, timeout: float) -> None:
        if self._is_finishing and (unsent := self.end(timeout)):
            logger.error(
                "The program ended without closing its KafkaProducer: %s", not_sent(unsent)
            )

    # --------------------------------------------------------------------------------- rounds

    def _run(self) -> None:
        try:
            while not self._giving_up and not self._is_finished():
                self.run_once()
        except Exception:  # the thread's root: no thread may wait for it for ever
            logger.exception("Uncaught error in the producer's sender")
        self._accumulator.close()
        self._network.close()
        unsent = self._accumulator.take_all()
        self._unsent = [record for batch in unsent for record in batch.records()]
        error = ProducerClosed("the producer was closed before this was acknowledged")
        self._accumulator.complete(unsent, error=error)

    def _is_finished(self) -> bool:
        return self._accumulator.closed and not self._accumulator.incomplete_count

    def run_once(self) -> None:
        """One round. Waits for the network, for a batch to be due or for a wake-up."""
        now = self._runtime.monotonic()
        with self._accumulator.lock:
            ready = self._accumulator.ready(now)
            # Under the same lock: whoever adds a batch after this wakes the sender.
            self._accumulator.sender_waits = True
        if ready.has_leaderless and not self._metadata.is_wanted:
            self._metadata.request_update(self._accumulator.leaderless_topics())
        for broker in ready.leaders:
            # As many as may be in flight: until this thread gets the GIL again, after its next
            # wait for the network, a busy program may compute for a whole switch interval.
            address = (broker.host, broker.port)
            while self._network.is_ready(address, now) and self._send_to(broker, address, now):
                pass
        wait_s = min(ready.wait_s, self._ask_for_metadata(now), self._expire(now))
        if ready.leaders and now < self._ask_identity_at:
            wait_s = min(wait_s, self._ask_identity_at - now)
        for event in self._network.poll(wait_s):
            if isinstance(event, ClientResponse):
                self._handle_response(event)
            else:
                self._lost(event)

    def _send_to(self, broker: Broker, address: Address, now: float) -> bool:
        """Send one request with sendable batches to a leader whose connection is ready. Returns
        whether there may be more of them."""
        settings = self._settings
        form = produce_form(self._network.versions(address))
        if self._wants_identity:
            if self._must_wait_for_identity(form, address, now):
                return False
            if not form.gives_ids and self._settings.idempotence is Idempotence.REQUIRED:
                form = form._replace(unsupported=form.unsupported or NOT_IDEMPOTENT)
        identity = self._identity if form.magic == RECORDS else None
        with self._accumulator.lock:
            # Under the lock: numbers of what ends are missing, until there is another identity.
            is_over = self._transactions is not None and self._transactions.has_failed
            if not is_over:
                drained, has_more = self._accumulator.drain(
                    broker,
                    settings.max_request_bytes,
                    now,
                    form.magic,
                    takes_wrappers=form.takes_wrappers,
                    identity=identity,
                )
        if is_over:
            self._drop_unsent()
        if is_over or not drained:
            return False
        if form.unsupported is not None:
            for parts in drained:
                self._failed(parts, form.unsupported)
            return has_more
        # Outside the lock: a batch that nobody has compressed yet is compressed here.
        drained, sets = self._sets_of(drained, form)
        if not drained:
            return has_more
        batches: Batches = {parts[0].tp: parts for parts in drained}
        acks = (settings.plain if identity is None else settings.once).acks
        request = produce_request(
            dict(zip(batches, map(joined, sets), strict=True)),
            required_acks=acks,
            timeout_ms=settings.ack_timeout_ms,
            transactional_id=settings.transactional_id,
            version=form.version,
        )
        try:
            self._network.send(
                address,
                request,
                batches,
                now=now,
                deadline=now + settings.request_timeout_s,
                expects_response=acks != 0,
            )
            sizes = [list(map(len, some)) for some in sets]
            self.metrics.sent(zip(drained, sizes, strict=True), now)
        except ProtocolError as error:  # it cannot be encoded, and was not sent
            for parts in drained:
                self._failed(parts, error)
        return has_more

    @property
    def _wants_identity(self) -> bool:
        return self._settings.idempotence is not Idempotence.OFF and not self._has_no_identity

    def _must_wait_for_identity(self, form: ProduceForm, address: Address, now: float) -> bool:
        """Ask this broker for the identity, if the producer has none."""
        if not form.gives_ids or self._identity is not None:
            return False
        if not self._is_identity_asked and now >= self._ask_identity_at:
            self._is_identity_asked = True
            self._network.send(
                address,
                InitProducerIdRequest(None, INT_MAX),
                None,
                now=now,
                deadline=now + self._settings.request_timeout_s,
                expects_response=True,
            )
        return True

    def _take_identity(self, response: InitProducerIdResponse) -> None:
        self._is_identity_asked = False
        error = error_of(response.error_code, "a producer id")
        self._identity_error = None
        if error is None:
            self.take_identity(Identity(response.producer_id, response.producer_epoch))
        elif self._settings.idempotence is Idempotence.WANTED and not error.retriable:
            logger.warning("Retries may store records twice: %s", error)
            self._has_no_identity = True
        else:
            logger.info("%s", error)
            self._identity_error = error
            self._ask_identity_at = self._runtime.monotonic() + self._settings.backoff_s

    def _sets_of(
        self, drained: list[list[RecordBatch]], form: ProduceForm
    ) -> tuple[list[list[RecordBatch]], list[list[Buffer]]]:
        """The batches that this broker takes, and their sets; the others fail."""
        taken, sets = [], []
        for parts in drained:
            try:
                if parts[0].codec == compression.ZSTD and form.version < ZSTD_VERSION:
                    raise UnsupportedForMessageFormat(
                        f"{parts[0].tp}: its leader does not take zstd: brokers from 2.1 on do"
                    )
                sets.append([part.message_set(form.magic) for part in parts])
                taken.append(parts)
            except UnsupportedForMessageFormat as error:
                self._failed(parts, error)
        return taken, sets

    def _ask_for_metadata(self, now: float) -> float:
        """Request metadata if it is due; returns seconds until it will be."""
        if self._metadata_in_flight:
            return float("inf")
        due_in = self._metadata.due_in(now)
        if due_in > 0:
            return due_in
        address = self._network.least_loaded(self._metadata.addresses, now)
        if address is None:
            return float("inf")  # a connection is being opened, or `channels` has a timer
        if self._metadata.is_all_due(now):
            self._forget_idle_topics(now)
        topics = self._metadata.ask(now)
        if not topics:
            return float("inf")  # the waiting thread gave up; no topics would mean all topics
        self._metadata_in_flight = True
        self._network.send(
            address,
            MetadataRequest(topics),
            None,
            now=now,
            deadline=now + min(METADATA_TIMEOUT_S, self._settings.request_timeout_s),
            expects_response=True,
        )
        self._accumulator.new_magic = produce_form(self._network.versions(address)).magic
        return float("inf")

    def _forget_idle_topics(self, now: float) -> None:
        keep = self._metadata.awaited_topics
        idle = self._accumulator.forget_idle(now - TOPIC_EXPIRY_S, keep)
        if idle:
            self._forget(idle)
            self.metrics.forget(idle)

    def _expire(self, now: float) -> float:
        """Fail batches that have waited too long for a leader, a connection to it, or a producer
        id; returns seconds until the next check."""
        if now < self._expire_at:
            return self._expire_at - now
        settings = self._settings
        terms = settings.plain if self._identity is None else settings.once
        timeout_s = terms.delivery_s
        # delivery.timeout.ms includes all attempts; a wait for a leader begins with each.
        is_since_append = timeout_s < inf
        if not is_since_append:
            timeout_s = settings.request_timeout_s
        self._expire_at = now + min(1.0, timeout_s / 4)
        usable = set(filter(self._is_usable, self._metadata.cluster.brokers.values()))
        for batch in self._accumulator.take_overdue(
            now - timeout_s, usable, is_since_append=is_since_append
        ):
            ms, refusal = timeout_s * 1000, self._identity_error
            if refusal is None:
                text = f"{batch.tp}: no leader was reachable within {ms:.0f} ms"
            else:
                text = f"{batch.tp}: no broker gave a producer id within {ms:.0f} ms: {refusal}"
            self.metrics.failed([batch], now)
            self._end_failed([batch], RequestTimeout(text))
        return self._expire_at - now if self._accumulator.incomplete_count else float("inf")

    def _is_usable(self, broker: Broker) -> bool:
        """Whether a leader is connected, and needs no producer id that is missing."""
        address = broker.host, broker.port
        if not self._network.is_open(address):
            return False
        if self._identity is not None or not self._wants_identity:
            return True
        return not produce_form(self._network.versions(address)).gives_ids

    # ------------------------------------------------------------------------------ responses

    def _handle_response(self, received: ClientResponse) -> None:
        response, batches = received.response, received.sent.context
        if isinstance(response, MetadataResponse):
            self._metadata_in_flight = False
            self._metadata.update(response, self._runtime.monotonic())
            return
        if isinstance(response, InitProducerIdResponse):
            self._take_identity(response)
            return
        now = self._runtime.monotonic()
        self.metrics.on_response(
            now - (received.sent.deadline - self._settings.request_timeout_s), now
        )
        if response is None:
            for parts in batches.values():
                self._stored(parts, NO_OFFSET)
            return
        assert isinstance(response, ProduceResponse)
        results = produce_results(response)
        for tp, parts in batches.items():
            result = results.get(tp)
            if result is None:
                self._failed(parts, ProtocolError(f"the leader's response has no {tp}"))
            elif result.error_code == NO_ERROR:
                self._stored(parts, result.base_offset, result.log_append_time_ms)
            elif result.error_code == DuplicateSequence.code:
                self._stored(parts, NO_OFFSET)  # before the last five, whose offsets are known
            else:
                error = error_of(result.error_code, str(tp))
                assert error is not None
                self._failed(parts, error)

    def _lost(self, lost: LostRequests) -> None:
        """The connection is lost. The newest request is handled first, so that batches return to
        the front of their queues in the original order."""
        self._metadata.request_update()
        if not isinstance(self._metadata.failure, AuthenticationFailed):
            self._metadata.failure = lost.error
        for sent in reversed(lost.sent):
            self._lost_one(sent, lost.error if sent is lost.sent[0] else None)

    def _lost_one(self, sent: InFlightRequest, error: KafkaError | None) -> None:
        if sent.request is InitProducerIdRequest:
            self._is_identity_asked = False
            return
        if sent.context is None:
            self._metadata_in_flight = False
            return
        for parts in sent.context.values():
            self._failed(
                parts, error or ConnectionFailed("an earlier request closed the connection")
            )

    def _stored(
        self,
        parts: Sequence[RecordBatch],
        base_offset: int,
        log_append_time_ms: int = NO_TIMESTAMP,
    ) -> None:
        self._accumulator.complete(
            parts, base_offset, log_append_time_ms=log_append_time_ms, were_in_flight=True
        )

    def _failed(self, parts: Sequence[RecordBatch], error: KafkaError) -> None:
        """Retry where possible; complete the other batches with the error."""
        # In a transaction only the coordinator gives the next epoch.
        is_forgotten = self._transactions is not None and isinstance(error, UnknownProducerId)
        verdict = False if is_forgotten else self._accumulator.passes(parts[0], error)
        if needs_metadata(error):
            self._metadata.request_update([parts[0].tp.topic])
        if verdict and isinstance(error, UnsupportedForMessageFormat):
            logger.warning(
                "%s: retries may store records twice: its message format is older than 0.11",
                parts[0].tp,
            )
        passes = may_be_stored_later(error)
        now = self._runtime.monotonic()
        terms = self._settings.once if is_numbered(parts[0]) else self._settings.plain
        latest = now - terms.delivery_s
        if self._transactions is not None and self._transactions.has_failed:
            latest = inf
        again = [
            b
            for b in parts
            if b.created > latest
            and (passes and b.attempts < terms.retries if verdict is None else verdict)
        ]
        if len(parts) == 1 and is_divisible(parts[0]) and isinstance(error, TOO_LARGE):
            logger.info("%s: %s; its records are sent in halves", parts[0].tp, error)
            self._accumulator.split(parts[0])
            return
        is_refusal = isinstance(error, ApiError) and not error.retriable
        # See the module: each goes once more by itself, which is no retry.
        if is_refusal and len(again) < len(parts) > 1:
            for batch in parts:
                batch.alone = True
            self._accumulator.put_back(parts)
            return
        retry_at = now + self._settings.backoff_s
        for batch in again:
            batch.attempts += 1
            batch.retry_at = retry_at
        logger.log(
            logging.INFO if again else logging.WARNING,
            "%s: %s; %d of %d batches are sent again",
            *(parts[0].tp, error, len(again), len(parts)),
        )
        if again:
            self.metrics.retried(again, now)
            self._accumulator.put_back(again)
        ended = [batch for batch in parts if batch not in again]
        self.metrics.failed(ended, now)
        self._end_failed(ended, error, were_in_flight=not again)

    def _end_failed(
        self, ended: Sequence[RecordBatch], error: KafkaError, *, were_in_flight: bool = False
    ) -> None:
        """Complete batches with the error, which fails their transaction."""
        if ended and self._transactions is not None:
            self._transactions.fail(error)  # first: a commit may wait for these batches alone
        self._accumulator.complete(ended, error=error, were_in_flight=were_in_flight)
        if ended and self._transactions is not None:
            self._drop_unsent()

    def _drop_unsent(self) -> None:
        """None of the batches of a failed transaction that are not sent will be."""
        left = FailedTransaction("an earlier part of the transaction failed, or it was aborted")
        self._accumulator.complete(self._accumulator.take_unsent(), error=left)
