"""A Spark of our own on this machine: quiet, bound to 127.0.0.1, and gone afterwards."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from kafka08.errors import ClientError
from kafka08.spark import register
from kafka08.stop_signals import stop_signals

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S: Final = 20
LOG_TAIL_CHARACTERS: Final = 4000
DEFAULTS: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.log.level": "WARN",
    # Starts in half the CPU time; a session on one machine is short.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class SparkFailed(ClientError):
    """Spark did not start, or a job failed; the text ends with the end of Spark's log."""


@contextmanager
def local_session(
    name: str,
    java_home: Path,
    log_file: Path,
    *,
    cores: int = 2,
    conf: Mapping[str, str] | None = None,
    on_java: Callable[[int], None] = lambda _: None,
) -> Iterator[SparkSession]:
    """A session on `cores` cores for the time of the block, with the format `kafka08` registered.
    Its Java process ends with it, so that another one may follow; there must be none yet. Spark's
    errors in the block become SparkFailed.

    java_home, log_file   see kafka08.embedded.spark_java
    conf                  stronger than DEFAULTS
    on_java               told the id of the Java process as soon as there is one
    """
    assert SparkContext._active_spark_context is None, "this process runs a Spark already"
    settings = SparkConf().setMaster(f"local[{cores}]").setAppName(name)
    settings.setAll(list({**DEFAULTS, **(conf or {})}.items()))
    spark: SparkSession | None = None
    try:
        with _quiet_gateway(), _told(log_file):
            try:
                with _deferred_signals():
                    spark = _start(settings, java_home, on_java)
                register(spark)
                # Told before Java ends: the text of its errors is asked for there.
                with _told(log_file):
                    yield spark
            finally:
                if spark is not None:
                    _stop(spark)
    finally:
        _stop_java()


def _start(conf: SparkConf, java_home: Path, on_java: Callable[[int], None]) -> SparkSession:
    # Read when Java starts, and inherited by it for the workers.
    with _environment(
        JAVA_HOME=str(java_home), PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1"
    ):
        SparkContext._ensure_initialized(conf=conf)
        on_java(SparkContext._gateway.proc.pid)  # type: ignore[union-attr]
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
    # A signal to the whole process group ends Java before us: its silence is no news then.
    server: Any = spark.sparkContext._accumulatorServer
    server.handle_error = lambda *_: None
    return spark


def _stop(spark: SparkSession) -> None:
    """Stop it, whether its Java is still there or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "unable to cleanly shutdown"
        try:
            spark.stop()
        except (Py4JError, OSError) as error:
            logger.debug("Spark's Java had ended: %s", error)


@contextmanager
def _deferred_signals() -> Iterator[None]:
    """Let the signals that ask us to stop act only at the end of the block. PySpark, broken off
    while it waits for its Java process, forgets that process, which then stays for ever."""
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
    """The gateway to Java logs what it also raises, with tracebacks: once is enough."""
    gateway = logging.getLogger("py4j")
    before = gateway.level
    gateway.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        gateway.setLevel(before)


@contextmanager
def _told(log_file: Path) -> Iterator[None]:
    """Spark's errors as SparkFailed, with the end of its log where that may say more: what is wrong
    with a query, a missing file for one, is said by the error."""
    try:
        yield
    except AnalysisException as error:
        raise SparkFailed(str(error)) from error
    except (PySparkException, Py4JError) as error:
        log = log_file.read_text(errors="replace") if log_file.exists() else ""
        raise SparkFailed(f"{error}\n{log[-LOG_TAIL_CHARACTERS:]}") from error


def _stop_java() -> None:
    """End the Java process. PySpark would keep it until this process ends, for the next session."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    process: subprocess.Popen[bytes] = gateway.proc
    gateway.shutdown()
    assert process.stdin is not None
    process.stdin.close()  # how the gateway is told to exit
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
