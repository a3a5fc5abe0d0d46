"""kafka08.spark.session: no signal loses the Java process, and errors that say what to do."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException

from kafka08.embedded.ports import free_ports
from kafka08.errors import ConfigError
from kafka08.spark.session import (
    SparkFailed,
    _as_spark_failed,
    _deferred_signals,
    _quiet_gateway,
    check_reachable,
    properties,
)
from kafka08.spark.versions import UNIX_SOCKET

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOSES_JAVA = """
import logging, sys
from pathlib import Path
from pyspark import SparkContext
from kafka08.embedded.java import find_java
from kafka08.embedded.spark_java import make_java_home
from kafka08.spark.session import SparkFailed, local_session

logging.basicConfig(level=logging.INFO)
directory = Path(sys.argv[1])
log_file = directory / "spark.log"
home = make_java_home(directory / "java", find_java(), log_file)
try:
    with local_session("killed", home, log_file) as spark:
        java = SparkContext._gateway.proc
        java.kill()
        java.wait()
        spark.range(1).count()
except SparkFailed as error:
    print(str(error).splitlines()[0])
"""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """This process gets its own handlers back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_java_is_known(number: signal.Signals) -> None:
    """The handler of before runs after the block. (Ctrl-C while PySpark started its Java used to
    leave that process running.)"""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(number, interrupt)
    done = False
    with pytest.raises(KeyboardInterrupt), _deferred_signals():  # noqa: PT012
        os.kill(os.getpid(), number)
        done = True
    assert done
    assert signal.getsignal(number) is interrupt


def test_without_a_signal_nothing_is_changed() -> None:
    """The earlier handlers are back after the block."""
    before = signal.getsignal(signal.SIGINT)
    with _deferred_signals():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (AnalysisException("no such path"), "no such path"),
        (PySparkException("a task died"), "a task died\nlast words of Java"),
    ],
)
def test_an_error_ends_with_the_tail_of_sparks_log(
    tmp_path: Path, error: PySparkException, text: str
) -> None:
    """It does unless the query itself is wrong."""
    log_file = tmp_path / "spark.log"
    log_file.write_text("last words of Java")
    with pytest.raises(SparkFailed) as failed, _as_spark_failed(log_file):
        raise error
    assert str(failed.value) == text


def test_a_known_cause_is_the_whole_error(tmp_path: Path) -> None:
    """Neither traces nor the log follow an error of ours, wherever Spark has wrapped it."""
    log_file = tmp_path / "spark.log"
    log_file.write_text("last words of Java")
    text = "Traceback:\n  frame\nkafka08.errors.ConfigError: no such option\n\tat x.Y(Z)"
    for kind in (AnalysisException, PySparkException):
        with pytest.raises(SparkFailed) as failed, _as_spark_failed(log_file):
            raise kind(text)
        assert str(failed.value) == "no such option"


def test_ctrl_c_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """py4j logs a Ctrl-C with a traceback, by the root logger; during a session nobody sees it."""
    text = "KeyboardInterrupt while sending command."
    path = "py4j/java_gateway.py"
    record = logging.LogRecord("root", logging.ERROR, path, 1, text, (), None)
    with _quiet_gateway():
        logging.getLogger().handle(record)
        assert not caplog.records
    logging.getLogger().handle(record)
    assert caplog.messages == [text]


@pytest.mark.spark
def test_a_killed_java_is_one_error(tmp_path: Path) -> None:
    """Its error says so. py4j logs no traceback, also at level INFO: neither about the command that
    fails, nor about Java that it cannot end."""
    done = subprocess.run(
        [sys.executable, "-c", LOSES_JAVA, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=115,
        check=True,
    )
    assert done.stdout.startswith("Spark's Java process has ended, or was killed ("), done.stderr
    assert "Traceback" not in done.stderr


def test_an_unreachable_master_is_an_error_at_once() -> None:
    """The error comes without Spark's wait of a minute; one address of several that listens is
    enough."""
    [free] = free_ports(1)
    with pytest.raises(SparkFailed, match=f"Spark master at 127.0.0.1:{free}: Connection refused"):
        check_reachable(f"spark://127.0.0.1:{free}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(f"spark://127.0.0.1:{free},127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize("master", ["", "localhost:7077", "spark://", "spark://h", "locals[2]"])
def test_an_invalid_master_is_an_error(master: str) -> None:
    """The error shows the form of a master's URL."""
    with pytest.raises(ConfigError, match="is not spark://HOST:PORT, yarn, k8s://URL or local"):
        check_reachable(master)


@pytest.mark.parametrize(
    ("release", "is_unix"), [((3, 5), False), ((4, 0), False), ((4, 1), True), ((4, 3), True)]
)
def test_releases_with_unix_sockets_use_them(release: tuple[int, int], is_unix: bool) -> None:
    """PySpark from 4.1 on uses them, locally and on clusters; earlier releases do not know the
    property."""
    for master in ("local[2]", "spark://h:7077"):
        assert (properties(master, {}, release).get(UNIX_SOCKET) == "true") is is_unix


def test_the_users_properties_take_precedence() -> None:
    """The user's value replaces each of ours; the other properties stay."""
    ours = properties("local[2]", {})
    for name in ours:
        assert properties("local[2]", {name: "x"}) == {**ours, name: "x"}


def test_workers_use_unix_sockets(spark: SparkSession) -> None:
    """The property reaches the workers' Python, which then serves Java on such a socket."""
    asked = spark.sparkContext.parallelize([0], 1).map(
        lambda _: os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED")
    )
    assert [enabled and enabled.lower() for enabled in asked.collect()] == ["true"]
