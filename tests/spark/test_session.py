"""kafka08.spark.session: no signal loses the Java process, and errors that say what to do."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException

from kafka08.embedded.ports import free_ports
from kafka08.errors import ConfigError
from kafka08.spark.session import SparkFailed, _deferred_signals, _told, check_reachable


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """This process gets its own handlers back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_java_is_known(number: signal.Signals) -> None:
    """Ctrl-C while PySpark starts its Java (a regression: that stayed for ever, since nobody knew
    it) acts once the block is done, through the handler that was there."""

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
    """The handlers of before are back."""
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
def test_what_is_told_of_an_error(tmp_path: Path, error: PySparkException, text: str) -> None:
    """The end of Spark's log, unless the query itself is wrong: that is said in one sentence."""
    log_file = tmp_path / "spark.log"
    log_file.write_text("last words of Java")
    with pytest.raises(SparkFailed) as failed, _told(log_file):
        raise error
    assert str(failed.value) == text


def test_a_master_that_is_not_there_is_told_at_once() -> None:
    """Where nothing listens: Spark itself would ask for a minute. Any of several addresses is
    enough."""
    [free] = free_ports(1)
    with pytest.raises(SparkFailed, match=f"Spark master at 127.0.0.1:{free}: Connection refused"):
        check_reachable(f"spark://127.0.0.1:{free}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(f"spark://127.0.0.1:{free},127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize("master", ["", "localhost:7077", "spark://", "spark://h", "locals[2]"])
def test_what_is_no_master(master: str) -> None:
    """An error that shows what one looks like."""
    with pytest.raises(ConfigError, match="is not spark://HOST:PORT, yarn, k8s://URL or local"):
        check_reachable(master)
