"""MatchLog: the file in which the brokers of a cluster note each request that matches a rule.

A line is appended in one write, so all brokers, and the process that made the rules, read the
matches in one order, and each computes alone which of them are hit (kafka08/faults/tally.py). JSON:

    {"rule": 1, "broker": 0, "pid": 17, "at": 1700000000000, "api": "Produce", …}    a match
    {"rules": 4, "broker": 0, "pid": 17, "at": …}    the process has version 4 of the rules by now
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from kafka08.faults.rule import Rule
from kafka08.faults.tally import Tally
from kafka08.lifecycle import Closeable

Line: TypeAlias = dict[str, Any]


class MatchLog(Closeable):
    """The file, read from its start.

    position   how far it is read, in bytes
    tallies    rule's number → its matches so far
    is_closed  whether `close` was called
    versions   process id → (version of the rules that it has announced, when: ms since 1970)
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.is_closed = False
        self.position = 0
        self.tallies: dict[int, Tally] = {}
        self.versions: dict[int, tuple[int, int]] = {}

    def use(self, rules: Mapping[int, Rule], begins: int) -> None:
        """Count the matches of these rules, the first of which may be at position `begins`: before
        what is read, if another broker had the rules earlier."""
        self.tallies = {number: Tally(rule) for number, rule in rules.items()}
        self.position = begins
        for _ in self.read():
            pass

    def note(self, line: Line) -> bool:
        """Append a line. Whether the match that it notes is hit."""
        os.write(self._file, json.dumps(line).encode() + b"\n")
        is_hit = False
        for found, was_hit in self.read():
            if found == line:  # the last such one is ours
                is_hit = was_hit
        return is_hit

    def read(self) -> Iterator[tuple[Line, bool]]:
        """Count each line that is new, and return it with whether it is a hit. None of a closed
        log."""
        if self.is_closed:
            return
        data = bytearray()
        while block := os.pread(self._file, 1 << 20, self.position + len(data)):
            data += block
        whole = data[: data.rfind(b"\n") + 1]
        self.position += len(whole)
        for text in whole.splitlines():
            line = json.loads(text)
            if "rules" in line:
                self.versions[line["pid"]] = line["rules"], line["at"]
                yield line, False
            else:
                tally = self.tallies.get(line["rule"])
                yield line, tally is not None and tally.count()

    def close(self) -> None:
        """Close the file. Closing twice does nothing."""
        if not self.is_closed:
            self.is_closed = True
            os.close(self._file)
