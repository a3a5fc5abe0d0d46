"""The values that driver and tasks of an exactly-once write exchange. Pure, without Spark.

Each task attempt writes in a transaction of its own and leaves it open. The driver journals the
transactions of all tasks, and then commits each. See batch_commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from kafka08.errors import ConfigError

TRANSACTION_TIMEOUT_MS: Final = 900_000
"""As long as brokers allow by default."""
JOURNAL: Final = "kafka08-transactions"
"""The journal's directory in a checkpoint."""


class BatchId(NamedTuple):
    """A batch of a stream.

    query    Spark's id of the query, which its checkpoint keeps; "" for a write outside of one
    number   of the batch, which it has again when it is repeated; 0 outside of a query
    """

    query: str
    number: int


NO_BATCH: Final = BatchId("", 0)


class OpenTransaction(NamedTuple):
    """A transaction as EndTxn names it."""

    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class TransactionOptions:
    """How the tasks of one write use transactions.

    prefix       of transactional ids
    timeout_ms   age at which a coordinator aborts a transaction
    journal      directory, absolute
    plan         name of the write in the journal; "" before the driver has planned it
    planned_ms   when it did, by its clock
    committed    the newest batch whose commit the journal had then
    """

    prefix: str
    timeout_ms: int
    journal: str
    plan: str = ""
    planned_ms: int = 0
    committed: BatchId | None = None

    @property
    def id_prefix(self) -> str:
        """With which the transactional ids of this journal begin, and no others."""
        journal = sha256(self.journal.encode()).hexdigest()[:8]
        return f"{self.prefix}-{journal}-"

    def is_committed(self, batch: BatchId) -> bool:
        """Whether the journal has this batch, so that its tasks must write nothing. ConfigError if
        the journal is not that of the batch's query."""
        if self.committed is None or (
            self.committed.query == batch.query and self.committed.number < batch.number
        ):
            return False
        if self.committed == batch:
            return True
        raise ConfigError(
            f"the journal {self.journal} has {described(self.committed)}, but this is "
            f"{described(batch)}. Give each query a journalLocation of its own, and a query with a "
            "new checkpoint a new one"
        )


def described(batch: BatchId) -> str:
    return f"batch {batch.number} of {f'query {batch.query}' if batch.query else 'no query'}"


def journal_directory(location: str | None, checkpoint: str | None) -> str:
    """The directory of the options journalLocation and checkpointLocation, either a path or a URI
    of a file. ConfigError."""
    if location is None and checkpoint is None:
        raise ConfigError(
            "transactional.id.prefix needs a directory in which the driver notes what it commits: "
            "set the option checkpointLocation of a stream, or journalLocation"
        )
    name = location if location is not None else checkpoint
    assert name is not None
    scheme, host, path, *_ = urlsplit(name)
    if scheme == "file" and host in ("", "localhost"):
        name = unquote(path)
    elif scheme:
        raise ConfigError(
            f"the driver must keep its journal in a directory that it has as files, not at {name}: "
            "set journalLocation"
        )
    directory = Path(name).absolute()
    return str(directory if location is not None else directory / JOURNAL)
