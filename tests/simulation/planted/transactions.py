"""Planted defects of transactions: coordinators, markers, what readers see, and their producers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from kafka08.broker.groups.offset_cache import OffsetCache
from kafka08.broker.replica.partition import Partition
from kafka08.broker.requests.fetch_call import FetchCall
from kafka08.broker.transactions.marker_sender import MarkerSender
from kafka08.broker.transactions.transaction import Change, Transaction
from kafka08.broker.transactions.transactional_ids import Actions, SendMarkers, TransactionalIds
from kafka08.errors import InvalidProducerEpoch
from kafka08.log.aborted_transactions import AbortedTransaction
from kafka08.log.producers import Producers
from kafka08.log.transaction_index import TransactionIndex
from kafka08.simulation.plan import Fault
from kafka08.structs import TopicPartition
from tests.simulation.planted.defect import (
    PLAIN,
    Needs,
    Patch,
    any_plan,
    planted,
    replicated,
)

WRITING = {**PLAIN, "transactions": 2, "pause_seconds": 0.1}
"""Settings of runs with transactions, and little else."""


def transactional(
    name: str,
    origin: str,
    verdict: str,
    kinds: tuple[Fault, ...],
    *,
    seed: int,
    needs: Needs = any_plan,
    **settings: Any,
) -> Callable[[Patch], Patch]:
    """Add the patch to the list, for runs with transactions."""
    return planted(
        name,
        origin,
        verdict,
        kinds,
        seed=seed,
        needs=needs,
        settings={**WRITING, **settings},
        has_records=True,
    )


@transactional("readers of committed messages read to the HW", "LSO", "aborted", (), seed=0)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "last_stable_offset", property(lambda self: self.high_watermark))


@transactional("an abort marker has no index entry", "aborted index", "aborted", (), seed=0)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionIndex, "append", lambda _self, _entry: None)


@transactional(
    "the index entry of an aborted transaction begins at its marker",
    "aborted index",
    "aborted",
    (),
    seed=0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    append = TransactionIndex.append

    def append_late(self: TransactionIndex, entry: AbortedTransaction) -> None:
        append(self, entry._replace(first_offset=entry.last_offset))

    patch.setattr(TransactionIndex, "append", append_late)


@transactional("an abort is written as a commit", "markers", "aborted", (), seed=0)
def _(patch: pytest.MonkeyPatch) -> None:
    send = MarkerSender.send

    def send_commit(self: MarkerSender, sent: SendMarkers, done: Any) -> None:
        send(self, replace(sent, end=sent.end._replace(commits=True)), done)

    patch.setattr(MarkerSender, "send", send_commit)


@transactional(
    "the transaction of a killed producer stays open",
    "timeouts",
    "stable offset",
    (Fault.KILL,),
    seed=11,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transaction, "has_timed_out", lambda *_: False)


@transactional(
    "a new coordinator does not complete what was decided",
    "failover",
    "transactions",
    (Fault.KILL,),
    seed=3,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionalIds, "resume", lambda *_: [])


@transactional(
    "a marker that was refused is not sent again", "markers", "transactions", (Fault.KILL,), seed=1
)
def _(patch: pytest.MonkeyPatch) -> None:
    marker_result = TransactionalIds.marker_result

    def take(
        self: TransactionalIds, sent: SendMarkers, partition: TopicPartition, code: int, now_ms: int
    ) -> Actions:
        found = marker_result(self, sent, partition, code, now_ms)
        return [one for one in found if not isinstance(one, SendMarkers)]

    patch.setattr(TransactionalIds, "marker_result", take)


@transactional(
    "a marker that was refused counts as written", "markers", "transactions", (Fault.KILL,), seed=2
)
def _(patch: pytest.MonkeyPatch) -> None:
    marker_result = TransactionalIds.marker_result

    def take(
        self: TransactionalIds, sent: SendMarkers, partition: TopicPartition, _: int, now_ms: int
    ) -> Actions:
        return marker_result(self, sent, partition, 0, now_ms)

    patch.setattr(TransactionalIds, "marker_result", take)


@transactional(
    "a fenced producer may end its successor's transaction", "fencing", "", (Fault.SUSPEND,), seed=2
)
def _(patch: pytest.MonkeyPatch) -> None:
    refuse = Transaction._refuse

    def refuse_less(self: Transaction, producer_id: int, epoch: int) -> int:
        code = refuse(self, producer_id, epoch)
        record = self.record
        if code == InvalidProducerEpoch.code and record is not None:
            return refuse(self, producer_id, record.producer_epoch)
        return code

    patch.setattr(Transaction, "_refuse", refuse_less)


@transactional("a new producer keeps the epoch of the former", "fencing", "", (), seed=2)
def _(patch: pytest.MonkeyPatch) -> None:
    init = Transaction.init

    def init_again(self: Transaction, timeout_ms: int, now_ms: int, new_id: int | None) -> Any:
        before = self.record
        change = init(self, timeout_ms, now_ms, new_id)
        if isinstance(change, Change) and before is not None and change.record is not None:
            same = change.record._replace(producer_epoch=before.producer_epoch)
            self.pending = change = Change(same)
        return change

    patch.setattr(Transaction, "init", init_again)


@transactional("offsets of a transaction count at once", "offsets", "apart", (), seed=5)
def _(patch: pytest.MonkeyPatch) -> None:
    add = OffsetCache.add_to_transaction

    def add_and_apply(
        self: OffsetCache, partition: int, producer_id: int, log_offset: int, key: Any, value: Any
    ) -> None:
        add(self, partition, producer_id, log_offset, key, value)
        self.apply(partition, log_offset, key, value)

    patch.setattr(OffsetCache, "add_to_transaction", add_and_apply)


@transactional("offsets of an aborted transaction count", "offsets", "apart", (), seed=5)
def _(patch: pytest.MonkeyPatch) -> None:
    end = OffsetCache.end_transaction

    def end_all(self: OffsetCache, partition: int, producer_id: int, *, commits: bool) -> None:
        end(self, partition, producer_id, commits=True)

    patch.setattr(OffsetCache, "end_transaction", end_all)


@transactional("offsets of a transaction are forgotten", "offsets", "apart", (), seed=0)
def _(patch: pytest.MonkeyPatch) -> None:
    end = OffsetCache.end_transaction

    def end_none(self: OffsetCache, partition: int, producer_id: int, *, commits: bool) -> None:
        end(self, partition, producer_id, commits=False)

    patch.setattr(OffsetCache, "end_transaction", end_none)


@transactional(
    "a marker stays in the log although its index entry was refused",
    "ours",
    "",
    (Fault.DESCRIPTORS,),
    seed=0,
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionIndex, "reserve", lambda _: None)


@transactional(
    "a follower's fetch waits though it had a marker appended",
    "ours",
    "is parked",
    (),
    seed=7,
    needs=replicated,
)
def _(patch: pytest.MonkeyPatch) -> None:
    def names(self: FetchCall) -> Iterable[TopicPartition]:
        return self._names or ()

    patch.setattr(FetchCall, "_all_names", names)


@transactional("a start forgets which transactions are open", "recovery", "", (Fault.KILL,), seed=6)
def _(patch: pytest.MonkeyPatch) -> None:
    of_snapshot = Producers.of_snapshot

    def of_snapshot_without(*args: Any, **options: Any) -> Producers:
        found = of_snapshot(*args, **options)
        found._open.clear()
        return found

    patch.setattr(Producers, "of_snapshot", of_snapshot_without)
