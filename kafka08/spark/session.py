"""A Spark session of our own, quiet, and stopped afterwards: local, bound to 127.0.0.1, or as the
driver of an application on a cluster."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from kafka08.errors import ClientError, ConfigError
from kafka08.spark import register
from kafka08.spark.failures import known_cause, without_frames
from kafka08.spark.versions import PYSPARK, UNIX_SOCKET, UNIX_SOCKETS
from kafka08.stop_signals import stop_signals
from kafka08.structs import split_host_port

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S: Final = 20
LOG_TAIL_CHARACTERS: Final = 4000
CONNECT_S: Final = 5
STANDALONE: Final = "spark://"
MASTERS: Final = re.compile(r"local(-cluster)?(\[.+\])?|spark://.+:\d+(,.+:\d+)*|yarn|k8s://.+")
DEFAULTS: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    # Starts in half the CPU time; the driver only plans, or its session is short: see FULL_SPEED.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
FULL_SPEED: Final[Mapping[str, str]] = {"spark.driver.extraJavaOptions": ""}
"""For a long session on this machine, where the driver's Java also runs the tasks: it then also
uses its optimizing compiler."""
LOCAL_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}


class SparkFailed(ClientError):
    """Spark did not start, or a job failed. The message has the cause; if that is not known, it
    ends with the tail of Spark's log."""


def local_session(
    name: str,
    java_home: Path,
    log_file: Path,
    *,
    cores: int = 2,
    conf: Mapping[str, str] | None = None,
    on_java: Callable[[int], None] = lambda _: None,
) -> AbstractContextManager[SparkSession]:
    """`session` on `cores` cores of this machine."""
    return session(name, f"local[{cores}]", java_home, log_file, conf=conf, on_java=on_java)


@contextmanager
def session(
    name: str,
    master: str,
    java_home: Path,
    log_file: Path,
    *,
    conf: Mapping[str, str] | None = None,
    on_java: Callable[[int], None] = lambda _: None,
) -> Iterator[SparkSession]:
    """A session on `master` for the time of the block, with the format `kafka08` registered. Its
    Java process ends with it, so that another one may follow; there must be none yet. Spark's
    errors in the block become SparkFailed, as does a standalone master that cannot be reached.

    master                local[N], spark://HOST:PORT[,HOST:PORT], yarn or k8s://URL
    java_home, log_file   see kafka08.embedded.spark_java
    conf                  see `properties`. `spark.pyspark.python`, else the environment's
                          PYSPARK_PYTHON, else this process's Python runs the workers of a cluster
    on_java               told the id of the Java process as soon as there is one
    """
    assert SparkContext._active_spark_context is None, "this process runs a Spark already"
    conf = conf or {}
    check_reachable(master)
    settings = SparkConf().setMaster(master).setAppName(name)
    settings.setAll(list(properties(master, conf).items()))
    environment = {"JAVA_HOME": str(java_home), "PYSPARK_PYTHON": sys.executable}
    if is_local(master):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    else:
        # Only spark-submit looks at that property.
        chosen = conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
        environment["PYSPARK_PYTHON"] = chosen or sys.executable
    spark: SparkSession | None = None
    try:
        with _quiet_gateway(), _as_spark_failed(log_file):
            try:
                with _deferred_signals():
                    spark = _start(settings, environment, on_java)
                register(spark)
                # Before Java ends: the text of its errors comes from there.
                with _as_spark_failed(log_file):
                    yield spark
            finally:
                if spark is not None:
                    _stop(spark)
    finally:
        with _quiet_gateway():
            _stop_java()


def properties(
    master: str, conf: Mapping[str, str], release: tuple[int, int] = PYSPARK
) -> dict[str, str]:
    """Spark's properties for a session on `master`: ours for this `release` of PySpark, of which
    those of `conf`, the caller's, take precedence."""
    ours = {**DEFAULTS, **(LOCAL_DEFAULTS if is_local(master) else {})}
    if release >= UNIX_SOCKETS:
        ours[UNIX_SOCKET] = "true"
    return {**ours, **conf}


