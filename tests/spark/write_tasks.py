"""A query that writes with the exactly-once sink, without Spark: its driver and tasks are calls.

Steps of its driver can be made to fail, as if the driver had died there.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from kafka08.arrow import scan
from kafka08.arrow.settings import ReadSettings
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.transactional_id import TransactionalId
from kafka08.errors import ConfigError, ConnectionFailed, FailedTransaction
from kafka08.runtime.threads import THREADS
from kafka08.spark import sink
from kafka08.spark.batch_journal import BatchJournal
from kafka08.spark.sink import RowWriter, planned
from kafka08.spark.stream_sink import StreamWriter
from kafka08.spark.transaction_options import BatchId, OpenTransaction
from kafka08.spark.write_options import WriteOptions, parse_write_options
from kafka08.spark.written import Written

QUERY = "query-1"


class Died(BaseException):
    """The driver was killed."""


class Query:
    """One query. `driver` begins a batch as Spark's driver does; others may have begun before."""

    def __init__(self, bootstrap: str, topic: str, directory: Path, **options: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self.journal = directory / "checkpoint" / "kafka08-transactions"
        self._given = {
            "kafka.bootstrap.servers": bootstrap,
            "topic": topic,
            "transactional.id.prefix": topic,
            "checkpointLocation": str(directory / "checkpoint"),
            "kafka.batch.size": "200",
            **options,
        }

    def writer(self) -> StreamWriter:
        """As Spark makes one for a plan, and another one for a commit."""
        return StreamWriter(planned(parse_write_options(self._given)))

    def begin(self) -> WriteOptions:
        """Plan a batch. Returns what its tasks get."""
        sent: StreamWriter = pickle.loads(pickle.dumps(self.writer()))
        return sent.options

    def task(
        self, plan: WriteOptions, batch: int, values: Sequence[str], attempt: int = 0
    ) -> Written:
        rows = pa.record_batch(
            {
                "value": pa.array([value.encode() for value in values], pa.binary()),
                "partition": pa.array([0] * len(values), pa.int32()),
            }
        )
        with patch.object(sink, "running_batch", lambda: (BatchId(QUERY, batch), attempt)):
            return RowWriter(plan).write(iter([rows]))

    def run(self, batch: int, *tasks: Sequence[str]) -> None:
        """One batch, from its plan to its commit."""
        plan = self.begin()
        written = [self.task(plan, batch, values) for values in tasks]
        self.writer().commit(written, batch)

    def committed(self) -> list[str]:
        settings = ReadSettings(isolation_level="read_committed")
        with scan(self.bootstrap, self.topic, columns=["value"], settings=settings) as found:
            return sorted(value.decode() for batch in found for value in batch["value"].to_pylist())


@contextmanager
def dying(owner: type, name: str, calls: int = 0) -> Iterator[None]:
    """The driver dies at the call of this method after so many whole ones."""
    method: Callable[..., Any] = getattr(owner, name)
    left = iter(range(calls))

    def call(*arguments: Any, **named: Any) -> Any:
        if next(left, None) is None:
            raise Died
        return method(*arguments, **named)

    with patch.object(owner, name, call), pytest.raises(Died):
        yield


STEPS = {
    "before the journal": (BatchJournal, "write", 0),
    "before the first end": (TransactionalId, "end", 0),
    "between two ends": (TransactionalId, "end", 1),
    "after the last end": (BatchJournal, "mark_ended", 0),
}


def killed_at(query: Query, step: str) -> None:
    """The next driver repeats the batch. Each row is there once, and nobody waits for what the
    first driver has left open."""
    plan = query.begin()
    written = [query.task(plan, 0, [f"a{n}" for n in range(50)]), query.task(plan, 0, ["b"])]
    with patch("kafka08.spark.batch_commits.SIDE_BY_SIDE", 1), dying(*STEPS[step]):
        query.writer().commit(written, 0)
    rows = sorted([*(f"a{n}" for n in range(50)), "b"])
    again = query.begin()
    assert query.committed() == ([] if step == "before the journal" else rows)
    written = [query.task(again, 0, [f"a{n}" for n in range(50)]), query.task(again, 0, ["b"])]
    assert (written[0].transaction is None) == (step != "before the journal")
    query.writer().commit(written, 0)
    assert query.committed() == rows
    query.run(1, ["next"])
    assert query.committed() == [*rows, "next"]


def attempts_that_do_not_count(query: Query) -> None:
    """A task that fails in the middle, one that is killed, and one that is done when another
    attempt was sooner: none of their rows, and no reader waits for their end once the batch is
    committed."""
    plan = query.begin()
    with patch.object(RowWriter, "_send", failing_in_the_middle), pytest.raises(ConfigError):
        query.task(plan, 0, ["failed"] * 100)
    query.task(plan, 0, ["done, and not counted"])
    counted = query.task(plan, 0, ["counted"], attempt=2)
    query.writer().commit([counted], 0)
    assert query.committed() == ["counted"]


def failing_in_the_middle(
    self: RowWriter, queues: Any, send: Callable[..., None] = RowWriter._send
) -> None:
    if self._counts:
        raise ConfigError("in the middle")
    send(self, queues)


def lost_responses(query: Query) -> None:
    """Each set is sent again after its response was lost, and stored once."""
    ask = RowWriter._ask
    answered: set[int] = set()

    def losing(self: RowWriter, connection: Any, queues: Any) -> Any:
        found = ask(self, connection, queues)
        if (at := sum(queue._start for queue in queues.values())) not in answered:
            answered.add(at)
            raise ConnectionFailed("the response is lost")
        return found

    with patch.object(RowWriter, "_ask", losing):
        query.run(0, [f"{n:03}" for n in range(100)])
    assert len(answered) > 5
    assert query.committed() == [f"{n:03}" for n in range(100)]


def late_driver(query: Query) -> None:
    """A driver that comes back after a transaction was aborted says so, and what can be done; then
    either is done."""
    for batch, cure in enumerate(("again", "without")):
        plan = query.begin()
        written = [query.task(plan, batch, [f"{batch}{name}"]) for name in "ab"]
        with patch("kafka08.spark.batch_commits.SIDE_BY_SIDE", 1), dying(TransactionalId, "end", 1):
            query.writer().commit(written, batch)
        timed_out(query, written[1].transaction)
        path = query.journal / str(batch)
        with pytest.raises(FailedTransaction) as refused:
            query.writer()
        text = str(refused.value)
        assert f"batch {batch} of query {QUERY} is incomplete: 1 of 2 transactions" in text
        assert f"remove {path}; " in text
        if cure == "again":
            path.unlink()
        else:
            Path(f"{path}.ended").touch()
        query.run(batch, [f"{batch}a"], [f"{batch}b"])
    assert query.committed() == ["0a", "0a", "0b", "1a"]


def timed_out(query: Query, opened: OpenTransaction | None) -> None:
    """Abort it as its coordinator does, which fences the producer."""
    assert opened is not None
    with closing(ClusterClient(parse_bootstrap(query.bootstrap), negotiates=True)) as cluster:
        name = opened.transactional_id
        TransactionalId(name, cluster, THREADS).init(60_000, THREADS.monotonic() + 30)
