"""The Python of Spark's workers is checked before a job runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.errors import ConfigError
from kafka08.spark.worker_python import check_python


def test_our_own_python_passes() -> None:
    """The interpreter of this process runs tasks."""
    check_python(sys.executable)


def test_a_python_without_kafka08_is_named(tmp_path: Path) -> None:
    """An empty environment: the error names its Python, what is missing and the variable to set."""
    environment = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    with pytest.raises(ConfigError, match="No module named") as raised:
        check_python(str(python))
    assert str(python) in str(raised.value)
    assert f"PYSPARK_PYTHON={sys.executable}" in str(raised.value)


def test_a_python_that_is_not_there() -> None:
    """A name that is no program is an error of the same kind."""
    with pytest.raises(ConfigError, match="PYSPARK_PYTHON"):
        check_python("no-such-python")