def is_local(master: str) -> bool:
    """Whether driver and workers are one process group on this machine."""
    return master.startswith("local")


def check_reachable(master: str) -> None:
    """ConfigError if `master` is none that Spark knows; SparkFailed if it is a standalone one at
    none of whose addresses anything listens. Spark itself would ask for a minute."""
    if MASTERS.fullmatch(master) is None:
        raise ConfigError(
            f"the Spark master {master!r} is not spark://HOST:PORT, yarn, k8s://URL or local[N]"
        )
    if not master.startswith(STANDALONE):
        return
    problem = ""
    for address in master.removeprefix(STANDALONE).split(","):
        host, port = split_host_port(address)
        try:
            socket.create_connection((host, int(port or 0)), CONNECT_S).close()
        except (OSError, OverflowError) as error:
            problem = f"{address}: {getattr(error, 'strerror', None) or error}"
        else:
            return
    raise SparkFailed(
        f"Cannot connect to the Spark master at {problem}. Check that it is running there; its log "
        "and the first page of its UI have the URL"
    )


def _start(
    conf: SparkConf, environment: Mapping[str, str], on_java: Callable[[int], None]
) -> SparkSession:
    # Read when Java starts, and inherited by it for the workers of a local master.
    with _environment(**environment):
        SparkContext._ensure_initialized(conf=conf)
        on_java(SparkContext._gateway.proc.pid)  # type: ignore[union-attr]
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
    # A signal to the whole process group ends Java before us: log nothing about that.
    server: Any = spark.sparkContext._accumulatorServer
    server.handle_error = lambda *_: None
    return spark


def _stop(spark: SparkSession) -> None:
    """Stop the session, even if its Java process has already ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "unable to cleanly shutdown"
        try:
            spark.stop()
        except (Py4JError, OSError) as error:
            logger.debug("Spark's Java had ended: %s", error)


@contextmanager
def _deferred_signals() -> Iterator[None]:
    """Defer stop signals to the end of the block. If they interrupt PySpark while it waits for its
    Java process, it loses that process, which then runs for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled elsewhere
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in stop_signals()}
    for number in before:
        signal.signal(number, lambda received, _: came.append(received))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextmanager
def _quiet_gateway() -> Iterator[None]:
    """Silence the gateway to Java: it also logs, with a traceback, each error that it raises, and
    Ctrl-C and a lost Java process, those by the root logger."""
    root, gateway = logging.getLogger(), logging.getLogger("py4j")
    before = gateway.level
    gateway.setLevel(logging.CRITICAL + 1)
    root.addFilter(_is_not_of_gateway)
    try:
        yield
    finally:
        root.removeFilter(_is_not_of_gateway)
        gateway.setLevel(before)


def _is_not_of_gateway(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger is not py4j's about an error that the caller sees."""
    return record.module != "java_gateway"


@contextmanager
def _as_spark_failed(log_file: Path) -> Iterator[None]:
    """Turn Spark's errors into SparkFailed: their cause alone if it is known, else all that they
    and the tail of Spark's log say, without stack traces. Errors of a query (a missing file, say)
    need no log. Logs the whole at level DEBUG."""
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        logger.debug("Spark failed", exc_info=True)
        text = str(error)
        if isinstance(error, ConnectionError):
            text = f"Spark's Java process has ended, or was killed ({text})"
        if (cause := known_cause(text)) is None:
            cause = without_frames(text)
            if not isinstance(error, AnalysisException):
                cause += "\n" + _tail(log_file)
        raise SparkFailed(cause) from error


def _tail(log_file: Path) -> str:
    """The last lines of Spark's log, without stack traces."""
    log = log_file.read_text(errors="replace") if log_file.exists() else ""
    return without_frames(log)[-LOG_TAIL_CHARACTERS:]


def _stop_java() -> None:
    """End the Java process. PySpark would keep it for the next session until this process ends."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    process: subprocess.Popen[bytes] = gateway.proc
    gateway.shutdown()
    assert process.stdin is not None
    process.stdin.close()  # makes the gateway exit
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
