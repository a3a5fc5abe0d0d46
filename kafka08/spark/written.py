"""The base of both writers: the driver commits or aborts what its tasks have written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.datasource import WriterCommitMessage

from kafka08.arrow.connections import cluster_at
from kafka08.spark.batch_commits import BatchCommits
from kafka08.spark.plain_errors import plain_write_errors
from kafka08.spark.transaction_options import (
    NO_BATCH,
    BatchId,
    OpenTransaction,
    TransactionOptions,
)
from kafka08.spark.write_options import WriteOptions

Counts = dict[str, tuple[int, int]]
"""Topic → (messages, bytes of their sets)."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """The message of a task that is done.

    counts       topic → (messages, bytes of their sets)

    transaction  in which it wrote, and which the driver ends; None: none
    batch        to which that belongs
    plan         of the write, if it has transactions
    attempt      of the task, from 0 on
    """

    counts: Mapping[str, tuple[int, int]]
    transaction: OpenTransaction | None = None
    batch: BatchId = NO_BATCH
    plan: TransactionOptions | None = None
    attempt: int = 0


class WriterCommits:
    """The driver's part of a writer. Spark makes one for a plan and sends it to the tasks. For the
    commit or the abort it makes another one if it writes a stream."""

    def __init__(self, options: WriteOptions) -> None:
        self.options = options
        if options.transactions is not None:
            self._commits(options.transactions).finish_newest()

    def __getstate__(self) -> dict[str, object]:
        """Spark sends the writer to the tasks, which are to write now."""
        transactions = self.options.transactions
        if transactions is not None and not transactions.plan:
            planned = self._commits(transactions).plan()
            self.options = replace(self.options, transactions=planned)
        return self.__dict__

    @plain_write_errors
    def commit_written(self, messages: Sequence[WriterCommitMessage | None]) -> Counts:
        """All tasks are done: commit what they have written. Returns the counts."""
        written = written_by(messages)
        if written and (plan := written[0].plan) is not None:
            self._commits(plan).commit(
                written[0].batch,
                opened_by(written),
                has_strays=any(one.attempt for one in written),
            )
        return total(written)

    def abort_written(self, messages: Sequence[WriterCommitMessage | None]) -> Counts:
        """The write has failed: abort what the tasks that were done have written, unless its commit
        was decided before. Returns their counts."""
        written = written_by(messages)
        if self.options.transactions is not None:
            self._commits(self.options.transactions).abort(opened_by(written))
        return total(written)

    def _commits(self, transactions: TransactionOptions) -> BatchCommits:
        settings = self.options.settings
        cluster = cluster_at(self.options.address, settings, creates_topics=True)
        return BatchCommits(transactions, cluster, settings.poll_timeout_ms / 1000)


def written_by(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    """The messages of all tasks that were done; a failed one has None."""
    return [one for one in messages if isinstance(one, Written)]


def opened_by(written: Sequence[Written]) -> list[OpenTransaction]:
    return [one.transaction for one in written if one.transaction is not None]


def total(written: Sequence[Written]) -> Counts:
    """The sum of the counts of all tasks."""
    counts: Counts = {}
    for one in written:
        for topic, (number, size) in one.counts.items():
            before = counts.get(topic, (0, 0))
            counts[topic] = before[0] + number, before[1] + size
    return counts
