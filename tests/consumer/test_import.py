"""`import kafka08.consumer` is light: what is heavy is imported where it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafka08 import kernel

HEAVY = ("pyarrow", "pyspark", "gevent", "rich", "click", "kazoo.client", "ssl", "uuid", "asyncio")
"""Each takes more than the import as a whole may take (0.12 s), or a noticeable part of it."""
ALL_APIS = ("kafka08.protocol.apis", "kafka08.protocol.served", "kafka08.protocol.update_metadata")


def imported() -> set[str]:
    script = "import sys, kafka08.consumer; sys.stdout.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    return set(done.stdout.decode().split())


def test_importing_the_consumer_imports_nothing_heavy() -> None:
    """Neither libraries for other rooms nor ZooKeeper's client, which a session imports."""
    assert [name for name in HEAVY if name in imported()] == []


def test_the_consumer_makes_the_classes_of_its_own_apis_alone() -> None:
    """Those of all APIs in all versions are for brokers."""
    assert imported().isdisjoint(ALL_APIS)


@pytest.mark.skipif(str(kernel.NAME) != "native", reason="the Python kernel runs")
def test_the_twin_of_the_kernel_is_not_imported_beside_it() -> None:
    """Where the compiled kernel runs."""
    assert "kafka08.kernel._python" not in imported()
