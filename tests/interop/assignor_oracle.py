"""The assignors of Kafka 0.8.2.2 themselves, asked for what they make of a group's znodes.

    with AssignorOracle() as oracle:
        oracle.assignment(znodes, "range", "g", ["g_a", "g_b"])

AssignorOracle.java runs kafka.consumer.PartitionAssignor over znodes in memory, so that one JVM
answers hundreds of cases a second. It is compiled as it starts, which takes a JDK.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from kafka08.consumer.zookeeper.assignors import Assignment
from kafka08.structs import TopicPartition
from tests.interop.java_oracle import JavaOracle
from tests.interop.jvm import TOOL_FLAGS, command

SOURCE = Path(__file__).parent / "AssignorOracle.java"
QUIET = "-Dkafka08.log.level=ERROR"
"""0.8.2.2 warns of every thread without partitions, which would hide everything else."""


class Refused(Exception):
    """The JVM's assignor threw; its exception's class."""


class AssignorOracle(JavaOracle):
    """One JVM process. Skips the test where Java cannot compile."""

    def __init__(self) -> None:
        super().__init__(command(str(SOURCE), flags=(*TOOL_FLAGS, QUIET)), stderr=subprocess.PIPE)

    def assignment(
        self, znodes: Mapping[str, str], strategy: str, group: str, members: Iterable[str]
    ) -> Assignment:
        """The assignment of all members together; an assertion that no two choose the same. Refused
        if any of them throws."""
        asked = list(members)
        self._send(
            ("clear",),
            *(("node", path, text) for path, text in znodes.items()),
            *(("assign", strategy, group, member) for member in asked),
        )
        chosen: Assignment = {}
        refused: Refused | None = None
        for _ in asked:
            try:
                part = self._read_assignment()
            except Refused as error:
                refused = error
                continue
            assert not chosen.keys() & part.keys(), "two members own a partition"
            chosen |= part
        if refused is not None:
            raise refused
        return chosen

    def _send(self, *lines: Sequence[str]) -> None:
        """All at once: what a case asks fits the pipe."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("".join("\t".join(words) + "\n" for words in lines))
            self._process.stdin.flush()
        except BrokenPipeError:
            self._explain()

    def _read_assignment(self) -> Assignment:
        assert self._process.stdout is not None
        part: Assignment = {}
        for line in self._process.stdout:
            words = line.rstrip("\n").split("\t")
            if words[0] == "end":
                return part
            if words[0] == "error":
                raise Refused(words[1])
            topic, number, thread = words
            part[TopicPartition(topic, int(number))] = thread
        self._explain()
        raise AssertionError("unreachable: _explain raises")

    def _explain(self) -> None:
        assert self._process.stderr is not None
        said = self._process.stderr.read()
        if "jdk.compiler" in said:
            pytest.skip(f"needs a JDK, not only a JRE: {said.strip()}")
        raise AssertionError(f"the oracle ended: {said}")
