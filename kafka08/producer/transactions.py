"""Transactions: what a transactional producer says to coordinators, in its user's threads.

    NEW ── init ──> READY ── begin ──> OPEN ── commit ──> COMMITTING ──> READY
                      ^                  │ a batch failed      │
                      │                  v                     │
                      └─ ABORTING <── FAILED <─────────────────┘   fenced: FENCED, from any state

    call           in
    init           NEW, READY
    begin          READY
    enter (send)   OPEN
    send_offsets   OPEN
    commit         OPEN, and COMMITTING after a commit whose outcome is unknown
    abort          OPEN, FAILED, and ABORTING after an abort whose outcome is unknown

Any other raises InvalidTxnState, or the error that the transaction or the producer ended with. A
call that ends a transaction keeps all others out until it returns: first no partition may get a
batch any more, then what was accepted is sent, or dropped, and last comes EndTxn.

The sender knows nothing of coordinators: before a partition gets its first batch of a transaction,
`enter` has announced it. Requests are repeated until `max.block.ms` is over; the coordinator gives
the same answer again. After a failure the next epoch of the producer is asked for, with which its
numbers begin anew; the transaction is ended first, which a fenced producer cannot. Any other epoch
than the next one was given after another producer's, or after a response that was lost: then the
producer ends as a fenced one does.

Source: org.apache.kafka.clients.producer.internals.TransactionManager 0.11.0.3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final

from kafka08.client.cluster import ClusterClient, send_at_version
from kafka08.client.retry import is_retriable
from kafka08.client.transactional_id import TRIES, TransactionalId, codes_of_partitions
from kafka08.errors import (
    CommitFailed,
    FencedInstanceId,
    IllegalGeneration,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    ProducerClosed,
    ProducerFenced,
    UnknownMemberId,
    error_of,
)
from kafka08.producer.idempotence import Identity
from kafka08.protocol.grouping import by_topic
from kafka08.protocol.txn_offset_commit import (
    GENERATION_VERSION,
    TxnOffset,
    TxnOffsetCommitRequest,
    TxnOffsetTopic,
)
from kafka08.runtime import ClientRuntime
from kafka08.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

FENCED: Final = (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    ProducerFenced,
)
"""Errors after which the producer can do nothing any more."""
MEMBER_REFUSED: Final = (IllegalGeneration, UnknownMemberId, FencedInstanceId)
"""Errors for offsets of a member without which the group continues."""


class State(Enum):
    NEW = "new: init_transactions comes first"
    READY = "outside of a transaction: begin_transaction comes first"
    OPEN = "in a transaction"
    COMMITTING = "in a transaction that may be committed: call commit_transaction again"
    ABORTING = "in a transaction that may be aborted: call abort_transaction again"
    FAILED = "in a transaction that has failed: abort it"
    FENCED = "fenced"
    CLOSED = "closed"


_STATES_OF_COMMIT: Final = (State.OPEN, State.COMMITTING)
_STATES_OF_ABORT: Final = (State.OPEN, State.FAILED, State.ABORTING)
IN_TRANSACTION: Final = (State.OPEN, State.COMMITTING, State.ABORTING, State.FAILED)


class Transactions:
    """See the module. Calls of several threads wait for each other, except `fail` and `enter` for
    partitions that are known. One that comes while another ends the transaction is refused.

    on_identity     called with a new identity, with which numbers begin anew
    on_partitions   called with the partitions that may get batches from now on
    """

    def __init__(
        self,
        transactional_id: str,
        timeout_ms: int,
        cluster: ClusterClient,
        *,
        block_s: float,
        on_identity: Callable[[Identity], None],
        on_partitions: Callable[[Collection[TopicPartition]], None],
        runtime: ClientRuntime,
    ) -> None:
        self._id = transactional_id
        self._coordinator = TransactionalId(transactional_id, cluster, runtime)
        self._timeout_ms = timeout_ms
        self._cluster = cluster
        self._block_s = block_s
        self._on_identity = on_identity
        self._on_partitions = on_partitions
        self._runtime = runtime
        self._lock = runtime.rlock()
        self._state = State.NEW
        self._error: KafkaError | None = None
        self._identity = Identity(-1, -1)
        self._partitions: frozenset[TopicPartition] = frozenset()
        self._has_offsets = False
        self._end_lock = runtime.lock()
        """Held by the call that ends the transaction."""
        self._is_ending = False
        self._needs_identity = False
        """Numbers are missing."""

    def init(self) -> None:
        """Get an identity, which fences any former producer of this id; its open transaction is
        aborted."""
        with self._calling(State.NEW, State.READY):
            self._ask_identity()
            self._state = State.READY

    def begin(self) -> None:
        with self._calling(State.READY):
            self._state = State.OPEN

    def enter(self, partitions: Iterable[TopicPartition]) -> None:
        """These get records of the transaction."""
        new = {tp for tp in partitions if tp not in self._partitions}
        if self._state is State.OPEN and not new:
            return
        with self._calling(State.OPEN):
            with self._noting_errors():
                self._coordinator.add_partitions(self._identity, new, self._give_up_at())
            self._partitions |= new
            self._on_partitions(self._partitions)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], member: ConsumerGroupMetadata
    ) -> None:
        """Commit offsets of a group with the transaction. CommitFailed if the group continues
        without this member."""
        group = member.group_id
        with self._calling(State.OPEN):
            with self._noting_errors():
                self._coordinator.add_offsets(self._identity, group, self._give_up_at())
            self._has_offsets = True
            topics = [
                TxnOffsetTopic(
                    topic, [TxnOffset(n, o.offset, o.metadata, o.leader_epoch) for n, o in items]
                )
                for topic, items in by_topic(offsets).items()
            ]
            request = TxnOffsetCommitRequest(
                self._id,
                group,
                *self._identity,
                topics,
                member.generation_id,
                member.member_id,
                member.group_instance_id,
            )

            def commit(connection: Any) -> None:
                response = send_at_version(connection, request, (0, GENERATION_VERSION))
                for code in codes_of_partitions(response):
                    error = error_of(code, f"offsets of group {group} in a transaction")
                    if isinstance(error, MEMBER_REFUSED):
                        raise not_committed(group, error) from error
                    if error is not None:
                        raise error

            with self._noting_errors():
                self._cluster.ask_coordinator(
                    group, commit, policy=TRIES, give_up_at=self._give_up_at()
                )

    @contextmanager
    def ending(self, *, commits: bool) -> Iterator[None]:
        """A block that sends or drops all that was accepted, then the commit or the abort. The
        error of a batch, instead of a commit without it. If the block raises, the transaction is as
        before."""
        states = _STATES_OF_COMMIT if commits else _STATES_OF_ABORT
        with self._calling(*states):
            former = self._begin_end(commits)
        try:
            yield
        except BaseException:
            with self._lock:
                self._undo(former)
                self._let_others()
            raise
        with self._lock:
            try:
                self._end(commits)
            finally:
                self._let_others()

    def _let_others(self) -> None:
        self._is_ending = False
        self._end_lock.release()

    def _begin_end(self, commits: bool) -> State:
        is_free = self._end_lock.acquire(blocking=False)
        assert is_free, "another call ends the transaction"
        former, self._is_ending = self._state, True
        self._state = State.COMMITTING if commits else State.ABORTING
        self._on_partitions(())
        return former

    def _undo(self, former: State) -> None:
        if self._state in (State.FENCED, State.CLOSED):
            return
        self._state = former if self._error is None else State.FAILED
        if former is State.OPEN:
            self._on_partitions(self._partitions)

    def _end(self, commits: bool) -> None:
        if self._state is State.FENCED or (commits and self._error is not None):
            assert self._error is not None
            if self._state is not State.FENCED:
                self._state = State.FAILED
            raise self._error.with_traceback(None)
        if self._partitions or self._has_offsets:
            with self._noting_errors():
                self._coordinator.end(self._identity, self._give_up_at(), commits=commits)
        self._partitions, self._has_offsets = frozenset(), False
        if self._needs_identity:
            self._ask_identity(self._identity)
        self._state, self._error, self._needs_identity = State.READY, None, False

    def fail(self, error: KafkaError) -> None:
        """A batch was not stored, or perhaps not. Never waits."""
        if isinstance(error, FENCED):
            self._fence(error)
        elif self._state in IN_TRANSACTION:
            self._needs_identity = True
            self._error = self._error or error
            if self._state is State.OPEN:
                self._state = State.FAILED

    def refuse(self, error: KafkaError) -> None:
        """A record was not accepted: the transaction cannot be committed without it. While another
        call ends the transaction, it was of none. Never waits."""
        if self._state is State.OPEN:
            self._error, self._state = error, State.FAILED

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open, and no call ends it."""
        return self._state in _STATES_OF_ABORT and not self._is_ending

    def settle(self, timeout: float | None) -> bool:
        """Wait for a call that ends the transaction, and let no request take longer than `timeout`
        seconds from now on. Returns whether a transaction is open."""
        if timeout is not None:
            self._block_s = min(self._block_s, timeout)
        if self._end_lock.acquire(timeout=-1 if timeout is None else timeout):
            self._end_lock.release()
        return self.is_open

    @property
    def has_failed(self) -> bool:
        """Whether no batch of the transaction may be sent any more."""
        return self._error is not None

    def _fence(self, error: KafkaError) -> None:
        self._error = ProducerFenced(
            f"transactional.id {self._id}: {error}. Another producer of this name has begun, or a "
            "transaction took longer than transaction.timeout.ms: close this producer"
        )
        self._state = State.FENCED

    def close(self) -> None:
        """Every call raises ProducerClosed from now on."""
        with self._lock:
            self._state, self._error = State.CLOSED, ProducerClosed("the producer is closed")

    @contextmanager
    def _calling(self, *states: State) -> Iterator[None]:
        """A call in one of these states, alone. While another ends the transaction it is refused:
        if it waited, it would be of the next one."""
        self._refuse_while_ending()
        with self._lock:
            self._refuse_while_ending()
            self._expect(*states)
            yield

    def _refuse_while_ending(self) -> None:
        if self._is_ending:
            raise InvalidTxnState(
                f"transactional.id {self._id}: another call is committing or aborting its "
                "transaction; wait for it"
            )

    def _expect(self, *states: State) -> None:
        if self._state in states:
            return
        if self._error is not None:
            raise self._error.with_traceback(None)
        raise InvalidTxnState(f"transactional.id {self._id}: {self._state.value}")

    def _ask_identity(self, former: Identity | None = None) -> None:
        """Get an identity; `former`: the next one of this producer, which goes on."""
        with self._noting_errors():
            given = Identity(*self._coordinator.init(self._timeout_ms, self._give_up_at()))
            if former is not None and given != Identity(former.producer_id, former.epoch + 1):
                # The request does not say who asks: a successor would be fenced, not this one.
                raise InvalidProducerEpoch(
                    f"its next epoch is {given.epoch}, behind {former.epoch}"
                )
        self._identity = given
        self._on_identity(given)

    @contextmanager
    def _noting_errors(self) -> Iterator[None]:
        """For requests: an error that remains ends the transaction, or the producer. An end whose
        outcome is unknown can be asked for again."""
        try:
            yield
        except KafkaError as error:
            if not (self._is_ending and is_retriable(error)):
                self.fail(error)
                if self._state in (State.COMMITTING, State.ABORTING):
                    self._state = State.FAILED
            if isinstance(error, FENCED) and self._error is not None:
                raise self._error from error
            raise

    def _give_up_at(self) -> float:
        return self._runtime.monotonic() + self._block_s


def not_committed(group: str, error: KafkaError) -> CommitFailed:
    """The error for offsets of a member without which the group continues."""
    return CommitFailed(
        f"group {group} continues without the member whose offsets these are ({error}): they were "
        "not committed. Others read the messages again: abort the transaction, and poll"
    )
