"""The demo's stages in Spark: read exact ranges, and make a table of identifier counts."""

from __future__ import annotations

import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kafka08.demo import chart, corpus
from kafka08.demo.identifiers import Counts, count_in_corpus
from kafka08.demo.ledger import Ledger
from kafka08.demo.spark_reader import SparkReader, read_counts, spark_reader
from kafka08.demo.stage import Progress, StageResult
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import ConfigError
from kafka08.lifecycle import Closeable
from kafka08.listing import some_of

TABLE: Final = "identifiers.parquet"
CHART: Final = "identifiers.png"
NEEDED: Final = ("pyspark", "pyarrow", "matplotlib")


def prepare_output(output: Path) -> None:
    """Make the directory, before anything is started. ConfigError if that fails, or if a library of
    the stages is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"the Spark stages need {', '.join(missing)}: run scripts/install demo in a "
            "checkout, or leave them out by --no-spark"
        )
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--output {output}: {error.strerror}") from error


class SparkStages(Closeable):
    """One Spark session for both stages; the first one starts it. Meanwhile a thread counts the
    identifiers in the files, for comparison."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        topic: str,
        ledger: Ledger,
        source: Path,
        output: Path,
        progress: Progress,
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._ledger = ledger
        self._source = source
        self._output = output
        self._progress = progress
        self._stack = ExitStack()
        self._reader: SparkReader | None = None
        self._direct: Future[Counts] | None = None

    def close(self) -> None:
        self._stack.close()

    def read_ranges(self) -> StageResult:
        """Exact ranges: the middle half of each partition, counted and hashed in Spark."""
        ends = self._ledger.log_ends()
        ranges = [(p, end // 4, end * 3 // 4) for p, end in sorted(ends.items())]
        expected = self._ledger.content(ranges)
        self._progress.stage("read ranges in Spark", None)
        started = time.monotonic()
        pool = self._stack.enter_context(ThreadPoolExecutor(1, "count-in-corpus"))
        self._direct = pool.submit(count_in_corpus, self._source)
        self._reader = self._stack.enter_context(
            # In the cluster's directory, which is removed however this process ends.
            spark_reader(
                self._cluster.bootstrap,
                self._topic,
                self._cluster.data_dir / "spark",
                self._cluster.guard,
            )
        )
        seen = self._reader.content(ranges)
        fault = "" if seen == expected else f"read {seen}, produced {expected}"
        seconds = time.monotonic() - started
        return StageResult("read ranges in Spark", seen, seconds, "content matches", fault)

    def count_identifiers(self) -> StageResult:
        """Count the names in each module of the corpus, write them as Parquet and as a picture, and
        compare them with the files."""
        assert self._reader is not None
        assert self._direct is not None
        self._progress.stage("count identifiers in Spark", None)
        started = time.monotonic()
        table, picture = self._output / TABLE, self._output / CHART
        whole = [(p, 0, end) for p, end in sorted(self._ledger.log_ends().items())]
        self._reader.count_identifiers(whole, table)
        counts = read_counts(table)
        fault = count_differences(counts, self._direct.result())
        chart.draw(counts, title_of(self._source), picture)
        return StageResult(
            "count identifiers in Spark",
            self._ledger.whole(),
            time.monotonic() - started,
            f"{len(counts):,} counts match the files",
            fault,
            files=(table, picture),
        )


def title_of(source: Path) -> str:
    """The title of the chart."""
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    if source == corpus.standard_library():
        return f"Most used identifiers in {python}'s standard library"
    return f"Most used identifiers in {source.name or source.resolve().name}"


def count_differences(seen: Counts, expected: Counts) -> str:
    """The first few differences of two counts, as text; empty if they are equal."""
    differing = sorted(
        key for key in seen.keys() | expected.keys() if seen.get(key) != expected.get(key)
    )
    told = [
        f"{name} in {module}: counted {seen.get((module, name), 0)} instead of "
        f"{expected.get((module, name), 0)}"
        for module, name in differing
    ]
    return some_of(told, "; ")
