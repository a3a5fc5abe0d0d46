"""A Spark program as a process that can be killed, with the options of spark-submit."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def spark_program(
    command: Sequence[str],
    master: str,
    conf: Mapping[str, str],
    *,
    environ: Mapping[str, str],
    log: Path,
) -> Iterator[subprocess.Popen[bytes]]:
    """The driver: `command`, whose first word is a Python with PySpark. Its output is appended to
    `log`, in whose directory it runs. If it has not ended by the end of the block, it and its Java
    die by kill -9."""
    settings = [part for item in conf.items() for part in ("--conf", "=".join(item))]
    options = shlex.join(["--master", master, *settings, "pyspark-shell"])
    with log.open("ab") as output:
        driver = subprocess.Popen(
            command,
            env={**environ, "PYSPARK_SUBMIT_ARGS": options},
            cwd=log.parent,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield driver
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
