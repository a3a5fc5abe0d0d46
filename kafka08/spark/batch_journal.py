"""The driver's journal of an exactly-once write: which transactions each batch commits.

    PLAN.planned   a batch is being written; empty. A driver that plans removes those of others
    N              the transactions of batch N. It was the file of its plan, and is on the disk
                   before the first of them is committed. From then on they must all be committed,
                   by whichever driver comes
    N.ended        they are

So of two drivers, of which each takes the other for dead, only the one that planned last can
journal a batch: the file of the other's plan is gone.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

from kafka08.errors import ConfigError
from kafka08.spark.transaction_options import BatchId, OpenTransaction

KEPT: Final = 100
"""Batches of which the files stay, as Spark keeps those of its checkpoint by default."""
ENDED: Final = ".ended"
PLANNED: Final = ".planned"


class JournaledBatch(NamedTuple):
    batch: BatchId
    transactions: tuple[OpenTransaction, ...]


class BatchJournal:
    """The files of one directory, which is made when it is needed. OSError."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)

    def file_of(self, number: int) -> Path:
        return self._directory / str(number)

    def newest(self) -> JournaledBatch | None:
        """The last batch that was journaled, or None. ConfigError if its file is another's."""
        numbers = self._numbers()
        return self._read(numbers[-1]) if numbers else None

    def is_ended(self, number: int) -> bool:
        """Whether all transactions of a batch have ended."""
        return self._mark_of(number).exists()

    def begin(self) -> bool:
        """Take the journal from any other driver. Returns whether that one had planned a batch of
        which it has not said the end."""
        self._directory.mkdir(parents=True, exist_ok=True)
        others = list(self._directory.glob(f"*{PLANNED}"))
        for other in others:
            other.unlink(missing_ok=True)
        return bool(others)

    def plan(self, plan: str) -> None:
        """A batch begins, under this name."""
        self._plan_of(plan).touch()

    def drop(self, plan: str) -> None:
        """The batch has nothing to commit."""
        self._plan_of(plan).unlink(missing_ok=True)

    def write(self, plan: str, journaled: JournaledBatch) -> None:
        """Journal a batch: afterwards it is on the disk. ConfigError if another driver has planned
        one meanwhile, or has journaled this one."""
        query, number = journaled.batch
        path = self._plan_of(plan)
        try:
            with path.open("r+", encoding="utf-8") as file:
                json.dump({"query": query, "transactions": journaled.transactions}, file)
                _sync(file)
            os.link(path, self.file_of(number))
        except (FileExistsError, FileNotFoundError) as error:
            raise ConfigError(
                f"batch {number} is not committed: another driver has taken its journal "
                f"{self._directory}, so it runs with the same checkpoint or journalLocation. Stop "
                "one of them"
            ) from error
        path.unlink()
        self._sync_names()

    def mark_ended(self, number: int) -> None:
        """All transactions of this batch have ended. Removes the files of batches long gone."""
        self._mark_of(number).touch()
        self._sync_names()
        for old in self._numbers()[:-KEPT]:
            for path in (self.file_of(old), self._mark_of(old)):
                path.unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        with suppress(FileNotFoundError):
            names = os.listdir(self._directory)
            return sorted(int(name) for name in names if name.isascii() and name.isdigit())
        return []

    def _read(self, number: int) -> JournaledBatch:
        path = self.file_of(number)
        try:
            found = json.loads(path.read_bytes())
            transactions = tuple(OpenTransaction(*one) for one in found["transactions"])
            return JournaledBatch(BatchId(found["query"], number), transactions)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{path} is no journal of this sink: {error!r}") from error

    def _mark_of(self, number: int) -> Path:
        return self._directory / f"{number}{ENDED}"

    def _plan_of(self, plan: str) -> Path:
        return self._directory / f"{plan}{PLANNED}"

    def _sync_names(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sync(file: IO[str]) -> None:
    file.flush()
    os.fsync(file.fileno())
