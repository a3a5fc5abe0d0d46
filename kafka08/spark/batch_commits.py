"""The driver of an exactly-once write: ends the transactions of its tasks, all in the same way.

    plan     takes the journal from any other driver, and commits the transactions of its newest
             batch, if a former driver has not come so far. Only then do tasks of a batch begin
    commit   the transactions of all tasks go to the journal, then each is committed
    abort    what is not in the journal is aborted

Attempts that Spark killed leave transactions open, and so does a driver that was: readers of
committed messages wait for their end. These strays are looked up in the log of transactions, and
aborted, by the next plan and by the commit of a batch of which a task was tried more than once.

Spark repeats a batch that it does not know as done, under the same number. If the journal has that
number, the batch was committed, or will be by its plan: the tasks of the repetition write nothing.

A coordinator aborts a transaction that is open for longer than its timeout. So a batch is journaled
only in the first half of that time since its plan. Its driver, or the one after it, has at least
the other half to commit. If none comes so soon, the batch stays incomplete, which is an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final
from uuid import uuid4

from kafka08.client.cluster import ClusterClient
from kafka08.client.transactional_id import TransactionalId
from kafka08.errors import (
    FailedTransaction,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
)
from kafka08.observe.transactions import FoundTransaction, transactions
from kafka08.protocol.transaction_records import TransactionState
from kafka08.runtime.threads import THREADS
from kafka08.spark.batch_journal import BatchJournal, JournaledBatch
from kafka08.spark.transaction_options import (
    BatchId,
    OpenTransaction,
    TransactionOptions,
    described,
)

logger = logging.getLogger(__name__)

SIDE_BY_SIDE: Final = 8
"""How many transactions are ended at the same time."""
STRAY_S: Final = 5.0
ENDED_OTHERWISE: Final = (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
)


class BatchCommits:
    """Those of one write. `tries_s`: how long ending one transaction is tried."""

    def __init__(self, options: TransactionOptions, cluster: ClusterClient, tries_s: float) -> None:
        self._options = options
        self._cluster = cluster
        self._tries_s = tries_s
        self._journal = BatchJournal(options.journal)

    def plan(self) -> TransactionOptions:
        """The options with which the tasks of a batch write."""
        is_unfinished = self._journal.begin()
        committed = self.finish_newest()
        if is_unfinished:
            self._abort_strays()
        plan = uuid4().hex
        self._journal.plan(plan)
        now_ms = self._cluster.clock.time_ms()
        return replace(self._options, plan=plan, planned_ms=now_ms, committed=committed)

    def finish_newest(self) -> BatchId | None:
        """Commit what the journal says is to be committed. Returns its newest batch."""
        newest = self._journal.newest()
        if newest is None:
            return None
        if not self._journal.is_ended(newest.batch.number):
            logger.info("Committing %s, as its driver had begun", described(newest.batch))
            self._commit_all(newest)
        return newest.batch

    def commit(
        self, batch: BatchId, opened: Sequence[OpenTransaction], *, has_strays: bool
    ) -> None:
        """Journal the transactions of a batch, and commit them. FailedTransaction if they are too
        old for that: nothing is committed then. `has_strays`: other attempts may have left some."""
        options = self._options
        left_ms = options.planned_ms + options.timeout_ms / 2 - self._cluster.clock.time_ms()
        if not opened:
            if options.is_committed(batch):
                logger.warning(
                    "%s is not written again: it was committed, says %s. Another write needs "
                    "another journalLocation",
                    described(batch),
                    self._journal.file_of(batch.number),
                )
            self._journal.drop(options.plan)
        elif left_ms < 0:
            raise FailedTransaction(
                f"{described(batch)} took longer than half of kafka.transaction.timeout.ms "
                f"({options.timeout_ms}), so nothing of it is committed: the other half is for a "
                "driver that comes back. Raise it, up to the brokers' transaction.max.timeout.ms, "
                "or make batches smaller"
            )
        else:
            journaled = JournaledBatch(batch, tuple(opened))
            self._journal.write(options.plan, journaled)
            self._commit_all(journaled)
        if has_strays:
            self._abort_strays()

    def abort(self, opened: Iterable[OpenTransaction]) -> None:
        """Abort those that the journal does not have. What fails ends by its timeout."""
        newest = self._journal.newest()
        kept = frozenset() if newest is None else frozenset(newest.transactions)
        for one, error in self._end_all([one for one in opened if one not in kept], commits=False):
            logger.warning("transactional.id %s is not aborted: %s", one.transactional_id, error)

    def _abort_strays(self) -> None:
        """Abort what other attempts have left open. Their timeout does it too."""
        newest = self._journal.newest()
        kept = frozenset() if newest is None else frozenset(newest.transactions)
        try:
            strays = [
                one.transactional_id
                for one in transactions(self._cluster, THREADS)
                if one.record.state is TransactionState.ONGOING
                and one.transactional_id.startswith(self._options.id_prefix)
                and _of(one) not in kept
            ]
            for name in strays:
                give_up_at = self._cluster.clock.monotonic() + STRAY_S
                TransactionalId(name, self._cluster, THREADS).init(
                    self._options.timeout_ms, give_up_at
                )
                logger.info("transactional.id %s is aborted: its task does not count", name)
        except KafkaError as error:
            logger.warning("Transactions of tasks that do not count may be open: %s", error)

    def _commit_all(self, journaled: JournaledBatch) -> None:
        number = journaled.batch.number
        failed = self._end_all(journaled.transactions, commits=True)
        for _, error in failed:
            if not isinstance(error, ENDED_OTHERWISE):
                raise error
        if failed:
            path = self._journal.file_of(number)
            raise FailedTransaction(
                f"{described(journaled.batch)} is incomplete: {len(failed)} of "
                f"{len(journaled.transactions)} transactions, each with the rows of a task, were "
                "aborted before a driver came back to commit them (kafka.transaction.timeout.ms: "
                f"{self._options.timeout_ms}; the first: {failed[0][1]}). To write the whole batch "
                f"again, which has the other rows twice then, remove {path}; to go on without the "
                f"missing rows, make a file {path}.ended"
            )
        self._journal.mark_ended(number)

    def _end_all(
        self, opened: Sequence[OpenTransaction], *, commits: bool
    ) -> list[tuple[OpenTransaction, KafkaError]]:
        """End each, and return the errors of those that could not be."""
        parts = [opened[n::SIDE_BY_SIDE] for n in range(SIDE_BY_SIDE)]
        calls = [partial(self._end_some, part, commits=commits) for part in parts if part]
        return [failed for some in self._cluster.run_concurrently(calls) for failed in some]

    def _end_some(
        self, opened: Sequence[OpenTransaction], *, commits: bool
    ) -> list[tuple[OpenTransaction, KafkaError]]:
        failed = []
        for one in opened:
            name, *identity = one
            give_up_at = self._cluster.clock.monotonic() + self._tries_s
            try:
                TransactionalId(name, self._cluster, THREADS).end(
                    (identity[0], identity[1]), give_up_at, commits=commits
                )
            except KafkaError as error:
                failed.append((one, error))
        return failed


def _of(found: FoundTransaction) -> OpenTransaction:
    record = found.record
    return OpenTransaction(found.transactional_id, record.producer_id, record.producer_epoch)
