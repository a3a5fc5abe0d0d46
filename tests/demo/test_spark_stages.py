"""The demo's Spark stages compare and clean up, tried without Spark."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

from pyarrow import parquet  # noqa: E402

from kafka08.demo import chart, spark_stages  # noqa: E402
from kafka08.demo.corpus import standard_library  # noqa: E402
from kafka08.demo.identifiers import Counts, count_in_corpus  # noqa: E402
from kafka08.demo.ledger import Ledger  # noqa: E402
from kafka08.demo.spark_stages import (  # noqa: E402
    SparkStages,
    count_differences,
    prepare_output,
    title_of,
)
from kafka08.errors import ConfigError  # noqa: E402
from tests.demo.test_demo import Silent  # noqa: E402

COUNTS: Counts = {("m", "x"): 2, ("m", "self"): 9, ("n", "y"): 3, ("n", "z"): 3}


def write_counts(counts: Counts, path: Path) -> None:
    rows = [{"module": m, "identifier": i, "occurrences": n} for (m, i), n in counts.items()]
    parquet.write_table(pa.Table.from_pylist(rows), path)


@pytest.mark.parametrize("wrong", [False, True])
def test_the_table_is_compared_with_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: bool
) -> None:
    """One occurrence more than in the files is a fault that names it; both files are there."""
    text = tmp_path / "m.py"
    text.write_text("x = y\n")
    counted = count_in_corpus(text)
    if wrong:
        counted["m", "y"] += 1

    class Reader:
        def content(self, ranges: object) -> Any:
            return Ledger(1).whole()

        def count_identifiers(self, ranges: object, path: Path) -> None:
            write_counts(counted, path)

    from contextlib import nullcontext

    monkeypatch.setattr(spark_stages, "spark_reader", lambda *_: nullcontext(Reader()))
    cluster = cast(Any, SimpleNamespace(bootstrap="", data_dir=tmp_path, guard=None))
    with SparkStages(cluster, "t", Ledger(1), text, tmp_path, Silent()) as stages:
        assert stages.read_ranges().fault == ""
        result = stages.count_identifiers()
    assert result.fault == ("y in m: counted 2 instead of 1" if wrong else "")
    assert all(path.exists() for path in result.files)
    assert len(result.files) == 2


def test_a_few_differences_are_listed() -> None:
    """The text has missing and surplus rows, in order, and how many more there are."""
    assert count_differences(COUNTS, dict(COUNTS)) == ""
    seen = {("m", f"x{n}"): 1 for n in range(7)}
    said = count_differences(seen, {})
    assert said.startswith("x0 in m: counted 1 instead of 0; x1 in m")
    assert said.endswith("; and 2 more")


def test_the_chart_counts_modules_and_names() -> None:
    """Modules and names are sorted by occurrences, equal ones by name; `self` counts but has no
    bar."""
    assert chart.largest(COUNTS) == [
        ("m", 11, [("x", 2)]),
        ("n", 6, [("y", 3), ("z", 3)]),
    ]


@pytest.mark.parametrize("counts", [COUNTS, {(f"m{n}", "x" * n): n for n in range(1, 30)}, {}])
def test_the_chart_is_a_png(tmp_path: Path, counts: Counts) -> None:
    """The chart has 1000 by 540 pixels and is small, for few modules, many and none."""
    chart.draw(counts, "Names", tmp_path / "c.png")
    data = (tmp_path / "c.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (1000, 540)
    assert len(data) < 150_000


def test_the_title_names_the_text(tmp_path: Path) -> None:
    """The library, or the directory that was given, `.` too."""
    assert "standard library" in title_of(standard_library())
    assert title_of(tmp_path) == f"Most used identifiers in {tmp_path.name}"
    assert title_of(Path()) == f"Most used identifiers in {Path.cwd().name}"


def test_output_is_prepared_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that cannot be, or a missing library, is said with what to do."""
    prepare_output(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"--output .*file"):
        prepare_output(tmp_path / "file")
    monkeypatch.setattr(spark_stages, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="matplotlib: run scripts/install demo"):
        prepare_output(tmp_path)
