"""The script of docs/spark.md that keeps its own offsets, as it stands on the page."""

from __future__ import annotations

import runpy
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.snippets import blocks
from tests.spark.filling import Topics, collected, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parent.parent.parent / "docs" / "spark.md"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script in a directory of its own, which is the current one."""
    script = tmp_path / "daily.py"
    script.write_text(next(block.code for block in blocks(PAGE.read_text()) if block.file))
    monkeypatch.chdir(tmp_path)
    return script


def run(script: Path) -> None:
    """Run it to its end, which releases its lock as the end of a process does."""
    runpy.run_path(str(script))["running"].close()


@pytest.mark.parametrize("brokers", ["ours"], indirect=True)
def test_every_message_is_in_the_files_once(
    spark: SparkSession,
    brokers: Topics,
    script: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The job runs, is killed before its end, runs again and once more: each batch has the messages
    since the one before, none twice."""
    topic = brokers.filled([20, 10])
    arguments = [str(script), brokers.bootstrap, topic, str(tmp_path / "lake")]
    monkeypatch.setattr(sys, "argv", arguments)
    run(script)
    brokers.append(topic, 0, 5)
    run(script)
    with sqlite3.connect("offsets.db") as store:  # as if it had been killed before it was done
        store.execute("UPDATE batches SET done = 0 WHERE id = 2")
    store.close()
    brokers.append(topic, 1, 5)
    run(script)
    assert collected(spark.read.parquet(str(tmp_path / "lake"))) == sorted(
        rows_of(0, 0, 25) + rows_of(1, 0, 10)
    )
    run(script)
    assert collected(spark.read.parquet(str(tmp_path / "lake"))) == sorted(
        rows_of(0, 0, 25) + rows_of(1, 0, 15)
    )


@pytest.mark.spark
def test_two_jobs_at_once_do_not_write_into_one_directory(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one ends before it reads or writes anything."""
    pytest.importorskip("pyspark")
    monkeypatch.setattr(sys, "argv", [str(script), "127.0.0.1:1", "t", str(tmp_path / "lake")])
    first = sqlite3.connect("running.db", isolation_level=None)
    first.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            run(script)
    finally:
        first.close()
    assert not Path("offsets.db").exists()
