"""Light to start: what --help, the consumer and the producer import, and the time that takes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("pyspark", "pyarrow", "rich", "gevent", "prometheus_client", "hypothesis")
CLIENT_ROOMS = (
    *("admin", "client", "consumer", "doctor", "exporter", "groups", "migration", "mirror"),
    *("producer", "protocol", "zk"),
)
TRIES = 5


def run(*arguments: str, bytecode: Path | None = None) -> str:
    """What Python prints. `bytecode`: where compiled modules are kept from one run to the next, as
    they are beside an installed package."""
    environ = dict(os.environ)
    if bytecode is not None:
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        environ["PYTHONPYCACHEPREFIX"] = str(bytecode)
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, env=environ
    )
    return done.stdout


def cpu_seconds(*arguments: str, bytecode: Path) -> float:
    """Of the quickest of some runs: what others do on this machine must not count, nor the first
    run, which compiles."""
    seconds = []
    for _ in range(TRIES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(*arguments, bytecode=bytecode)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


@pytest.mark.parametrize(
    ("arguments", "goal_s"),
    [
        (("-m", "kafka08.cli", "--help"), 0.15),
        (("-c", "import kafka08.consumer"), 0.12),
        (("-c", "import kafka08.producer"), 0.12),
    ],
)
def test_it_starts_quickly(arguments: tuple[str, ...], goal_s: float, tmp_path: Path) -> None:
    """Beyond what the interpreter itself needs, less than twice the goal: machines differ."""
    bare = cpu_seconds("-c", "", bytecode=tmp_path)
    assert cpu_seconds(*arguments, bytecode=tmp_path) - bare < 2 * goal_s


@pytest.mark.parametrize("module", ["kafka08.cli", "kafka08.consumer", "kafka08.producer"])
def test_nothing_heavy_comes_along(module: str) -> None:
    """Spark, Arrow, progress bars and the broker's event loop are imported where they are used."""
    program = f"import json, sys, {module}; print(json.dumps(list(sys.modules)))"
    loaded = {name.partition(".")[0] for name in json.loads(run("-c", program))}
    assert not loaded.intersection(HEAVY)


def test_no_module_of_a_client_room_imports_gevent() -> None:
    """Nor anything that these modules import: gevent turns the GIL of a free-threaded Python on
    again, and is no part of the plain install."""
    program = (
        "import importlib, json, pkgutil, sys\n"
        "importers = []\n"
        f"for room in {CLIENT_ROOMS}:\n"
        "    package = importlib.import_module('kafka08.' + room)\n"
        "    for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(found.name)\n"
        "        if not importers and {'gevent', 'greenlet'} & set(sys.modules):\n"
        "            importers.append(found.name)\n"
        "print(json.dumps(importers))"
    )
    assert json.loads(run("-c", program)) == []


def test_help_does_not_load_the_rooms() -> None:
    """`kafka08 --help` knows the commands by name only."""
    program = (
        "import json, sys\n"
        "from kafka08.cli.root import root\n"
        "root(['--help'], standalone_mode=False)\n"
        "print(json.dumps(list(sys.modules)))"
    )
    loaded = json.loads(run("-c", program).splitlines()[-1])
    rooms = {name.split(".")[1] for name in loaded if name.startswith("kafka08.")}
    assert not rooms.intersection({"admin", "broker", "client", "consumer", "log", "zk", "spark"})
