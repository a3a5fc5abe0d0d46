"""Transactions: what a transactional producer says to coordinators, in its user's threads.

    NEW ── init ──> READY ── begin ──> OPEN ── end ──> READY
                      ^                  │ a batch failed
                      └──── end ─────────v
                       (abort)         FAILED            fenced: FENCED, from any state

The sender knows nothing of coordinators: before a partition gets its first batch of a transaction,
`enter` has announced it. Requests are repeated until `max.block.ms` is over; the coordinator gives
the same answer again. After a failure `end` asks for the next epoch of the producer, with which
its numbers begin anew; it ends the transaction first, which a fenced producer cannot.

Source: org.apache.kafka.clients.producer.internals.TransactionManager 0.11.0.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import coordinator_of
from kafka08.client.retry import PASSING, RetryPolicy, is_retriable, retry
from kafka08.errors import (
    ConsumerCoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    NotCoordinatorForConsumer,
    OperationNotAttempted,
    ProducerFenced,
    check,
)
from kafka08.producer.idempotence import Identity
from kafka08.protocol.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka08.protocol.add_partitions_to_txn import AddPartitionsToTxnRequest, TxnTopic
from kafka08.protocol.consumer_metadata import TRANSACTION, ConsumerMetadataRequest
from kafka08.protocol.end_txn import EndTxnRequest
from kafka08.protocol.grouping import by_partition, by_topic
from kafka08.protocol.init_producer_id import InitProducerIdRequest
from kafka08.protocol.txn_offset_commit import (
    TxnOffset,
    TxnOffsetCommitRequest,
    TxnOffsetTopic,
)
from kafka08.protocol.types import Request
from kafka08.runtime import Runtime
from kafka08.structs import Broker, OffsetAndMetadata, TopicPartition

TRIES: Final = RetryPolicy(tries=36_000, backoff_ms=20)
"""The time that a call may take ends them."""
MOVED: Final = (*PASSING, ConsumerCoordinatorNotAvailable, NotCoordinatorForConsumer)
FENCED: Final = (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    ProducerFenced,
)
"""Errors after which the producer can do nothing any more."""


class State(Enum):
    NEW = "new: init_transactions comes first"
    READY = "outside of a transaction: begin_transaction comes first"
    OPEN = "in a transaction"
    FAILED = "in a transaction that has failed: abort it"
    FENCED = "fenced"


class Transactions:
    """See the module. Calls of several threads wait for each other, except `fail` and `enter` for
    partitions that are known.

    on_identity   called with a new identity, with which numbers begin anew
    """

    def __init__(
        self,
        transactional_id: str,
        timeout_ms: int,
        cluster: ClusterClient,
        *,
        block_s: float,
        on_identity: Callable[[Identity], None],
        runtime: Runtime,
    ) -> None:
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._cluster = cluster
        self._block_s = block_s
        self._on_identity = on_identity
        self._runtime = runtime
        self._lock = runtime.rlock()
        self._state = State.NEW
        self._error: KafkaError | None = None
        self._identity = Identity(-1, -1)
        self._coordinator: Broker | None = None
        self._partitions: set[TopicPartition] = set()
        self._has_offsets = False

    def init(self) -> None:
        """Get an identity, which fences any former producer of this id; its open transaction is
        aborted."""
        with self._lock:
            self._expect(State.NEW, State.READY)
            self._ask_identity()
            self._state = State.READY

    def begin(self) -> None:
        with self._lock:
            self._expect(State.READY)
            self._state = State.OPEN

    def enter(self, partitions: Iterable[TopicPartition]) -> None:
        """These get records of the transaction."""
        new = {tp for tp in partitions if tp not in self._partitions}
        if self._state is State.OPEN and not new:
            return
        with self._lock:
            self._expect(State.OPEN)
            topics = [
                TxnTopic(topic, [number for number, _ in items])
                for topic, items in by_topic(dict.fromkeys(new)).items()
            ]
            request = AddPartitionsToTxnRequest(self._id, *self._identity, topics)
            self._ask(request, codes_of_partitions)
            self._partitions |= new

    def send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: str) -> None:
        """Commit offsets of a group with the transaction."""
        with self._lock:
            self._expect(State.OPEN)
            self._ask(AddOffsetsToTxnRequest(self._id, *self._identity, group), code_of_all)
            self._has_offsets = True
            topics = [
                TxnOffsetTopic(topic, [TxnOffset(n, o.offset, o.metadata) for n, o in items])
                for topic, items in by_topic(offsets).items()
            ]
            request = TxnOffsetCommitRequest(self._id, group, *self._identity, topics)

            def commit(connection: Any) -> None:
                for code in codes_of_partitions(connection.send(request)):
                    check(code, f"offsets of group {group} in a transaction")

            with self._noting_errors():
                self._cluster.ask_coordinator(
                    group, commit, policy=TRIES, give_up_at=self._give_up_at()
                )

    def end(self, *, commits: bool) -> None:
        """Commit or abort. The error of a batch, instead of a commit without it."""
        with self._lock:
            if commits:
                self._expect(State.OPEN)
            else:
                self._expect(State.OPEN, State.FAILED)
            if self._partitions or self._has_offsets:
                self._ask(EndTxnRequest(self._id, *self._identity, commits), code_of_all)
            if self._state is State.FAILED:
                self._ask_identity()
            self._partitions.clear()
            self._has_offsets = False
            self._state, self._error = State.READY, None

    def fail(self, error: KafkaError) -> None:
        """A batch was not stored, or perhaps not. Never waits."""
        if isinstance(error, FENCED):
            self._fence(error)
        elif self._state is State.OPEN:
            self._error = error
            self._state = State.FAILED

    @property
    def has_failed(self) -> bool:
        """Whether no batch of the transaction may be sent any more."""
        return self._state in (State.FAILED, State.FENCED)

    def _fence(self, error: KafkaError) -> None:
        self._error = ProducerFenced(
            f"transactional.id {self._id}: {error}. Another producer of this name has begun, or a "
            "transaction took longer than transaction.timeout.ms: close this producer"
        )
        self._state = State.FENCED

    def _expect(self, *states: State) -> None:
        if self._state in states:
            return
        if self._error is not None:
            raise self._error.with_traceback(None)
        raise InvalidTxnState(f"transactional.id {self._id}: {self._state.value}")

    def _ask_identity(self) -> None:
        request = InitProducerIdRequest(self._id, self._timeout_ms)
        response = self._ask(request, code_of_all)
        self._identity = Identity(response.producer_id, response.producer_epoch)
        self._on_identity(self._identity)

    def _ask(self, request: Request, codes: Callable[[Any], Iterable[int]]) -> Any:
        """The coordinator's response without an error."""

        def attempt() -> Any:
            broker = self._find_coordinator()
            try:
                response = self._cluster.send(broker, request)
                for code in codes(response):
                    check(code, f"{type(request).__name__} of {self._id} at {broker}")
            except MOVED:
                self._coordinator = None
                raise
            return response

        with self._noting_errors():
            return retry(
                attempt,
                TRIES,
                self._runtime,
                what=f"transactional.id {self._id}",
                passes=is_retriable,
                give_up_at=self._give_up_at(),
            )

    @contextmanager
    def _noting_errors(self) -> Iterator[None]:
        """For requests: an error that remains ends the transaction, or the producer."""
        try:
            yield
        except KafkaError as error:
            self.fail(error)
            if isinstance(error, FENCED) and self._error is not None:
                raise self._error from error
            raise

    def _give_up_at(self) -> float:
        return self._runtime.monotonic() + self._block_s

    def _find_coordinator(self) -> Broker:
        if self._coordinator is None:
            request = ConsumerMetadataRequest(self._id, TRANSACTION, version=1)
            self._coordinator = coordinator_of(self._id, self._cluster.ask_any(request, (1, 1)))
        return self._coordinator


def code_of_all(response: Any) -> list[int]:
    return [response.error_code]


def codes_of_partitions(response: Any) -> list[int]:
    """Those of partitions, the telling ones first: the others say "not attempted"."""
    codes = {tp: one.error_code for tp, one in by_partition(response.topics).items()}
    return sorted(codes.values(), key=lambda code: code == OperationNotAttempted.code)
