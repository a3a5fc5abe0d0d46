"""A signal at any moment of a start ends a command cleanly."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, DEADLINE_S, Commands

MOMENTS = [0.0, 0.02, 0.04, 0.07, 0.1, 0.14, 0.18, 0.22, 0.27, 0.33, 0.4, 0.5, 0.7]
"""Seconds after the process holds signals. A broker is up after about 0.4 s."""
NUMBERS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def catches(pid: int) -> bool:
    """Whether the process has a handler for SIGTERM."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt"):
            return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    raise AssertionError("/proc does not tell")


@contextmanager
def started(command: list[str], kafka08: Commands) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command,
        env=kafka08.environ,
        cwd=kafka08.directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        kafka08.started.append(process)  # type: ignore[arg-type]
        while not catches(process.pid):
            assert process.poll() is None
            time.sleep(0.001)
        yield process


def end_at(moment: float, number: int, command: list[str], kafka08: Commands) -> int:
    """The exit code of a command that gets a signal at this moment."""
    with started(command, kafka08) as process:
        time.sleep(moment)
        process.send_signal(number)
        said, _ = process.communicate(timeout=DEADLINE_S)
    assert "Traceback" not in said, said
    return process.returncode


@pytest.mark.parametrize(
    "entry", [["-m", "kafka08.cli", "broker", "start"], ["-m", "kafka08.broker.process.main"]]
)
def test_a_broker_stops_cleanly_at_any_moment(entry: list[str], kafka08: Commands) -> None:
    """A broker that is signalled at its start, or while it serves, exits with 0."""
    properties = kafka08.directory / "server.properties"
    for turn, moment in enumerate(MOMENTS):
        properties.write_text(
            f"broker.id={100 + turn}\nport=0\nhost.name=127.0.0.1\nlog.dirs=logs-{turn}\n"
            f"zookeeper.connect={kafka08.environ['KAFKA08_ZOOKEEPER']}/early\n"
        )
        command = [COMMAND[0], *entry, str(properties)]
        assert end_at(moment, NUMBERS[turn % 3], command, kafka08) == 0, moment


def test_zookeeper_stops_cleanly_at_any_moment(kafka08: Commands) -> None:
    """ZooKeeper exits with 0, and its Java process ends with it."""
    for turn, moment in enumerate(MOMENTS[::2]):
        command = [*COMMAND, "zookeeper", "start", "--port", "0", "--data-dir", f"zk-{turn}"]
        assert end_at(moment, NUMBERS[turn % 3], command, kafka08) == 0, moment
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(kafka08.directory) not in running.stdout


def test_up_stops_cleanly_at_any_moment(kafka08: Commands) -> None:
    """`up` exits with 0, and no process of it remains."""
    for turn, moment in enumerate([0.0, 0.1, 0.3, 1.0]):
        command = [*COMMAND, "up", "--brokers", "1", "--data-dir", "cluster"]
        assert end_at(moment, NUMBERS[turn % 3], command, kafka08) == 0, moment
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(kafka08.directory) not in running.stdout


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        # Printed all of nothing, and left the group.
        (["consume", "early"], {0}),
        # Not all of the input was sent; or it ended before.
        (["produce", "early"], {0, 1}),
        # "Aborted!", as with Ctrl-C; or it was done.
        (["topic", "list"], {0, 1}),
        (["up", "restart", "0", "--data-dir", "nowhere"], {1}),
    ],
)
def test_a_command_is_interrupted_at_any_moment(
    words: list[str], codes: set[int], kafka08: Commands
) -> None:
    """A command exits with a code of its own and never dies of the signal."""
    for turn, moment in enumerate(MOMENTS):
        command = [*COMMAND, *words]
        assert end_at(moment, NUMBERS[turn % 3], command, kafka08) in codes, moment


@pytest.mark.parametrize(
    ("words", "code"),
    [(["metrics", "--listen", "0"], 0), (["metrics"], 1), (["top", "--once"], 1)],
)
def test_a_command_ends_though_zookeeper_does_not_answer(
    words: list[str], code: int, kafka08: Commands
) -> None:
    """A command ends although ZooKeeper does not respond its read: the read neither delays nor
    swallows the signal."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(DEADLINE_S)
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with started([*COMMAND, *words, "--zookeeper", address], kafka08) as process:
            stream, _ = silent.accept()
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=DEADLINE_S)
            stream.close()
    assert "Traceback" not in said, said
    assert process.returncode == code, said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_inside_exec_does_not_kill_the_command(number: int, tmp_path: Path) -> None:
    """A dataclass that is made runs `exec`. After a KeyboardInterrupt through it, `python -m` ends
    with SIGINT even if the program catches it, so that the exit code is lost."""
    (tmp_path / "program.py").write_text(
        "import os\n"
        "from kafka08.cli.signals import interrupt_on_stop_signals\n"
        "interrupt_on_stop_signals()\n"
        "try:\n"
        f"    exec('os.kill(os.getpid(), {int(number)})\\nwhile True: pass')\n"
        "except KeyboardInterrupt:\n"
        "    raise SystemExit(1)\n"
    )
    command = [sys.executable, "-m", "program"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 1
