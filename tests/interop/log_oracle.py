"""A log of Kafka 0.10.2.2 itself, to hold ours against.

    with LogOracle() as oracle:
        oracle.open(directory, {"segment.bytes": "700"})
        oracle.append(now_ms, message_set)      # Appended, or Refused with the name of the error

One JVM, one log at a time, and a clock that the caller sets. LogOracle.java is compiled as it
starts, which takes a JDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.interop.java_oracle import JavaOracle, on_0_10_2
from tests.interop.jvm import JAVA_FLAGS, TOOL_FLAGS

SOURCE = Path(__file__).parent / "LogOracle.java"


class Appended(NamedTuple):
    """The log's result of an append."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int


class Refused(Exception):
    """The log threw; `error` is the class of its exception."""

    def __init__(self, response: str) -> None:
        super().__init__(response)
        self.error = response.split()[1]


class LogOracle(JavaOracle):
    """One JVM process. Skips the test where there is no JDK or no Maven; fails it when CI=true."""

    def __init__(self) -> None:
        flags = (*JAVA_FLAGS, *TOOL_FLAGS, "-Dkafka08.log.level=ERROR")
        super().__init__(on_0_10_2(SOURCE, flags))

    def open(self, directory: Path, settings: Mapping[str, object], recovery_point: int = 0) -> int:
        """Open a log, after a crash as far as it knows; the LEO."""
        words = [f"{name}={value}" for name, value in settings.items()]
        return self._ask("open", directory, recovery_point, *words)[0]

    def append(self, now_ms: int, data: bytes) -> Appended:
        """As the leader."""
        return Appended(*self._ask("append", now_ms, data.hex()))

    def follow(self, now_ms: int, data: bytes) -> Appended:
        """As a follower."""
        return Appended(*self._ask("follow", now_ms, data.hex()))

    def find(self, time_ms: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the first message at or after a time."""
        found = self._ask("find", time_ms)
        return (found[0], found[1]) if found else None

    def truncate(self, offset: int) -> None:
        self._ask("truncate", offset)

    def retain(self, now_ms: int) -> int:
        """Delete what has expired; how many segments that were."""
        return self._ask("retain", now_ms)[0]

    def close_log(self) -> None:
        """Close the log that is open; the JVM goes on."""
        self._ask("close")

    def _ask(self, *words: object) -> list[int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        response = self._process.stdout.readline().strip()
        if response.startswith("error"):
            raise Refused(response)
        assert response.startswith("ok"), response or "the JVM died"
        return [int(word) for word in response.split()[1:]]
