"""Commits for a group, out of the progress that Spark reports."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import StorageName
from kafka08.errors import NoBrokersAvailable
from kafka08.spark import listener
from kafka08.spark.listener import GroupCommitListener
from kafka08.spark.progress import offsets_behind_latest, offsets_without_rows
from kafka08.structs import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS = '{"t": {"0": 5}, "$starts": {"t": {"0": 1}}}'
PYTHON = "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@1"
"""How Spark describes each source written in Python."""
RATE, FILES = "17", '{"logOffset": 3}'
"""Ends of a batch of Spark's own sources `rate` and files."""


class Commits:
    """What a listener of the query `pages` commits for its group."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[Mapping[TopicPartition, int]] = []
        self.error: Exception | None = None
        monkeypatch.setattr(listener, "commit_offsets", self._commit)
        streams = SimpleNamespace(addListener=lambda _: None)
        spark = cast("SparkSession", SimpleNamespace(streams=streams))
        self._listener = GroupCommitListener(spark, "b:9092", "g", "kafka", query_name="pages")

    def _commit(
        self,
        cluster: ClusterClient,
        group: str,
        offsets: Mapping[TopicPartition, int],
        storage: StorageName,
    ) -> None:
        assert (group, storage) == ("g", "kafka")
        if self.error is not None:
            raise self.error
        self.made.append(offsets)

    def after(self, name: str, *ends: str | None) -> None:
        """A batch of the query `name` ends; `ends`: of its sources."""
        self.after_sources(name, *(SimpleNamespace(description=PYTHON, endOffset=e) for e in ends))

    def after_sources(self, name: str, *sources: SimpleNamespace) -> None:
        progress = SimpleNamespace(name=name, sources=sources)
        self._listener.onQueryProgress(SimpleNamespace(progress=progress))


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> Commits:
    return Commits(monkeypatch)


@pytest.mark.parametrize("other", [RATE, FILES, None])
def test_other_sources_of_a_query_are_left_out(commits: Commits, other: str | None) -> None:
    """A query may join a topic with another source, before or behind it: the topic's end is
    committed. (The position of the other source used to be an error, before any commit.)"""
    commits.after("pages", other, OURS)
    commits.after("pages", OURS, other)
    assert commits.made == [{TopicPartition("t", 0): 5}] * 2


def test_sparks_own_connector_is_left_out(commits: Commits) -> None:
    """Its positions look like ours, but may be of another cluster; nor do its offsets count as
    lost."""
    own = SimpleNamespace(
        description="KafkaV2[Subscribe[t]]",
        startOffset='{"t":{"0":0}}',
        endOffset='{"t":{"0":100}}',
        latestOffset='{"t":{"0":100}}',
        numInputRows=40,
    )
    commits.after_sources("pages", own)
    assert commits.made == []
    assert offsets_without_rows(own) == 0
    assert offsets_behind_latest(own) == {}


def test_other_queries_are_left_out(commits: Commits) -> None:
    """One listener follows one query."""
    commits.after("others", OURS)
    assert commits.made == []


def test_a_failed_commit_is_logged(commits: Commits, caplog: pytest.LogCaptureFixture) -> None:
    """Spark's listener goes on, and the next batch commits again."""
    commits.error = NoBrokersAvailable("no broker responded")
    commits.after("pages", OURS)
    assert "Commit for g in kafka failed: no broker responded" in caplog.text
    commits.error = None
    commits.after("pages", OURS)
    assert commits.made == [{TopicPartition("t", 0): 5}]
