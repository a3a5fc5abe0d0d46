"""Installs a wheel in empty environments, as its users would, and consumes a first message with it.

Two environments: the plain install is the clients, and consumes; `[embedded,cli]` runs the cluster
with `kafka08 up`. Nothing of the checkout is on their path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

INSTALL_S: Final = 1800
COMMAND_S: Final = 180
CONSUME: Final = """
import sys
from kafka08.consumer import ConsumerConfig, ConsumerConnector

config = ConsumerConfig(
    {"zookeeper.connect": sys.argv[1], "group.id": "smoke", "auto.offset.reset": "smallest"}
)
with ConsumerConnector(config) as connector:
    [stream] = connector.create_message_streams({"words": 1})["words"]
    print(next(iter(stream)).value.decode())
assert "gevent" not in sys.modules and "click" not in sys.modules
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment with one wheel in it."""

    directory: Path
    install_s: float
    size: int
    """Bytes on disk."""

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"


@dataclass(frozen=True)
class Smoke:
    """The figures of one wheel.

    clients, cluster   the two environments
    kernel             the output of `python -m kafka08.kernel`
    up_s               from `kafka08 up` to a cluster that is ready
    first_message_s    from the start of the consuming program to its end
    """

    clients: Environment
    cluster: Environment
    kernel: str
    up_s: float
    first_message_s: float

    def __str__(self) -> str:
        return (
            f"{self.kernel}\n"
            f"  clients           {megabytes(self.clients)}, installed in "
            f"{self.clients.install_s:.1f} s\n"
            f"  [embedded,cli]    {megabytes(self.cluster)}, installed in "
            f"{self.cluster.install_s:.1f} s\n"
            f"  kafka08 up        {self.up_s:.1f} s to a cluster that is ready\n"
            f"  first message     {self.first_message_s:.1f} s after the program was started"
        )


def megabytes(environment: Environment) -> str:
    return f"{environment.size / 1e6:.0f} MB"


def try_wheel(wheel: Path, python: str, directory: Path) -> Smoke:
    """Install the wheel for `python` below `directory`, which must not exist, and use it.

    CalledProcessError if a step fails, TimeoutExpired if one does not end."""
    clients = install(wheel, "", python, directory / "clients")
    cluster = install(wheel, "[embedded,cli]", python, directory / "cluster")
    kernel = run([clients.python, "-m", "kafka08.kernel"], native=True).strip()
    command: list[str | Path] = [cluster.python, "-m", "kafka08.cli"]
    data: list[str | Path] = ["--data-dir", directory / "data"]
    started = time.monotonic()
    status = run([*command, "up", "--detach", "--brokers", "1", "--json", *data])
    up_s = time.monotonic() - started
    try:
        zookeeper = json.loads(status)["zookeeper"]
        bootstrap = json.loads(status)["bootstrap"]
        run([*command, "topic", "create", "words", "--zookeeper", zookeeper])
        run([*command, "produce", "words", "--bootstrap", bootstrap], given="first\nsecond\n")
        started = time.monotonic()
        said = run([clients.python, "-c", CONSUME, zookeeper], native=True)
        first_message_s = time.monotonic() - started
        assert said == "first\n", said
        run([*command, "status", *data])
    finally:
        run([*command, "down", *data])
    return Smoke(clients, cluster, kernel, up_s, first_message_s)


def install(wheel: Path, extras: str, python: str, directory: Path) -> Environment:
    """An environment with nothing but the wheel, its extras and what they require."""
    run([python, "-m", "venv", "--without-pip", directory])
    started = time.monotonic()
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", directory / "bin" / "python"]
    run([*pip, "install", "--quiet", f"{wheel}{extras}"], seconds=INSTALL_S)
    install_s = time.monotonic() - started
    files = [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()]
    return Environment(directory, install_s, sum(path.stat().st_size for path in files))


def run(
    command: Sequence[str | Path],
    *,
    given: str = "",
    native: bool = False,
    seconds: float = COMMAND_S,
) -> str:
    """Run a command outside the checkout and return its standard output.

    given    its standard input
    native   whether the compiled kernel is demanded
    """
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("KAFKA08", "PYT"))
    }
    if native:
        environ["KAFKA08_KERNEL"] = "native"
    done = subprocess.run(
        [str(part) for part in command],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env=environ,
        cwd="/",
    )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    done.check_returncode()
    return done.stdout
