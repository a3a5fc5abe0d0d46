"""A Java program of the tests in a JVM of its own, which answers lines with lines."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafka08.lifecycle import Closeable
from tests.interop.jvm import POM_0_10_2, TOOL_FLAGS, JvmMissing, classpath, guard, java


class JavaOracle(Closeable):
    """One JVM process, killed at the end of a `with` block.

    stderr   subprocess.PIPE if the caller reads it to explain a death, else DEVNULL
    """

    def __init__(self, line: Sequence[str], stderr: int = subprocess.DEVNULL) -> None:
        self._process = subprocess.Popen(
            line,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        guard().add(self._process.pid)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        guard().drop(self._process.pid)


def on_0_10_2(source: Path, flags: Sequence[str] = TOOL_FLAGS) -> list[str]:
    """The command that compiles and runs `source` beside 0.10.2.2. Skips the test where there is no
    JDK or no Maven; fails it when CI=true."""
    try:
        if shutil.which("javac") is None:
            raise JvmMissing("no JDK")
        return [java(), *flags, "-cp", classpath(POM_0_10_2), str(source)]
    except JvmMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"tests against Kafka 0.10.2.2 cannot run: {missing}")
        pytest.skip(f"needs Kafka 0.10.2.2: {missing}")
