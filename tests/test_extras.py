"""A missing library of an extra is named with the command that installs it, in programs too."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from kafka08.extras import naming_extra


@pytest.mark.parametrize(
    ("statement", "library", "message"),
    [
        ("from kafka08.arrow import scan", "pyarrow", "kafka08.arrow.scan needs pyarrow: arrow"),
        (
            "from kafka08.spark import read_ranges",
            "pyarrow",
            "kafka08.spark.read_ranges needs pyarrow: spark",
        ),
        (
            "from kafka08.spark import DataSource",
            "pyspark",
            "kafka08.spark.DataSource needs pyspark: spark",
        ),
        ("import kafka08.spark.kafka", "pyspark", "kafka08.spark.kafka needs pyspark: spark"),
        ("import kafka08.otel", "opentelemetry", "kafka08.otel needs opentelemetry: otel"),
    ],
)
def test_an_import_names_the_extra(statement: str, library: str, message: str) -> None:
    """As in a plain install: the error has what needs the library, and what to run."""
    program = f"import sys; sys.modules[{library!r}] = None\n{statement}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    needs, _, extra = message.partition(": ")
    expected = f"ModuleNotFoundError: {needs}: pip install 'kafka08[{extra}]'"
    assert expected == done.stderr.splitlines()[-1]


def test_other_missing_modules_are_left_alone() -> None:
    """A bug of ours is not the user's missing extra."""
    with (
        pytest.raises(ModuleNotFoundError, match=r"No module named 'kafka08\.nothing'"),
        naming_extra("kafka08.arrow.scan"),
    ):
        import_module("kafka08.nothing")
