"""A group's member by another client."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.interop.jvm import guard


class Foreign:
    """A member of another client in a process; what it says goes to a file."""

    def __init__(self, line: Sequence[str], directory: Path, name: str) -> None:
        self._path = directory / name
        with self._path.open("wb") as output:
            self.process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=output)
        guard().add(self.process.pid)

    @property
    def lines(self) -> list[str]:
        return self._path.read_text().split("\n")[:-1]

    @property
    def assigned(self) -> int:
        counts = [line.split()[2] for line in self.lines if " assigned " in line]
        return int(counts[-1]) if counts else 0

    @property
    def values(self) -> list[str]:
        return [line.split()[4] for line in self.lines if " message " in line]

    @property
    def places(self) -> list[tuple[int, int]]:
        """(partition, offset) of each message."""
        found = [line.split() for line in self.lines if " message " in line]
        return [(int(words[2]), int(words[3])) for words in found]

    def leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"end\n")
        self.process.stdin.close()
        self.process.wait(30)

    def end(self) -> None:
        self.process.kill()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()
        guard().drop(self.process.pid)
