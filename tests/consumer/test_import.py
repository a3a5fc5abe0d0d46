"""The imports of the consumers: heavy libraries are imported only by the code that uses them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafka08 import kernel

HEAVY = ("pyarrow", "pyspark", "gevent", "rich", "click", "kazoo.client", "ssl", "uuid", "asyncio")
"""Each takes more than the import as a whole may take (0.12 s), or a noticeable part of it."""
ALL_APIS = ("kafka08.protocol.apis", "kafka08.protocol.served", "kafka08.protocol.update_metadata")


def imported() -> set[str]:
    script = "import sys; from kafka08.consumer import *; sys.stdout.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    return set(done.stdout.decode().split())


def test_importing_the_consumer_imports_nothing_heavy() -> None:
    """`import kafka08.consumer` imports neither libraries of the extras nor kazoo, which the first
    ZooKeeper session imports."""
    assert [name for name in HEAVY if name in imported()] == []


def test_consumers_load_only_their_own_apis() -> None:
    """A consumer imports its own APIs. Only a broker needs all of them in all versions."""
    assert imported().isdisjoint(ALL_APIS)


@pytest.mark.skipif(str(kernel.NAME) != "native", reason="the Python kernel runs")
def test_the_native_kernel_does_not_import_its_twin() -> None:
    """With the compiled kernel the Python one is not imported."""
    assert "kafka08.kernel._python" not in imported()
