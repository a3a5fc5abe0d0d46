"""Whether the Python of Spark's workers can run our tasks, asked before a job fails on it."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from shutil import which
from typing import TYPE_CHECKING, Final

from kafka08.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS: Final = 60
"""For the worker's Python to import everything, on a busy machine."""


def check_local_workers(spark: SparkSession) -> None:
    """ConfigError if the workers of a local master run a Python without kafka08 or pyarrow, as
    they do where a virtual environment is used without being activated. Of a cluster's workers the
    driver can tell nothing."""
    context = getattr(spark, "_sc", None)  # None with Spark Connect
    if context is not None and context.master.startswith("local"):
        check_python(context.pythonExec)


@cache
def check_python(executable: str) -> None:
    """ConfigError unless that Python can import what a task needs."""
    found = which(executable)
    if found == sys.executable:
        return
    try:
        done = subprocess.run(
            [executable, "-c", "import kafka08.arrow.range_reader, pyarrow"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        problem = done.stderr.strip().rpartition("\n")[2] if done.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    if problem is not None:
        raise ConfigError(
            f"Spark's workers run {found or executable}, which cannot run tasks of kafka08 "
            f"({problem}): set the environment variable PYSPARK_PYTHON={sys.executable} before the "
            "session starts, or install kafka08[spark] there"
        )
