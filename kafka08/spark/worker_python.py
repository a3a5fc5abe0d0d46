"""Whether the Pythons of Spark's workers can run our tasks, and how fast: asked before a job fails.

A worker of a local master runs a Python of this machine. Those of a cluster are asked by a small
job, whose function is pickled by value: it arrives where there is no kafka08.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from shutil import which
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.errors import PySparkException

from kafka08.errors import ConfigError
from kafka08.listing import some_of
from kafka08.spark import worker_probe
from kafka08.spark.versions import PYSPARK, UNIX_SOCKET, UNIX_SOCKETS

if TYPE_CHECKING:
    from pyspark import SparkContext

logger = logging.getLogger(__name__)

SECONDS: Final = 60
"""For a Python to import everything on a busy machine, and for a cluster to start executors."""
MOST_TASKS: Final = 200
"""Of the job that asks the workers of a cluster."""
JOB_TAG: Final = "kafka08-workers"
INSTALL: Final = "install kafka08[spark] there"
CAUSE: Final = re.compile(r"Cannot run program [^\n]*|\[PYTHON_VERSION_MISMATCH\][^\n]*")
"""Spark's errors for a worker's Python that cannot start, or is not the driver's."""

_checked: Final[set[tuple[str, str]]] = set()
"""(id of an application, path of its workers' Python) that were asked."""


def check_workers(context: SparkContext | None) -> None:
    """ConfigError if workers run a Python that cannot run our tasks: one without kafka08 or pyarrow
    (that of the system, where a virtual environment is used without being activated), or with
    another Python or kafka08 than the driver's. A warning if they run the Python twin of the
    kernel. Asks once for each application; of a cluster's workers, those that there are so far.
    Asks nothing without a context: with Spark Connect the driver is elsewhere."""
    if context is None or (asked := (context.applicationId, context.pythonExec)) in _checked:
        return
    master = str(context.master)
    if master == "local" or master.startswith("local["):
        found = [python_here(context.pythonExec)]
        cure = (
            f"set the environment variable PYSPARK_PYTHON={sys.executable} before the session "
            "starts"
        )
    else:
        found = pythons_of_workers(context)
        cure = (
            "set PYSPARK_PYTHON (or --conf spark.pyspark.python) to one that has it on every node "
            "before the session starts"
        )
    check_pythons(found, cure)
    _checked.add(asked)
    warn_of_twin(found)
    in_environment = os.environ.get("PYSPARK_UDS_MODE", "false")  # what Spark takes without it
    advise_unix_socket(context.getConf().get(UNIX_SOCKET, in_environment))


def check_planner(executable: str) -> None:
    """ConfigError if that Python, the workers', is not on this machine too: Spark plans reads of a
    data source with it on the driver's. A path into an archive (`--archives`) exists only on the
    workers at first."""
    if which(executable) is None:
        raise ConfigError(
            f"Spark plans reads here, on the driver's machine, with the workers' Python "
            f"{executable}, which is not here: unpack or install it at that path here, too"
        )


def check_pythons(found: Iterable[Mapping[str, str]], cure: str) -> None:
    """ConfigError with `cure` for the first of them that differs from this process's Python in
    what matters. `found`: as `worker_probe.describe` says."""
    here = worker_probe.describe()
    for worker in found:
        problem = worker.get("problem")
        if problem is None and minor(worker["python"]) != minor(here["python"]):
            problem = f"it is Python {worker['python']}, the driver's is {here['python']}"
        if problem is None and worker["kafka08"] != here["kafka08"]:
            problem = f"it has kafka08 {worker['kafka08']}, the driver has {here['kafka08']}"
        if problem is not None:
            raise ConfigError(
                f"Spark's workers on {worker['host']} run {worker['executable']}, which cannot run "
                f"tasks of kafka08 ({problem}): {cure}, or {INSTALL}"
            )


def minor(version: str) -> list[str]:
    """`3.11` of `3.11.7`."""
    return version.split(".")[:2]


def warn_of_twin(found: Iterable[Mapping[str, str]]) -> None:
    """One log line if some of these Pythons lack the compiled kernel: where, why, and the cure."""
    slow = {worker["host"]: worker["slow"] for worker in found if worker["slow"]}
    if slow:
        logger.warning(
            "Spark tasks on %s run the Python twin of kafka08's kernel and take 4.7 times the CPU: "
            "%s",
            some_of(sorted(slow)),
            next(iter(slow.values())),
        )


def advise_unix_socket(enabled: str | None, release: tuple[int, int] = PYSPARK) -> None:
    """One log line (INFO) if rows go through TCP between Java and Python, and this `release` of
    PySpark could use a Unix socket. `enabled`: the value of that property."""
    if release >= UNIX_SOCKETS and (enabled or "").lower() != "true":
        logger.info(
            "Set %s=true before the session starts: reads then take about a tenth less CPU",
            UNIX_SOCKET,
        )


@cache
def warn_of_twin_here() -> None:
    """`warn_of_twin` for the Python that plans a read, which is the workers' where they are this
    machine. For reads that `register` knows nothing of."""
    warn_of_twin([worker_probe.describe()])


@cache
def python_here(executable: str) -> dict[str, str]:
    """The report of that Python of this machine."""
    found = which(executable)
    if found == sys.executable:
        return worker_probe.describe()
    text = f"{inspect.getsource(worker_probe)}\nimport json\nprint(json.dumps(describe()))"
    described = {"host": socket.gethostname(), "executable": found or executable}
    # As -P, which another Python might not know: the current directory's modules are not ours.
    environ = {**os.environ, "PYTHONSAFEPATH": "1"}
    try:
        done = subprocess.run(
            [executable, "-c", text],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env=environ,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return described | {"problem": str(error)}
    if done.returncode:
        return described | {"problem": done.stderr.strip().rpartition("\n")[2]}
    said: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return said | described


def pythons_of_workers(context: SparkContext) -> list[dict[str, str]]:
    """The reports of the Pythons of a cluster's workers, by a job of one small task for
    each core. Empty, with a log line, if no executor was there within SECONDS. ConfigError if the
    Python does not start there."""
    tasks = min(context.defaultParallelism, MOST_TASKS)
    too_late = threading.Event()

    def give_up() -> None:
        too_late.set()
        context.cancelJobsWithTag(JOB_TAG)

    timer = threading.Timer(SECONDS, give_up)
    cloudpickle.register_pickle_by_value(worker_probe)  # type: ignore[no-untyped-call]
    context.addJobTag(JOB_TAG)
    timer.start()
    try:
        parts = context.parallelize(range(tasks), tasks)
        return parts.mapPartitions(worker_probe.describe_once).collect()
    except (PySparkException, Py4JError) as error:
        if too_late.is_set():
            logger.warning(
                "no executor ran a task within %d s: the workers' Python was not checked",
                SECONDS,
            )
            return []
        raise ConfigError(
            f"Spark's workers cannot run {context.pythonExec} ({cause_of(error)}): set "
            "PYSPARK_PYTHON (or --conf spark.pyspark.python) to a Python that is on every node and "
            f"has kafka08[spark], the same release as the driver's {sys.executable}"
        ) from error
    finally:
        timer.cancel()
        context.removeJobTag(JOB_TAG)
        cloudpickle.unregister_pickle_by_value(worker_probe)  # type: ignore[no-untyped-call]


def cause_of(error: Exception) -> str:
    """The line of Spark's error that says why a Python did not start; else its first line."""
    text = str(error)
    found = CAUSE.search(text)
    return found.group() if found else text.strip().partition("\n")[0]
