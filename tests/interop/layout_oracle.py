"""The schemas of Kafka 0.10.2.2's own client library, asked what they make of bytes of ours.

    with LayoutOracle() as oracle:
        oracle.rewritten("request", 6, 2, body)     # == body if the library reads it as we do

One JVM answers thousands of bodies a second. LayoutOracle.java is compiled as it starts, which
takes a JDK.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import pytest

from tests.interop.jvm import POM_0_10_2, TOOL_FLAGS, JvmMissing, classpath, guard, java

SOURCE = Path(__file__).parent / "LayoutOracle.java"


class LayoutOracle:
    """One JVM process. Skips the test where there is no JDK or no Maven; fails it when CI=true."""

    def __init__(self) -> None:
        try:
            if shutil.which("javac") is None:
                raise JvmMissing("no JDK")
            line = [java(), *TOOL_FLAGS, "-cp", classpath(POM_0_10_2), str(SOURCE)]
        except JvmMissing as missing:
            if os.environ.get("CI") == "true":
                pytest.fail(f"tests against Kafka 0.10.2.2 cannot run: {missing}")
            pytest.skip(f"needs Kafka 0.10.2.2: {missing}")
        self._process = subprocess.Popen(
            line,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        guard().add(self._process.pid)

    def rewritten(
        self, kind: Literal["request", "response"], key: int, version: int, body: bytes
    ) -> bytes:
        """`body` as the library reads and writes it; AssertionError if it cannot read it all."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{kind} {key} {version} {body.hex()}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        assert not answer.startswith("error"), answer
        return bytes.fromhex(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()
        guard().drop(self._process.pid)
