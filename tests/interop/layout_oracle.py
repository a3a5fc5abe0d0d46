"""The schemas of Kafka 0.10.2.2's own client library, asked what they make of bytes of ours.

    with LayoutOracle() as oracle:
        oracle.rewritten("request", 6, 2, body)     # == body if the library reads it as we do

One JVM answers thousands of bodies a second. LayoutOracle.java is compiled as it starts, which
takes a JDK.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tests.interop.java_oracle import JavaOracle, on_0_10_2

SOURCE = Path(__file__).parent / "LayoutOracle.java"


class LayoutOracle(JavaOracle):
    """One JVM process. Skips the test where there is no JDK or no Maven; fails it when CI=true."""

    def __init__(self) -> None:
        super().__init__(on_0_10_2(SOURCE))

    def rewritten(
        self, kind: Literal["request", "response"], key: int, version: int, body: bytes
    ) -> bytes:
        """`body` as the library reads and writes it; AssertionError if it cannot read it all."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{kind} {key} {version} {body.hex()}\n")
        self._process.stdin.flush()
        response = self._process.stdout.readline().strip()
        assert not response.startswith("error"), response
        return bytes.fromhex(response)
