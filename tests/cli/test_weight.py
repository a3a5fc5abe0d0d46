"""The imports of --help, consumers and producers: what they load, and their CPU time."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("pyspark", "pyarrow", "rich", "gevent", "prometheus_client", "hypothesis")
CLIENT_PACKAGES = (
    *("admin", "client", "consumer", "doctor", "exporter", "groups", "migration", "mirror"),
    *("producer", "protocol", "zk"),
)
TRIES = 5

INTERPRETER_S = 0.014
"""CPU seconds of the interpreter alone where the goals were set."""


def run(*arguments: str, bytecode: Path | None = None) -> str:
    """The output of a Python process. `bytecode` is a directory for compiled modules, which later
    runs use as those of an installed package."""
    environ = dict(os.environ)
    if bytecode is not None:
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        environ["PYTHONPYCACHEPREFIX"] = str(bytecode)
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, env=environ
    )
    return done.stdout


def cpu_seconds(*arguments: str, bytecode: Path) -> float:
    """CPU seconds of the fastest of TRIES runs, without other load on this machine and without
    compilation."""
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
        (("-c", "from kafka08.consumer import *"), 0.15),
        (("-c", "from kafka08.consumer import KafkaConsumer"), 0.12),
        (("-c", "from kafka08.producer import *"), 0.12),
    ],
)
def test_it_starts_quickly(arguments: tuple[str, ...], goal_s: float, tmp_path: Path) -> None:
    """The time is less than twice the goal without the interpreter's own, because machines differ;
    on a slower one the interpreter, too, takes longer."""
    bare = cpu_seconds("-c", "", bytecode=tmp_path)
    slower = max(1.0, bare / INTERPRETER_S)
    assert cpu_seconds(*arguments, bytecode=tmp_path) - bare < 2 * goal_s * slower


@pytest.mark.parametrize("module", ["kafka08.cli", "kafka08.consumer", "kafka08.producer"])
def test_imports_load_nothing_heavy(module: str) -> None:
    """Spark, Arrow, progress bars and gevent are imported only by code that uses them."""
    program = f"import json, sys; from {module} import *; print(json.dumps(list(sys.modules)))"
    loaded = {name.partition(".")[0] for name in json.loads(run("-c", program))}
    assert not loaded.intersection(HEAVY)


def test_no_module_of_a_client_package_imports_gevent() -> None:
    """No client package imports gevent, directly or through others: gevent turns the GIL of a
    free-threaded Python on again, and the plain install does not have it. The clients for asyncio
    need greenlet alone; they and kazoo's handler for greenlets are imported only by who asks for
    them."""
    program = (
        "import importlib, json, pkgutil, sys\n"
        "importers = []\n"
        f"for name in {CLIENT_PACKAGES}:\n"
        "    package = importlib.import_module('kafka08.' + name)\n"
        "    for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if found.name.rpartition('.')[2].startswith(('async_', 'green_')):\n"
        "            continue\n"
        "        importlib.import_module(found.name)\n"
        "        if not importers and {'gevent', 'greenlet'} & set(sys.modules):\n"
        "            importers.append(found.name)\n"
        "print(json.dumps(importers))"
    )
    assert json.loads(run("-c", program)) == []


def test_help_does_not_load_the_packages() -> None:
    """`kafka08 --help` lists the commands without importing them."""
    program = (
        "import json, sys\n"
        "from kafka08.cli.root import root\n"
        "root(['--help'], standalone_mode=False)\n"
        "print(json.dumps(list(sys.modules)))"
    )
    loaded = json.loads(run("-c", program).splitlines()[-1])
    found = {name.split(".")[1] for name in loaded if name.startswith("kafka08.")}
    assert not found.intersection({"admin", "broker", "client", "consumer", "log", "zk", "spark"})
