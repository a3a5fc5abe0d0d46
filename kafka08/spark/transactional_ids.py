"""The transactional ids that a worker process uses: PREFIX-JOURNAL-PROCESS-NUMBER.

Each task attempt has one that no other attempt uses at the same time, so that an attempt that Spark
gave up, wherever it still runs, fences no other. An id that an earlier batch of the same journal
used is free again: the driver plans a batch after the end of the one before. Its next use aborts
what an attempt of that batch that did not count has left open. So coordinators, which remember each
id for days, get no new ones with each batch.
"""

from __future__ import annotations

from uuid import uuid4

from kafka08.lifecycle import in_forked_processes
from kafka08.spark.transaction_options import TransactionOptions


class TransactionalIds:
    """Those of one process. Spark runs one task at a time in it."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._used: dict[str, list[int]] = {}
        """Journal → the newest batch that has used each id."""

    def take(self, options: TransactionOptions, batch: int) -> str:
        """An id for an attempt of this batch."""
        used = self._used.setdefault(options.journal, [])
        number = next((n for n, newest in enumerate(used) if newest < batch), len(used))
        used[number : number + 1] = [batch]
        return f"{options.id_prefix}{self._process}-{number}"


_ids = TransactionalIds(uuid4().hex)


@in_forked_processes
def _begin() -> None:
    global _ids
    _ids = TransactionalIds(uuid4().hex)


def take_transactional_id(options: TransactionOptions, batch: int) -> str:
    """An id of this process."""
    return _ids.take(options, batch)
