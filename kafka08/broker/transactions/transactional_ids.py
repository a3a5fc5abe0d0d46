"""TransactionalIds: those of one partition of `__transaction_state`, on its leader. Pure.

Each event changes the state first and returns the actions to execute, in order. What has to happen
outside (an append, a request to a leader) comes back as an event: `appended`, `marker_result`.

    Append        append the record with acks -1, wait at most `wait_ms`, then call `appended`
    Respond       the response to a request
    SendMarkers   send the marker to the leaders of the partitions, in `delay_ms`, and call
                  `marker_result` with each answer; 0 for a partition that does not exist any more

A coordinator that no longer leads the partition drops the object; its appends are refused by epoch,
and the next leader sends the markers of all PREPARE states again. Source:
kafka.coordinator.transaction.TransactionCoordinator, TransactionStateManager,
TransactionMarkerChannelManager 0.11.0.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from kafka08.broker.transactions.marker_codes import (
    COORDINATOR_EPOCH_MAX,
    DONE,
    FENCED,
    PASSING,
    pause_ms,
)
from kafka08.broker.transactions.transaction import (
    EPOCH_FENCED,
    PREPARE_COMMIT,
    PREPARED,
    Change,
    Transaction,
)
from kafka08.errors import (
    NO_ERROR,
    ConcurrentTransactions,
    ConsumerCoordinatorNotAvailable,
    InvalidRequest,
    InvalidTransactionTimeout,
    MessageSetSizeTooLarge,
    MessageSizeTooLarge,
    NotCoordinatorForConsumer,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderForPartition,
    RequestTimedOut,
    TransactionCoordinatorFenced,
    UnknownError,
    UnknownTopicOrPartition,
)
from kafka08.log.producers import TransactionEnd
from kafka08.protocol.transaction_records import (
    TransactionRecord,
    TransactionState,
    decode_key,
    decode_transaction,
    encode_key,
    encode_transaction,
)
from kafka08.protocol.types import Buffer
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

NO_PRODUCER: Final = -1
NO_WAIT_MS: Final = 0
_CODES_OF_APPEND: Final = {
    **dict.fromkeys(
        (
            UnknownTopicOrPartition.code,
            RequestTimedOut.code,
            NotEnoughReplicas.code,
            NotEnoughReplicasAfterAppend.code,
        ),
        ConsumerCoordinatorNotAvailable.code,
    ),
    NotLeaderForPartition.code: NotCoordinatorForConsumer.code,
    MessageSizeTooLarge.code: UnknownError.code,
    MessageSetSizeTooLarge.code: UnknownError.code,
}


class Outcome(NamedTuple):
    """The response to a request; producer id and epoch for InitProducerId alone."""

    code: int
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER


Reply: TypeAlias = Callable[[Outcome], object]


@dataclass(frozen=True, slots=True)
class Respond:
    reply: Reply
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Append:
    """`reply` None: no client waits. `then`: the code for the client once it is acknowledged.
    `tries`: of the same record before. ProtocolError for a key or a value that is too long, whose
    append is refused with -1."""

    transactional_id: str
    change: Change
    wait_ms: int
    reply: Reply | None = None
    then: int = NO_ERROR
    delay_ms: int = NO_WAIT_MS
    tries: int = 0

    @property
    def key(self) -> bytes:
        return encode_key(self.transactional_id)

    @property
    def value(self) -> bytes | None:
        return None if self.change.record is None else encode_transaction(self.change.record)


@dataclass(frozen=True, slots=True)
class SendMarkers:
    transactional_id: str
    end: TransactionEnd
    partitions: tuple[TopicPartition, ...]
    delay_ms: int = NO_WAIT_MS
    tries: int = 1


Action: TypeAlias = Respond | Append | SendMarkers
Actions: TypeAlias = list[Action]


def refuse_init(transactional_id: str, timeout_ms: int, timeout_max_ms: int) -> int:
    """The code of an InitProducerId that no coordinator takes: 42 without an id, 50 for a timeout
    out of bounds."""
    if not transactional_id:
        return InvalidRequest.code
    return NO_ERROR if 0 < timeout_ms <= timeout_max_ms else InvalidTransactionTimeout.code


class TransactionalIds:
    """coordinator_epoch   the leader epoch of the partition, which markers have"""

    def __init__(self, coordinator_epoch: int) -> None:
        self.coordinator_epoch = coordinator_epoch
        self._transactions: dict[str, Transaction] = {}

    def __len__(self) -> int:
        return len(self._transactions)

    def record_of(self, transactional_id: str) -> TransactionRecord | None:
        """The acknowledged state of an id; None if it is unknown."""
        found = self._transactions.get(transactional_id)
        return None if found is None else found.record

    def states(self) -> Iterator[TransactionState]:
        """The acknowledged state of each id."""
        return (one.record.state for one in self._transactions.values() if one.record is not None)

    @classmethod
    def loaded(
        cls, coordinator_epoch: int, records: Iterable[tuple[Buffer, Buffer | None]]
    ) -> TransactionalIds:
        """Those of a partition's log, key and value of each record in its order. ProtocolError for
        one that cannot be read: then nothing may be answered from a part of the log."""
        found = cls(coordinator_epoch)
        for key, value in records:
            transactional_id = decode_key(key)
            if value is None:
                found._transactions.pop(transactional_id, None)
            else:
                found._transactions[transactional_id] = Transaction(decode_transaction(value))
        return found

    def resume(self, now_ms: int) -> Actions:
        """After `loaded`: what the former coordinator has decided is completed."""
        actions: Actions = []
        for transactional_id, transaction in self._transactions.items():
            if transaction.record is not None and transaction.record.state in PREPARED:
                actions += self._complete(transactional_id, transaction, now_ms)
        return actions

    # Requests

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Whether `init` needs a new producer id."""
        found = self._transactions.get(transactional_id)
        return found is None or found.needs_producer_id

    def init(
        self,
        transactional_id: str,
        timeout_ms: int,
        now_ms: int,
        reply: Reply,
        new_id: int | None = None,
    ) -> Actions:
        """InitProducerId that `refuse_init` lets pass."""
        found = self._transactions.get(transactional_id, Transaction())
        if found.pending is None and found.needs_producer_id and new_id is None:
            # It became so while the request waited; the client tries again.
            return [Respond(reply, Outcome(ConcurrentTransactions.code))]
        change = found.init(timeout_ms, now_ms, new_id)
        then = NO_ERROR
        if isinstance(change, Change):
            self._transactions[transactional_id] = found
            if change.record is not None and change.record.state in PREPARED:
                then = ConcurrentTransactions.code  # it fences
        return self._begin(transactional_id, change, reply, then)

    def change(
        self,
        transactional_id: str,
        reply: Reply,
        change: Callable[[Transaction], int | Change],
    ) -> Actions:
        """Change an id that InitProducerId has made; an unknown one refuses it."""
        found = self._transactions.get(transactional_id, Transaction())
        return self._begin(transactional_id, change(found), reply)

    def _begin(
        self,
        transactional_id: str,
        change: int | Change,
        reply: Reply,
        then: int = NO_ERROR,
    ) -> Actions:
        if not isinstance(change, Change):
            return [Respond(reply, Outcome(change))]
        assert change.record is not None
        return [Append(transactional_id, change, change.record.timeout_ms, reply, then)]

    # Time

    def abort_timed_out(self, now_ms: int) -> Actions:
        """Abort the transactions that are open for longer than their producers allow."""
        actions: Actions = []
        for transactional_id, found in self._transactions.items():
            if found.has_timed_out(now_ms):
                change = found.abort_timed_out(now_ms)
                assert change.record is not None
                actions.append(Append(transactional_id, change, change.record.timeout_ms))
        return actions

    def expire(self, now_ms: int, after_ms: int, wait_ms: int) -> Actions:
        """Forget the ids without a transaction whose last change is `after_ms` ago. One that cannot
        be forgotten now keeps no other."""
        return [
            Append(transactional_id, change, wait_ms)
            for transactional_id, found in self._transactions.items()
            if (change := found.expire(now_ms, after_ms)) is not None
        ]

    # What was done

    def appended(self, append: Append, code: int, now_ms: int) -> Actions:
        """The record of `append` is acknowledged, or refused with `code`."""
        found = self._transactions.get(append.transactional_id)
        if found is None or found.pending is not append.change:
            return []
        if code != NO_ERROR:
            return self._not_appended(append, found, code)
        found.appended(append.change)
        record = found.record
        if record is None:
            del self._transactions[append.transactional_id]
            return []
        actions: Actions = []
        if append.reply is not None:
            outcome = Outcome(append.then)
            if append.then == NO_ERROR:
                outcome = Outcome(NO_ERROR, record.producer_id, record.producer_epoch)
            actions.append(Respond(append.reply, outcome))
        if record.state in PREPARED:
            actions += self._complete(append.transactional_id, found, now_ms)
        return actions

    def _not_appended(self, append: Append, found: Transaction, code: int) -> Actions:
        if found.record is not None and found.record.state in PREPARED:
            # It was decided: the note of it is missing.
            tries = append.tries + 1
            return [replace(append, delay_ms=pause_ms(tries), tries=tries)]
        found.not_appended(append.change)
        if found.record is None:
            del self._transactions[append.transactional_id]
        if append.reply is None:
            return []
        return [Respond(append.reply, Outcome(_CODES_OF_APPEND.get(code, code)))]

    def marker_result(
        self, sent: SendMarkers, partition: TopicPartition, code: int, now_ms: int
    ) -> Actions:
        """The answer of a partition's leader to `sent`."""
        found = self._transactions.get(sent.transactional_id)
        if found is None or partition not in found.unmarked or not self._is_of(sent, found):
            return []
        if code in DONE:
            change = found.marked(partition, now_ms)
            return [] if change is None else [self._append_prepared(sent.transactional_id, change)]
        if code in FENCED and sent.end.producer_epoch < EPOCH_FENCED:
            return self._raise_epoch(sent.transactional_id, found, partition, code, now_ms)
        end = sent.end
        if code == TransactionCoordinatorFenced.code:
            end = end._replace(coordinator_epoch=COORDINATOR_EPOCH_MAX)
        elif code not in PASSING:
            logger.warning(
                "The marker that ends the transaction of %r in %s has error %d; it is sent again",
                sent.transactional_id,
                partition,
                code,
            )
        tries = sent.tries + 1
        delay_ms = pause_ms(sent.tries)
        return [replace(sent, end=end, partitions=(partition,), delay_ms=delay_ms, tries=tries)]

    def _raise_epoch(
        self,
        transactional_id: str,
        found: Transaction,
        partition: TopicPartition,
        code: int,
        now_ms: int,
    ) -> Actions:
        """Store the decision with the epoch that every leader takes; its markers follow."""
        change = found.raise_epoch(now_ms)
        if change is None:
            return []  # another partition has answered so
        logger.warning(
            "The marker that ends the transaction of %r in %s has error %d: its leader knows an "
            "epoch that this coordinator has not given. The transaction ends with epoch %d, and "
            "its producer must begin again",
            transactional_id,
            partition,
            code,
            EPOCH_FENCED,
        )
        return [self._append_prepared(transactional_id, change)]

    @staticmethod
    def _is_of(sent: SendMarkers, found: Transaction) -> bool:
        """Whether a marker is of the transaction that is to be completed."""
        record = found.record
        return (
            record is not None
            and record.state in PREPARED
            and (record.producer_id, record.producer_epoch, record.state is PREPARE_COMMIT)
            == sent.end[:3]
        )

    def _complete(self, transactional_id: str, found: Transaction, now_ms: int) -> Actions:
        """Send the markers of a transaction that is decided; without partitions it is complete."""
        record = found.record
        assert record is not None
        change = found.complete(now_ms)
        if change is not None:
            return [self._append_prepared(transactional_id, change)]
        return [
            SendMarkers(
                transactional_id,
                TransactionEnd(
                    record.producer_id,
                    record.producer_epoch,
                    record.state is PREPARE_COMMIT,
                    self.coordinator_epoch,
                ),
                tuple(sorted(found.unmarked)),
            )
        ]

    @staticmethod
    def _append_prepared(transactional_id: str, change: Change) -> Append:
        """Append a change of a transaction in a PREPARE state, for which no client waits."""
        assert change.record is not None
        return Append(transactional_id, change, change.record.timeout_ms)
