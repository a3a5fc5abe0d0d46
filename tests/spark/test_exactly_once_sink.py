"""The sink with transactional.id.prefix on a broker of ours, without Spark around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest

from kafka08.client.transactional_id import TransactionalId
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.errors import ConfigError, ConnectionFailed, FailedTransaction
from tests.spark.write_tasks import (
    STEPS,
    Query,
    attempts_that_do_not_count,
    killed_at,
    late_driver,
    lost_responses,
)

_numbers = count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(1, level="0.11.0") as cluster:
        yield cluster


@pytest.fixture
def query(cluster: EmbeddedCluster, tmp_path: Path) -> Query:
    topic = f"written-{next(_numbers)}"
    cluster.create_topic(topic)
    return Query(cluster.bootstrap, topic, tmp_path)


@pytest.mark.parametrize("step", STEPS)
def test_a_driver_is_killed(query: Query, step: str) -> None:
    """Wherever it is in the end of a batch, the repetition leaves each row there once."""
    killed_at(query, step)


def test_attempts_that_do_not_count(query: Query) -> None:
    """Their rows are aborted, and hold up no reader."""
    attempts_that_do_not_count(query)


def test_lost_responses(query: Query) -> None:
    """What a leader has stored is sent again, and not stored twice."""
    lost_responses(query)


def test_a_driver_that_is_away_too_long(query: Query) -> None:
    """The batch is incomplete: an error, which names the file to remove or to make."""
    late_driver(query)


def test_nothing_is_seen_before_the_commit(query: Query) -> None:
    """Rows of tasks that are done are not committed, and after the abort of the batch they never
    will be."""
    plan = query.begin()
    written = query.task(plan, 0, ["a"])
    assert query.committed() == []
    query.writer().abort([written, None], 0)
    query.run(0, ["b"], [])
    assert query.committed() == ["b"]


def test_ids_are_used_again(query: Query) -> None:
    """A process takes new transactional ids for the tasks of one batch alone: coordinators keep
    each for days."""

    def ids(batch: int) -> set[str]:
        plan = query.begin()
        written = [query.task(plan, batch, [f"{batch}-{n}"]) for n in range(3)]
        query.writer().commit(written, batch)
        return {one.transaction.transactional_id for one in written if one.transaction}

    first = ids(0)
    assert len(first) == 3
    assert ids(1) == ids(2) == first
    assert len(query.committed()) == 9


def test_a_late_attempt_of_an_earlier_batch_fences_nobody(query: Query) -> None:
    """A task that Spark gave up begins when the next batch has written in the same process."""
    first = query.begin()
    query.writer().commit([query.task(first, 0, ["0"])], 0)
    plan = query.begin()
    written = query.task(plan, 1, ["1"])
    query.task(first, 0, ["late"])
    query.writer().commit([written], 1)
    assert query.committed() == ["0", "1"]


def test_of_two_drivers_the_later_one_commits(query: Query) -> None:
    """One that was taken for dead cannot journal its batch any more, and what it has written is
    aborted."""
    former = query.task(query.begin(), 0, ["former"])
    later = query.task(query.begin(), 0, ["later"])
    with pytest.raises(ConfigError, match="batch 0 is not committed: another driver has taken"):
        query.writer().commit([former], 0)
    query.writer().commit([later], 0)
    assert query.committed() == ["later"]


def test_a_batch_that_took_too_long_is_not_committed(query: Query) -> None:
    """Its transactions might end while they are committed: nothing is journaled."""
    written = query.task(query.begin(), 0, ["slow"])
    assert written.plan is not None
    slow = replace(
        written, plan=replace(written.plan, planned_ms=written.plan.planned_ms - 451_000)
    )
    with pytest.raises(FailedTransaction, match="took longer than half of"):
        query.writer().commit([slow], 0)
    query.writer().abort([slow], 0)
    assert not (query.journal / "0").exists()
    query.run(0, ["again"])
    assert query.committed() == ["again"]


def test_a_journal_of_another_query(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error, not a batch that is left out: a new checkpoint begins at batch 0 again."""
    query.run(3, ["a"])
    monkeypatch.setattr("tests.spark.write_tasks.QUERY", "query-2")
    with pytest.raises(ConfigError, match="has batch 3 of query query-1, but this is batch 4 of q"):
        query.task(query.begin(), 4, ["b"])


def test_what_is_journaled_is_never_aborted(query: Query) -> None:
    """Spark aborts a write whose commit has failed; a part of it may be committed already."""
    plan = query.begin()
    written = [query.task(plan, 0, [name]) for name in "ab"]
    writer = query.writer()
    end = patch.object(TransactionalId, "end", side_effect=[None, ConnectionFailed("gone")])
    with end, pytest.raises(ConnectionFailed):
        writer.commit(written, 0)
    writer.abort(written, 0)
    query.begin()
    assert query.committed() == ["a", "b"]


def test_a_batch_that_is_not_written_again_is_said(
    query: Query, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody may have meant another write, with a journal that has one already."""
    query.run(0, ["a"])
    query.run(0, ["b"])
    assert query.committed() == ["a"]
    assert "batch 0 of query query-1 is not written again" in caplog.text


def test_an_empty_batch_leaves_no_file(query: Query) -> None:
    """Tasks without rows have no transaction."""
    query.run(0, [], [])
    assert list(query.journal.iterdir()) == []
    assert query.committed() == []
