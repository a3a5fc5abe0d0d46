"""The Python of Spark's workers is checked before a job runs."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.errors import ConfigError
from kafka08.spark.source import CheckedDataSource, DataSource
from kafka08.spark.worker_probe import describe
from kafka08.spark.worker_python import (
    advise_unix_socket,
    check_planner,
    check_pythons,
    python_here,
    warn_of_twin,
    warn_of_twin_here,
)

CURE = "activate it"


def test_our_own_python_passes() -> None:
    """This process's Python runs tasks, also by another path."""
    own = python_here(sys.executable)
    same = python_here(str(Path(sys.executable).parent / ".." / "bin" / "python"))
    check_pythons([own, same], CURE)
    assert own["kafka08"] == same["kafka08"]


def test_a_python_without_kafka08_is_named(tmp_path: Path) -> None:
    """The error for an empty environment has its Python, what is missing and the cure."""
    environment = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    with pytest.raises(ConfigError, match="No module named") as raised:
        check_pythons([python_here(sys.executable), python_here(str(python))], CURE)
    assert str(python) in str(raised.value)
    assert CURE in str(raised.value)


def test_a_python_that_is_not_there() -> None:
    """A name that is no program is the same kind of error."""
    with pytest.raises(ConfigError, match=r"run no-such-python, .*No such file.*activate it"):
        check_pythons([python_here("no-such-python")], CURE)


def test_a_python_that_only_the_workers_have() -> None:
    """Spark plans on the driver's machine with the path of the workers' Python."""
    check_planner("python3")
    with pytest.raises(ConfigError, match=r"\./environment/bin/python, which is not here: unpack"):
        check_planner("./environment/bin/python")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("python", "3.8.1", r"it is Python 3\.8\.1, the driver's is 3\."),
        ("kafka08", "0.0.9", r"it has kafka08 0\.0\.9, the driver has "),
    ],
)
def test_another_version(name: str, value: str, problem: str) -> None:
    """Pickles work between Pythons of one minor release, and between equal releases of kafka08."""
    with pytest.raises(ConfigError, match=problem):
        check_pythons([describe() | {name: value}], CURE)


def test_the_slow_kernel_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """One line has the hosts whose Python lacks the compiled kernel, and why; there is no line if
    all have it."""
    fast = describe() | {"host": "a", "slow": ""}
    slow = [describe() | {"host": host, "slow": "no compiler"} for host in ("c", "b", "b")]
    with caplog.at_level(logging.WARNING):
        warn_of_twin([fast])
        assert caplog.messages == []
        warn_of_twin([fast, *slow])
    [line] = caplog.messages
    assert "on b, c run the Python twin" in line
    assert "no compiler" in line


@pytest.mark.parametrize(
    ("enabled", "release", "lines"),
    [
        ("false", (4, 3), 1),
        (None, (4, 1), 1),
        ("true", (4, 3), 0),
        ("TRUE", (4, 3), 0),
        ("false", (4, 0), 0),
    ],
)
def test_the_faster_socket_is_advised(
    enabled: str | None, release: tuple[int, int], lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    """One line has the property where PySpark supports it and the session does not use it."""
    with caplog.at_level(logging.INFO):
        advise_unix_socket(enabled, release)
    assert len(caplog.messages) == lines
    assert all("spark.python.unix.domain.socket.enabled=true" in line for line in caplog.messages)


def test_without_register_the_planner_warns(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It warns once for any number of reads, and never after `register`."""
    monkeypatch.setenv("KAFKA08_KERNEL", "python")
    warn_of_twin_here.cache_clear()
    options = {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.api.version.request": "false",
        "subscribe": "t",
    }
    for source in (CheckedDataSource(options), DataSource(options), DataSource(options)):
        source.reader(source.schema())
    [line] = caplog.messages
    assert "KAFKA08_KERNEL=python is set" in line
